"""What can be done to an instance: power, its image, its console and its key."""

import os
import sys
from pathlib import Path
from typing import Any

from remuda.cli.crud import find, id_of
from remuda.cli.imaging import until_ready
from remuda.cli.lookup import HERE, Asked, Where
from remuda.cli.options import ABOUT, AT_ONCE, About, Flag, Output, Waiting, within
from remuda.cli.output import is_terminal, say
from remuda.cli.output import show as show_text
from remuda.cli.progress import until
from remuda.cli.resources import IMAGE, INSTANCE
from remuda.cli.showing.formats import show_one
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
