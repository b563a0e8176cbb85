"""``remuda instance timeline`` and ``explain``: what happened to an instance, and why it is as it is."""

from datetime import datetime
from typing import Any

from remuda.cli.doing import find, id_of
from remuda.cli.naming import looks_like_id
from remuda.cli.nouns import INSTANCE
from remuda.cli.options import Output
from remuda.cli.output import show as show_text
from remuda.cli.showing.formats import dump
from remuda.cli.showing.tables import as_table
from remuda.cli.where import HERE, Asked, Where

__all__ = ["explain", "timeline"]


def timeline(instance: str, /, *, limit: int = 100, output: Output = "table", where: Where = HERE) -> None:
    """Show what happened to an instance and what caused it, the latest last.

    Parameters
    ----------
    instance
        Its name or id; of one that is gone, its id.
    limit
        So many events, counted from the latest.

    """
    with where.open() as asked:
        path = f"{INSTANCE.path}/{_id(asked, instance)}/timeline"
        events = asked.session.get(INSTANCE.service, path, {"limit": str(limit)})[::-1]
    if output == "name":
        show_text("".join(f"{each['event']}\n" for each in events))
    elif output != "table":
        show_text(dump(events, output))
    else:
        rows = [[_time(each["time"]), _cause(each["cause"]), each["sentence"]] for each in events]
        show_text(as_table(["TIME (UTC)", "CAUSE", "WHAT"], rows) if rows else "Nothing is remembered of it.\n")


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


def _time(text: str) -> str:
    return f"{datetime.fromisoformat(text):%Y-%m-%d %H:%M:%S}"
