"""Following a list as it changes, also over streams that end: each is taken up where the last one was left."""

from collections.abc import Iterator
from typing import Any

import msgspec

from remuda.cli.client.pausing import pause
from remuda.cli.client.session import Query, Service, Session
from remuda.http.sse import EventReader
from remuda.kernel.errors import Gone, Unavailable

_PAUSE_S = 1.0


def changes(session: Session, service: Service, path: str, query: Query) -> Iterator[tuple[str, Any]]:
    """Yield what is there, each as added, and then each change, for as long as somebody listens."""
    place = ""
    while True:
        try:
            with session.stream(service, path, {**query, "watch": "true"}, place) as chunks:
                reader = EventReader()
                for chunk in chunks:
                    for event in reader.feed(chunk):
                        place = place if event.id is None else event.id
                        if event.type in {"added", "modified", "deleted"}:
                            yield event.type, msgspec.json.decode(event.data)
        except Gone:
            place = ""
        except Unavailable:
            if not place:
                raise
        pause(_PAUSE_S)
