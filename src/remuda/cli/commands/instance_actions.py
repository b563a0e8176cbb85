"""What can be done to an instance: power, its image, its console and its key.

``remuda instance timeline`` and ``explain``: what happened to an instance, and why it is as it is.
"""

import os
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from remuda.cli.crud import find, id_of
from remuda.cli.lookup import HERE, Asked, Where, looks_like_id
from remuda.cli.offers import until_ready
from remuda.cli.options import ABOUT, AT_ONCE, About, Flag, Output, Waiting, within
from remuda.cli.output import as_table, dump, is_terminal, say, show_one
from remuda.cli.output import show as show_text
from remuda.cli.progress import until
from remuda.cli.resources import IMAGE, INSTANCE
from remuda.kernel.errors import Invalid
from remuda.kernel.files import write_private

_MOST_LINES = 100_000
"""What the API gives at once."""


def start(instance: str, /, *, waiting: Waiting = AT_ONCE, where: Where = HERE) -> None:
    """Start an instance that is stopped.

    Parameters
    ----------
    instance
        Its name or id.

    """
    with where.open() as asked:
        found = _do(asked, instance, "start")
        _powered(asked, found, "Running", "runs" if waiting.wait else "is being started", waiting=waiting)


def stop(instance: str, /, *, waiting: Waiting = AT_ONCE, where: Where = HERE) -> None:
    """Stop an instance. It keeps its disk and its addresses, and goes on to cost what it costs.

    Parameters
    ----------
    instance
        Its name or id.

    """
    with where.open() as asked:
        found = _do(asked, instance, "stop")
        _powered(asked, found, "Stopped", "is stopped" if waiting.wait else "is being stopped", waiting=waiting)


def reboot(instance: str, /, *, hard: Flag = False, where: Where = HERE) -> None:
    """Reboot an instance.

    Parameters
    ----------
    instance
        Its name or id.
    hard
        Cut the power, rather than ask the system to reboot.

    """
    with where.open() as asked:
        found = _do(asked, instance, "reboot", {"hard": "true"} if hard else {})
        say(f"The instance {_name(found)} is being rebooted.")


def snapshot(
    instance: str,
    name: str,
    /,
    *,
    about: About = ABOUT,
    waiting: Waiting = AT_ONCE,
    output: Output = "table",
    where: Where = HERE,
) -> None:
    """Make an image of an instance.

    Parameters
    ----------
    instance
        Its name or id.
    name
        What to call the image.

    """
    with where.open() as asked:
        found = find(asked, INSTANCE, instance)
        body = {"metadata": about.metadata({"name": name})}
        made = asked.session.ask("POST", INSTANCE.service, f"{INSTANCE.path}/{id_of(found)}/snapshot", body)
        show_one(
            until_ready(asked, found["status"]["regionId"], made, waiting) if waiting.wait else made,
            IMAGE.details,
            output,
        )


def console(instance: str, /, *, open: Flag = False, where: Where = HERE) -> None:  # noqa: A002  the option's name
    """Print the address at which a browser sees an instance's screen. Whoever has it can use it.

    Parameters
    ----------
    instance
        Its name or id.
    open
        Open it in a browser, too.

    """
    with where.open() as asked:
        url = _look(asked, instance, "consolesession")["url"]
    say(url)
    if open:
        import webbrowser  # noqa: PLC0415  only needed here

        webbrowser.open(url)


def output(instance: str, /, *, lines: int | None = None, where: Where = HERE) -> None:
    """Print what an instance wrote to its console.

    Parameters
    ----------
    instance
        Its name or id.
    lines
        So many lines, counted from the last; by default all that are kept.

    """
    query = {} if lines is None else {"length": str(within("--lines", lines, _MOST_LINES))}
    with where.open() as asked:
        text = str(_look(asked, instance, "consoleoutput", query)["contents"])
    text = _tame(text) if is_terminal(sys.stdout) else text
    show_text(text if text.endswith("\n") or not text else f"{text}\n")


def ssh_key(instance: str, /, *, save: Path | None = None, where: Where = HERE) -> None:
    """Print the private key that opens an instance.

    Parameters
    ----------
    instance
        Its name or id.
    save
        Write it to this file instead, which only you can read: ssh -i takes it as it is. What is there stays.

    """
    with where.open() as asked:
        key = str(_look(asked, instance, "sshkey")["privateKey"])
    if save is None:
        show_text(key if key.endswith("\n") else f"{key}\n")
        return
    try:
        if _is_taken(save, key):
            remedy = "give another name, or remove it first"
            raise Invalid("--save", f"{save} is there already, and was left as it is", remedy=remedy)
        write_private(save, key.encode())
    except OSError as error:
        cause = error.strerror or str(error)
        raise Invalid("--save", f"{save} cannot be written ({cause})", remedy="name a place where it can") from None
    say(f"The key is in {save}.")


def _is_taken(path: Path, key: str) -> bool:
    """Tell whether there is anything else at a path than this key."""
    if path.is_file():
        return path.read_bytes().strip() != key.encode().strip()
    return os.path.lexists(path)


def _do(asked: Asked, instance: str, verb: str, query: dict[str, str] | None = None) -> Any:
    found = find(asked, INSTANCE, instance)
    asked.session.ask("POST", INSTANCE.service, f"{INSTANCE.path}/{id_of(found)}/{verb}", query=query)
    return found


def _look(asked: Asked, instance: str, what: str, query: dict[str, str] | None = None) -> Any:
    return asked.session.get(
        INSTANCE.service, f"{INSTANCE.path}/{id_of(find(asked, INSTANCE, instance))}/{what}", query
    )


def _powered(asked: Asked, instance: Any, wanted: str, told: str, *, waiting: Waiting) -> None:
    """Wait for a power state, if that is asked for, and say what became of it."""
    if waiting.wait:
        until(
            lambda: asked.session.get(INSTANCE.service, f"{INSTANCE.path}/{id_of(instance)}"),
            lambda now: _power(now) == wanted,
            lambda now: _power(now) == "Error",
            limit_s=waiting.limit_s,
            look=INSTANCE.look(_name(instance)),
            progress=lambda now: f"{_name(now)} is {_power(now)}",
            remedy=INSTANCE.remedy.format(name=_name(instance)),
        )
    say(f"The instance {_name(instance)} {told}.")


def _power(instance: Any) -> str:
    return str(instance["status"].get("powerState", "unknown"))


def _name(instance: Any) -> str:
    return str(instance["metadata"]["name"])


def _tame(text: str) -> str:
    """Return what a stranger's system wrote without what would move this terminal's cursor, or worse."""
    return "".join(letter for letter in text if letter.isprintable() or letter in "\n\t")


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
        show_text("".join(f"{line}\n" for line in told["messages"]))


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
    rows = [[_time(each["time"]), _cause(each["cause"]), each["message"]] for each in events]
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
