"""One request of a connection and its answer, when the client leaves before the end."""

from collections.abc import Coroutine
from typing import Any

from starlette.requests import ClientDisconnect
from uvicorn._types import ASGISendEvent
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle


class Exchange(RequestResponseCycle):
    """A request and its answer. Who writes to a client that left is told, where uvicorn would let it write for ever."""

    def send(self, message: ASGISendEvent) -> Coroutine[Any, Any, None]:
        """Send a part of the answer, or raise ClientDisconnect."""
        if self.disconnected:
            raise ClientDisconnect
        return super().send(message)


def give_up(cycle: RequestResponseCycle | None) -> None:
    """Tell whoever still answers that the client is gone."""
    if cycle is not None and not cycle.response_complete:
        cycle.disconnected = True
        cycle.message_event.set()
