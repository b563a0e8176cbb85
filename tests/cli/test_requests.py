"""Sessions: requests are sent again where that is safe, tokens are refreshed, and streams are resumed."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from remuda.cli.client.contexts import ContextsFile, LoginContext, LoginTokens
from remuda.cli.client.session import ClientSession
from remuda.cli.client.transport import Connections
from remuda.kernel.clock import SystemClock
from remuda.kernel.errors import (
    Forbidden,
    Malformed,
    NotFound,
    OutcomeUnknown,
    RemudaError,
    Unauthenticated,
    Unavailable,
    Unusable,
)
from remuda.kernel.secrets import Secret
from tests.kit.scripted_server import Answer, Server, rejection, told

HEAVY = {"apsw", "cryptography", "joserfc", "rich", "structlog", "httptools", "yaml", "jinja2", "prometheus_client"}
ResultT = TypeVar("ResultT")


class NoWait(SystemClock):
    """A clock whose sleeps are over at once."""

    async def sleep(self, seconds: float) -> None:  # noqa: ARG002  they take no time
        await asyncio.sleep(0)


@asynccontextmanager
async def asking(home: Path, *answers: Answer) -> AsyncIterator[tuple[Server, ClientSession]]:
    """A session of somebody who is logged in at a server that answers this."""
    with Server(*answers).running() as server:
        tokens = LoginTokens(access=Secret("first"), refresh=Secret("renewing"))
        context = LoginContext(endpoints={"identity": server.url, "region": server.url}, tokens=tokens)
        file = ContextsFile(home / "contexts.json")
        file.update(lambda contexts: contexts.with_context("me", context))
        async with ClientSession("me", context, file, clock=NoWait()) as session:
            yield server, session


async def get(session: ClientSession) -> Any:
    return await session.get("region", "/x", Any)


async def put(session: ClientSession) -> Any:
    return await session.send("PUT", "region", "/x", {"a": 1}, response_type=dict[str, Any])


async def rejected(
    error: type[RemudaError], use: Callable[[ClientSession], Awaitable[Any]], session: ClientSession
) -> str:
    """Return the message of the error that this use of a session raises."""
    with pytest.raises(error) as raised:
        await use(session)
    return raised.value.message


@pytest.mark.parametrize(
    "trouble", [rejection(503, "unavailable"), rejection(429, "too_many"), rejection(409, "in_flight"), None]
)
async def test_what_went_astray_is_sent_again_under_its_key(trouble: Answer, tmp_path: Path) -> None:
    async with asking(tmp_path, trouble, trouble, told({"a": 1})) as (server, session):
        assert await put(session) == {"a": 1}
    keys = {headers["idempotency-key"] for _, _, headers in server.asked}
    assert (len(server.asked), len(keys)) == (3, 1)


async def test_what_never_works_is_told_after_a_while(tmp_path: Path) -> None:
    busy = rejection(503, "unavailable", "Not now: try later.")
    async with asking(tmp_path, busy, busy, busy) as (_, session):
        assert await rejected(Unavailable, get, session) == "Not now: try later."
    async with asking(tmp_path, None, None, None) as (server, session):
        assert (await rejected(Unavailable, get, session)).startswith(f"The server {server.url} cannot be reached (")
    async with asking(tmp_path, None, None, None) as (_, session):
        assert "it may still take effect" in await rejected(OutcomeUnknown, put, session)


async def test_a_rejection_is_not_sent_again_and_has_a_remedy(tmp_path: Path) -> None:
    words = "operation is not allowed by rbac: operation 'update' on endpoint 'x' is not permitted"
    async with asking(tmp_path, rejection(403, "forbidden", words)) as (_, session):
        said = await rejected(Forbidden, put, session)
    assert said == f"O{words[1:]}: ask an administrator of the organization for this permission."
    problems = [{"pointer": "/a", "reason": "is no number"}, {"pointer": "/b", "reason": "is missing"}]
    wrong = rejection(400, "malformed", "the request body is not valid: /a is no number", problems=problems)
    async with asking(tmp_path, wrong) as (_, session):
        said = await rejected(Malformed, put, session)
    assert said == "The request body is not valid: /a is no number (/b is missing)."


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        (
            "total gpus allocation of 3 would exceed quota limit of 2",
            "the operator of the platform can raise the limit.",
        ),
        (
            "total gpus allocation of 3 would exceed project quota limit of 2",
            "shows the usage, and an administrator of the organization can raise the limit.",
        ),
        (
            "operation is not allowed by rbac: operation 'update' on endpoint 'identity:quotas' is not permitted",
            "ask the operator of the platform.",
        ),
        (
            "operation is not allowed by rbac: operation 'update' on endpoint 'identity:projects' is not permitted",
            "ask an administrator of the organization for this permission.",
        ),
    ],
)
async def test_a_rejection_says_who_can_lift_it(words: str, remedy: str, tmp_path: Path) -> None:
    async with asking(tmp_path, rejection(403, "forbidden", words)) as (_, session):
        said = await rejected(Forbidden, put, session)
    assert said.startswith(f"{words[:1].upper()}{words[1:]}: ")
    assert said.endswith(remedy)


async def test_what_is_no_answer_of_ours_is_one_sentence(tmp_path: Path) -> None:
    page: Answer = (200, {}, b"<html>Please log in</html>")
    async with asking(tmp_path, page) as (server, session):
        with pytest.raises(Unavailable) as refused:
            await session.get("region", "/x", dict[str, Any], {"token": "secret"})
    assert server.url in refused.value.message
    assert "its response does not match the route" in refused.value.message
    assert "secret" not in refused.value.message


async def test_a_list_is_read_to_its_end(tmp_path: Path) -> None:
    async with asking(tmp_path, told([1, 2], x_continue="more"), told([3])) as (server, session):
        found = await session.list_all("region", "/x", int, {"tag": ["a=b", "c=d"], "none": None})
    assert found == [1, 2, 3]
    assert [path for _, path, _ in server.asked] == [
        "/x?tag=a%3Db&tag=c%3Dd&limit=500",
        "/x?tag=a%3Db&tag=c%3Dd&limit=500&continue=more",
    ]


async def test_a_change_can_be_tied_to_what_was_read(tmp_path: Path) -> None:
    async with asking(tmp_path, told({"a": 1}, ETag='"one"'), told(None)) as (server, session):
        found, etag = await session.get_with_etag("region", "/x", dict[str, int])
        await session.send("PUT", "region", "/x", found, response_type=type(None), if_match=etag)
    assert server.asked[1][2]["if-match"] == '"one"'


async def watched(session: ClientSession) -> Any:
    return await anext(session.watch("region", "/x", int, {}))


@pytest.mark.parametrize("way", [get, watched])
async def test_what_is_no_address_is_one_sentence(
    way: Callable[[ClientSession], Awaitable[Any]], tmp_path: Path
) -> None:
    context = LoginContext(endpoints={"region": "http://here:x"}, tokens=LoginTokens(access=Secret("first")))
    async with ClientSession("me", context, ContextsFile(tmp_path / "contexts.json")) as session:
        said = await rejected(Unusable, way, session)
    assert said == "http://here:x is not a valid address: give one such as http://127.0.0.1:8080."


EXPIRED = rejection(401, "unauthenticated")
RENEWED = told({"access_token": "second", "refresh_token": "later"})


def events(*lines: str) -> Answer:
    return 200, {"Content-Type": "text/event-stream"}, "".join(lines).encode()


def event(kind: str, data: str, place: str | None = None) -> str:
    return f"event: {kind}\n" + ("" if place is None else f"id: {place}\n") + f"data: {data}\n\n"


@pytest.mark.parametrize(
    ("way", "answer", "result"), [(get, told({"a": 1}), {"a": 1}), (watched, events(event("added", "1")), ("added", 1))]
)
async def test_a_token_that_has_run_out_is_renewed_and_kept(
    way: Callable[[ClientSession], Awaitable[Any]], answer: Answer, result: Any, tmp_path: Path
) -> None:
    async with asking(tmp_path, EXPIRED, RENEWED, answer) as (server, session):
        assert await way(session) == result
    assert [headers.get("authorization") for _, _, headers in server.asked] == ["Bearer first", None, "Bearer second"]
    kept = ContextsFile(tmp_path / "contexts.json").read().contexts["me"].tokens
    assert (kept.access.reveal(), kept.refresh and kept.refresh.reveal()) == ("second", "later")


async def test_a_login_that_cannot_be_renewed_has_ended(tmp_path: Path) -> None:
    async with asking(tmp_path, EXPIRED, rejection(400, "invalid_grant")) as (_, session):
        said = await rejected(Unauthenticated, get, session)
    assert said == "You are no longer logged in (context me): log in again with remuda login."
    busy = rejection(503, "unavailable")
    async with asking(tmp_path, EXPIRED, busy, busy, busy) as (_, session):
        assert "cannot refresh the login now" in await rejected(Unavailable, get, session)
    assert ContextsFile(tmp_path / "contexts.json").read().contexts["me"].tokens.access.reveal() == "first"


async def test_a_stream_that_ends_is_taken_up_where_it_was_left(tmp_path: Path) -> None:
    streams = (
        events(event("added", "1"), event("bookmark", "{}", "five"), ":\n\n", event("end", "closing", "six")),
        None,
        events(event("modified", "2", "seven")),
        rejection(410, "gone"),
        events(event("added", "3"), event("bookmark", "{}", "nine"), event("deleted", "3", "ten")),
        rejection(404, "not_found"),
    )
    async with asking(tmp_path, *streams) as (server, session):
        changes = session.watch("region", "/x", int, {"projectID": "p"})
        seen = [await anext(changes) for _ in range(4)]
        with pytest.raises(NotFound):
            await anext(changes)
    assert seen == [("added", 1), ("modified", 2), ("added", 3), ("deleted", 3)]
    cursors = [headers.get("last-event-id") for _, _, headers in server.asked]
    assert cursors == [None, "six", "six", "seven", None, "ten"]
    assert server.asked[0][1] == "/x?projectID=p&watch=true"


async def test_a_stream_that_cannot_be_opened_is_told(tmp_path: Path) -> None:
    async with asking(tmp_path, None) as (_, session):
        assert "cannot be reached" in await rejected(Unavailable, watched, session)


async def test_who_is_trusted_is_read_only_where_something_is_encrypted() -> None:
    async with Connections() as connections:
        transports = [connections.at(url)[0] for url in ("http://here/identity", "https://there/identity")]
        assert connections.at("http://here/region") == (transports[0], "/region"), "one transport for each origin"
        pools = [transport._http._transport._pool for transport in transports]  # type: ignore[attr-defined]  # no other way
    assert [len(pool._ssl_context.get_ca_certs()) > 0 for pool in pools] == [False, True]
    assert all(pool._ssl_context.check_hostname for pool in pools)


def test_a_command_that_asks_imports_nothing_heavy() -> None:
    code = "import remuda.cli.app, remuda.cli.commands.instance, sys; print(*sys.modules)"
    loaded = set(
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    )
    assert not loaded & HEAVY
    assert not [name for name in loaded if name.endswith((".routes", ".service", ".controller", ".sagas"))]
    assert not [name for name in loaded if name.startswith(("remuda.store.sqlite", "remuda.store.kubernetes"))]
