"""What can be done to every noun: list it, watch it, show one, make one, change one, give one up.

Names where tables would have ids: people know what they called things.

What instances hold: if it cannot be given up for that, the instances are named.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import msgspec

from remuda.cli.client.session import Query, changes
from remuda.cli.lookup import Asked, looks_like_id, resolve
from remuda.cli.options import About, Waiting
from remuda.cli.output import (
    Columns,
    Format,
    as_rows,
    dump,
    is_terminal,
    json_text,
    note,
    say,
    show,
    show_many,
    show_one,
)
from remuda.cli.progress import status_of, until, until_gone
from remuda.cli.resources import INSTANCE, NETWORK, REGION, SECURITY_GROUP, SSH_CA, Noun
from remuda.kernel.errors import Forbidden, RemudaError, Unusable


def named(columns: Columns, names: Mapping[str, str]) -> Columns:
    """Return columns that show names; where none is known, and of the thing itself, the id."""
    return {heading: cell if heading == "ID" else _named(cell, names) for heading, cell in columns.items()}


def names_of(asked: Asked, noun: Noun, things: Sequence[Any], columns: Columns) -> dict[str, str]:
    """Return the names of what these columns of these things name by id, without those that cannot be read."""
    unknown = {
        word
        for heading, cell in columns.items()
        for thing in things
        for word in cell(thing).split(", ")
        if heading != "ID" and looks_like_id(word)
    }
    names: dict[str, str] = {}
    for each in noun.refers:
        if unknown - names.keys():
            names |= _names(asked, each)
    return names


def _named(cell: Callable[[Any], str], names: Mapping[str, str]) -> Callable[[Any], str]:
    return lambda thing: ", ".join(names.get(word, word) for word in cell(thing).split(", "))


def _names(asked: Asked, noun: Noun) -> dict[str, str]:
    try:
        found = asked.session.get_all(noun.service, noun.path, None if noun is REGION else asked.place.query)
    except RemudaError:
        return {}
    return {each["metadata"]["id"]: each["metadata"]["name"] for each in found}


_WIDTHS = {"ID": 36, "STATUS": 14, "POWER": 10, "PRIVATE IP": 15, "PUBLIC IP": 15, "PREFIX": 18, "MADE": 16}
"""Of the columns of a table that is written row by row."""
_OTHER_WIDTH = 20


def find(asked: Asked, noun: Noun, wanted: str, more: Query | None = None) -> Any:
    """Return the thing of this name or id."""
    query = None if looks_like_id(wanted) else {**asked.place.query, **(more or {})}
    return resolve(asked.session, noun.service, noun.path, wanted, noun.word, query)


def id_of(thing: Any) -> str:
    """Return its id."""
    return str(thing["metadata"]["id"])


def list_all(asked: Asked, noun: Noun, output: Format, *, watch: bool = False, more: Query | None = None) -> None:
    """Show all things of a project, or what becomes of them."""
    query = {**asked.place.query, **(more or {})}
    if watch:
        _watch(asked, noun, query, output)
        return
    things = asked.session.get_all(noun.service, noun.path, query)
    names = names_of(asked, noun, things, noun.columns) if output == "table" else {}
    show_many(things, named(noun.columns, names), output, empty=f"There is no {noun.word} here.")


def show_found(asked: Asked, noun: Noun, thing: Any, output: Format, more: Mapping[str, str] | None = None) -> None:
    """Show one thing; `more` are further names of what it names by id."""
    names = names_of(asked, noun, [thing], noun.details) if output == "table" else {}
    show_one(thing, named(noun.details, {**names, **(more or {})}), output)


def make_one(asked: Asked, noun: Noun, body: Any, *, waiting: Waiting) -> Any:
    """Make something, and return it as it is, or once it is there."""
    return settled(asked, noun, asked.session.ask("POST", noun.service, noun.path, body), waiting=waiting)


def change_one(
    asked: Asked, noun: Noun, wanted: str, about: About, change: Callable[[dict[str, Any]], dict[str, Any]]
) -> Any:
    """Have something be as `change` makes it of what it is; if somebody else changes it meanwhile, nothing is done."""
    path = f"{noun.path}/{id_of(find(asked, noun, wanted))}"
    found, state = asked.session.read(noun.service, path)
    body = {"metadata": about.metadata(found["metadata"]), "spec": change(dict(found["spec"]))}
    return asked.session.ask("PUT", noun.service, path, body, match=state)


def settled(asked: Asked, noun: Noun, thing: Any, *, waiting: Waiting) -> Any:
    """Return a thing as it is, or once it is as it was asked to be."""
    if not waiting.wait:
        return thing
    path = f"{noun.path}/{id_of(thing)}"
    return until(
        lambda: asked.session.get(noun.service, path),
        lambda now: now["metadata"]["provisioningStatus"] == "provisioned",
        lambda now: now["metadata"]["provisioningStatus"] == "error",
        limit_s=waiting.limit_s,
        look=noun.look(thing["metadata"]["name"]),
        remedy=noun.remedy.format(name=thing["metadata"]["name"]),
    )


def delete_one(asked: Asked, noun: Noun, wanted: str, *, yes: bool, waiting: Waiting, lost: str = "") -> None:
    """Give something up, once somebody has agreed; if it is another by then, of the same name, nothing is done."""
    path = f"{noun.path}/{id_of(find(asked, noun, wanted))}"
    thing, state = asked.session.read(noun.service, path)
    name = thing["metadata"]["name"]
    agreed(f"The {noun.word} {name} will be deleted{lost}, and cannot be had back.", yes=yes)
    asked.session.ask("DELETE", noun.service, path, match=state)
    if waiting.wait:
        until_gone(
            lambda: asked.session.read(noun.service, path),
            lambda now: _is_another(now, (thing, state)),
            limit_s=waiting.limit_s,
            look=noun.look(name),
            progress=lambda now: status_of(now[0]),
        )
    say(f"The {noun.word} {name} {'is gone' if waiting.wait else 'is being deleted'}.")


def agreed(what: str, *, yes: bool, ask: Callable[[str], str] | None = None) -> None:
    """Say what is about to happen, and go on only if somebody agrees."""
    if yes:
        return
    if ask is None and not is_terminal(sys.stdin):
        raise Unusable(f"{what} Nobody is there to ask: say --yes if that is meant.")
    answer = (ask or _asked)(f"{what} Go on? [y/N] ")
    if answer.strip().lower() not in {"y", "yes"}:
        raise Unusable("Nothing was done.")


def _asked(question: str) -> str:
    """Ask whoever sits there. Who hangs up has said nothing."""
    note(question, end="")
    return sys.stdin.readline()


def _is_another(now: tuple[Any, str], deleted: tuple[Any, str]) -> bool:
    """Tell whether a thing, with its state, was made after one was deleted: of the same name, it has the same id."""
    (thing, state), (before, state_before) = now, deleted
    if thing["metadata"]["creationTime"] != before["metadata"]["creationTime"]:
        return True
    return state != state_before and not thing["metadata"].get("deletionTime")  # both were made within a second


def _watch(asked: Asked, noun: Noun, query: Query, output: Format) -> None:
    """Show each thing that is there, and then each change, until somebody has seen enough."""
    widths = [8, *(_WIDTHS.get(heading, _OTHER_WIDTH) for heading in noun.columns)]
    columns, names = noun.columns, dict[str, str]()
    if output == "table":
        show(as_rows([["CHANGE", *columns]], widths))
    for change, thing in changes(asked.session, noun.service, noun.path, query):
        if output == "table":
            names |= names_of(asked, noun, [thing], named(columns, names))
            show(as_rows([[change, *(cell(thing) for cell in named(columns, names).values())]], widths))
        elif output == "name":
            say(f"{change} {thing['metadata']['name']}")
        else:
            show(_document({"type": change, "object": thing}, output))


def _document(value: Any, output: Format) -> str:
    """Return a change as one document of a stream of them: a line of JSON, or a part of YAML."""
    if output == "yaml":
        return f"---\n{dump(value, output)}"
    return json_text(msgspec.json.encode(value)) + "\n"


_SHOWN = 5
_REFUSED = "is in use"
_HELD: Final[Mapping[str, Callable[[Any], Sequence[str]]]] = {
    NETWORK.word: lambda instance: [instance["status"]["networkId"]],
    SECURITY_GROUP.word: lambda instance: (instance["spec"].get("networking") or {}).get("securityGroups", ()),
    SSH_CA.word: lambda instance: [instance["spec"].get("sshCertificateAuthorityId", "")],
}
"""The ids of what an instance holds, by what sort of thing that is."""


@contextmanager
def naming_holders(asked: Asked, noun: Noun, wanted: str) -> Iterator[None]:
    """Have the refusal to give something up say which instances hold it, as far as they can be seen."""
    try:
        yield
    except Forbidden as refused:
        if _REFUSED in refused.message and (names := _holders(asked, noun, wanted)):
            refused.message = refused.message.replace(_REFUSED, f"{_REFUSED} by {_told(names)}", 1)
        raise


def _holders(asked: Asked, noun: Noun, wanted: str) -> list[str]:
    try:
        held = id_of(find(asked, noun, wanted))
        instances = asked.session.get_all(INSTANCE.service, INSTANCE.path, asked.place.query)
    except RemudaError:
        return []
    return sorted(each["metadata"]["name"] for each in instances if held in _HELD[noun.word](each))


def _told(names: Sequence[str]) -> str:
    if len(names) == 1:
        return f"the instance {names[0]}"
    shown, left = ", ".join(names[:_SHOWN]), len(names) - _SHOWN
    return f"{len(names)} instances ({shown}{f' and {left} more' if left > 0 else ''})"
