"""``remuda instance timeline`` and ``explain``: what happened to an instance, and why it is as it is."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from remuda.cli.crud import find, id_of
from remuda.cli.lookup import HERE, Asked, Where
from remuda.cli.naming import looks_like_id
from remuda.cli.options import Output, within
from remuda.cli.output import show as show_text
from remuda.cli.resources import INSTANCE
from remuda.cli.showing.formats import dump
from remuda.cli.showing.tables import as_table

_MOST_EVENTS = 1_000
"""What the API gives at once."""
_ENOUGH = 8
"""So much of a uid tells a few apart."""


def timeline(instance: str, /, *, limit: int = 100, output: Output = "table", where: Where = HERE) -> None:
    """Show what happened to an instance and what caused it, the latest last.

    Parameters
    ----------
    instance
        Its name or id; of one that is gone, its id.
    limit
        So many events, counted from the latest.

    """
    within("--limit", limit, _MOST_EVENTS)
    with where.open() as asked:
        path = f"{INSTANCE.path}/{_id(asked, instance)}/timeline"
        events = _latest(asked, path, limit, is_for_people=output == "table")
    if output == "name":
        show_text("".join(f"{each['event']}\n" for each in events))
    elif output != "table":
        show_text(dump(events, output))
    else:
        show_text(_table(events))


def explain(instance: str, /, *, output: Output = "table", where: Where = HERE) -> None:
    """Say why an instance is as it is: what it waits for, since when, and who can unblock it.

    Parameters
    ----------
    instance
        Its name or id; of one that is gone, its id.

    """
    with where.open() as asked:
        told = asked.session.get(INSTANCE.service, f"{INSTANCE.path}/{_id(asked, instance)}/explain")
    if output == "name":
        show_text(f"{told['state']}\n")
    elif output != "table":
        show_text(dump(told, output))
    else:
        show_text("".join(f"{line}\n" for line in told["sentences"]))


def _latest(asked: Asked, path: str, limit: int, *, is_for_people: bool) -> Sequence[Any]:
    """Return so many events, the latest last; for those that people need not read, older ones are read."""
    read = limit
    while True:
        events = asked.session.get(INSTANCE.service, path, {"limit": str(read)})
        kept = [each for each in events if not (is_for_people and _is_said_twice(each))]
        if len(kept) >= limit or len(events) < read or read == _MOST_EVENTS:
            return kept[:limit][::-1]
        read = min(2 * read, _MOST_EVENTS)


def _table(events: Sequence[Any]) -> str:
    """Return a table of what happened; where several instances have had the id, with which of them is meant."""
    if not events:
        return "Nothing is remembered of it.\n"
    headings = ["TIME (UTC)", "CAUSE", "WHAT"]
    rows = [[_time(each["time"]), _cause(each["cause"]), each["sentence"]] for each in events]
    lives = [each.get("incarnation", "")[:_ENOUGH] for each in events]
    if len(set(lives)) > 1:
        headings.insert(1, "INCARNATION")
        for row, life in zip(rows, lives, strict=True):
            row.insert(1, life)
    return as_table(headings, rows)


def _id(asked: Asked, instance: str) -> str:
    return instance if looks_like_id(instance) else id_of(find(asked, INSTANCE, instance))


def _cause(cause: Any) -> str:
    """Return what an event goes back to, in a word or two; who asked is in its sentence."""
    match cause["type"]:
        case "generation":
            return f"wish {cause.get('generation', '')}".strip()
        case "reconcile":
            return "controller"
        case other:
            return str(other)


def _is_said_twice(event: Any) -> bool:
    """Tell whether an event only repeats for programs what others beside it tell: how a server is made anew."""
    facts = event.get("facts", {})
    is_rebuild = facts.get("type") == "Available" and event.get("reason") == "Rebuilding"
    has_ended = facts.get("type") == "Rebuilding" and facts.get("status") == "False"
    return bool(is_rebuild or has_ended)


def _time(text: str) -> str:
    return f"{datetime.fromisoformat(text):%Y-%m-%d %H:%M:%S}"
