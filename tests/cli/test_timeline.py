"""How much of a timeline is shown: as many events as were asked for, also where some are for programs alone."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from remuda.cli.client.contexts import ContextsFile, LoginContext, LoginContexts, LoginTokens
from remuda.kernel.secrets import Secret
from tests.kit.processes.terminal import Terminal
from tests.kit.scripted_server import Answer, Server, told

INSTANCE = "11111111-1111-4111-8111-111111111111"


def event(number: int, **more: Any) -> dict[str, Any]:
    return {
        "time": "2026-03-04T05:06:07Z",
        "event": "Moved",
        "cause": {"type": "observation"},
        "message": f"n{number}.",
    } | more


FOR_PROGRAMS = {"reason": "Rebuilding", "facts": {"type": "Available"}}
EVENTS = [event(number, **(FOR_PROGRAMS if number % 5 else {})) for number in range(3000, 0, -1)]
"""The latest first, and only every fifth for users."""


class Past(Server):
    """Answers so many of the events as it is asked for."""

    def answer(self) -> Answer:
        query = parse_qs(urlsplit(self.asked[-1][1]).query)
        return told(EVENTS[: int(query["limit"][0])])


@contextmanager
def asking(terminal: Terminal) -> Iterator[Server]:
    with Past().running() as server:
        context = LoginContext(endpoints={"compute": server.url}, tokens=LoginTokens(access=Secret("x")))
        ContextsFile(terminal.file).update(lambda _: LoginContexts(current="a", contexts={"a": context}))
        yield server


def shown(terminal: Terminal, limit: int) -> list[int]:
    with asking(terminal):
        lines = terminal("instance", "timeline", INSTANCE, "--limit", str(limit)).splitlines()[1:]
    return [int(line.rpartition(" n")[2].rstrip(".")) for line in lines]


@pytest.mark.parametrize("limit", [1, 2, 6, 200])
def test_as_many_events_are_shown_as_were_asked_for(limit: int, terminal: Terminal) -> None:
    assert shown(terminal, limit) == [3000 - 5 * number for number in range(limit)][::-1]


def test_no_more_is_read_than_the_api_gives_at_once(terminal: Terminal) -> None:
    assert len(shown(terminal, 1000)) == 200


def test_programs_are_told_all(terminal: Terminal) -> None:
    with asking(terminal) as server:
        assert terminal.json("instance", "timeline", INSTANCE, "--limit", "7") == EVENTS[:7][::-1]
    assert len(server.asked) == 1
