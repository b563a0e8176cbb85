"""What can be done to every noun: list it, watch it, show one, make one, change one, give one up."""

import sys
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from remuda.cli.client.session import Query
from remuda.cli.client.watching import changes
from remuda.cli.lookup import Asked
from remuda.cli.naming import looks_like_id, resolve
from remuda.cli.options import About, Format, Waiting
from remuda.cli.output import is_terminal, note, say, show
from remuda.cli.progress import status_of, until, until_gone
from remuda.cli.referring import named, names_of
from remuda.cli.resources import Noun
from remuda.cli.showing.formats import dump, json_text, show_many, show_one
from remuda.cli.showing.tables import as_rows
from remuda.kernel.errors import Unusable

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
