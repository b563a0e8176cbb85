"""Names or ids: people type either, and mean one thing."""

from collections.abc import Sequence
from typing import Any

from remuda.cli.client.session import Query, Service, Session
from remuda.kernel.errors import Malformed, NotFound, Unusable

_LENGTH = 36
_DASHES = (8, 13, 18, 23)
_SHOWN = 8


def looks_like_id(text: str) -> bool:
    """Tell whether somebody typed an id."""
    return len(text) == _LENGTH and all(text[at] == "-" for at in _DASHES)


def among(things: Sequence[Any], wanted: str, noun: str) -> Any:
    """Return the one of these things that has this id or name."""
    for each in things:
        if each["metadata"]["id"] == wanted:
            return each
    found = [each for each in things if each["metadata"]["name"] == wanted]
    if not found:
        raise Unusable(f"There is no {noun} {wanted}: {_others(things)}.")
    if len(found) > 1:
        ids = ", ".join(each["metadata"]["id"] for each in found)
        raise Unusable(f"The name {wanted} is that of {len(found)} {_plural(noun)}: say which by its id, of {ids}.")
    return found[0]


def resolve(session: Session, service: Service, path: str, wanted: str, noun: str, query: Query | None = None) -> Any:
    """Return the thing below a path that has this id or name."""
    if looks_like_id(wanted):
        try:
            return session.get(service, f"{path}/{wanted}")
        except (NotFound, Malformed):
            raise Unusable(f"There is no {noun} {wanted}: check the id, and as whom you ask.") from None
    return among(session.get_all(service, path, query), wanted, noun)


def _plural(noun: str) -> str:
    return f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"


def _others(things: Sequence[Any]) -> str:
    names = sorted({each["metadata"]["name"] for each in things})
    if not names:
        return "there is none at all yet"
    left = len(names) - _SHOWN
    return f"choose from {', '.join(names[:_SHOWN])}" + (f" and {left} more" if left > 0 else "")
