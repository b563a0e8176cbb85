"""How what keeps an instance is said: what is the matter and since when, then who can unblock it, and how."""

from collections.abc import Iterator
from datetime import datetime

from remuda.compute.history.reasons import PATIENCE, reason_of
from remuda.compute.history.schema import WaitRead, Who

_WHO: dict[Who, str] = {
    "itself": "Nobody has to unblock it: it goes on by itself.",
    "user": "Whoever may change the instance can unblock it.",
    "operator": "It takes an operator to unblock it.",
}


def wait_of(
    word: str, *, since: datetime | None = None, detail: str = "", next_try: datetime | None = None
) -> WaitRead:
    """Return what there is to know of something that keeps an instance; `detail` is what is known beyond the word."""
    behind = reason_of(word)
    began = f" (since {at(since)})" if since is not None else ""
    detail = clause(detail)
    more = f": {detail}" if detail and detail.lower() not in behind.says.lower() else ""
    return WaitRead(
        reason=word,
        sentence=f"{behind.says}{began}{more}.",
        since=since,
        next_try=next_try,
        retry_within=behind.retry_within_s,
        who=behind.who,
        remedy=behind.remedy,
    )


def lines_of(wait: WaitRead) -> Iterator[str]:
    """Yield all of it, for people."""
    yield wait.sentence
    if wait.next_try is not None:
        yield f"It is tried again at {at(wait.next_try)}."
    elif wait.who != "itself" and wait.retry_within:
        yield f"It is looked at again as soon as something changes, and at least every {wait.retry_within} seconds."
    yield _WHO[wait.who] if wait.remedy == PATIENCE else f"{_WHO[wait.who]} {wait.remedy}"


def at(moment: datetime) -> str:
    """Return a moment as people read it."""
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def clause(text: str) -> str:
    """Return a sentence as a part of another."""
    return text.strip().rstrip(".")
