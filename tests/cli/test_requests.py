"""How commands ask: again where that is safe, with the next token, and a stream where the last one was left."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from remuda.cli.client import session as watching
from remuda.cli.client.contexts import Context, ContextsFile, Tokens
from remuda.cli.client.session import Session
from remuda.cli.client.transport import connected
from remuda.kernel.errors import Forbidden, Malformed, NotFound, Unauthenticated, Unavailable
from remuda.kernel.secrets import Secret
from tests.kit.scripted_server import Answer, Server, refusal, told

HEAVY = {"apsw", "asyncio", "cryptography", "joserfc", "rich", "structlog", "uvicorn", "yaml"}


@contextmanager
def asking(home: Path, *answers: Answer) -> Iterator[tuple[Server, Session]]:
    """Somebody who is logged in at a server that answers this."""
    with Server(*answers).running() as server:
        tokens = Tokens(access=Secret("first"), refresh=Secret("renewing"))
        context = Context(endpoints={"identity": server.url, "region": server.url}, tokens=tokens)
        file = ContextsFile(home / "contexts.json")
        file.change(lambda all_: all_.with_("me", context))
        with Session("me", context, file, sleep=lambda _: None) as session:
            yield server, session


@pytest.mark.parametrize(
    "trouble", [refusal(503, "unavailable"), refusal(429, "too_many"), refusal(409, "in_flight"), None]
)
def test_what_went_astray_is_sent_again_under_its_key(trouble: Answer, tmp_path: Path) -> None:
    with asking(tmp_path, trouble, trouble, told({"a": 1})) as (server, session):
        assert session.ask("POST", "region", "/x", {}) == {"a": 1}
    keys = {headers["idempotency-key"] for _, _, headers in server.asked}
    assert (len(server.asked), len(keys)) == (3, 1)


def test_what_never_works_is_told_after_a_while(tmp_path: Path) -> None:
    busy = refusal(503, "unavailable", "Not now: try later.")
    with (
        asking(tmp_path, busy, busy, busy) as (_, session),
        pytest.raises(Unavailable, match=r"^Not now: try later\.$"),
    ):
        session.get("region", "/x")
    with asking(tmp_path, None, None, None) as (_, session), pytest.raises(Unavailable, match="does not answer"):
        session.get("region", "/x")


def test_a_refusal_is_not_sent_again_and_has_a_remedy(tmp_path: Path) -> None:
    words = "operation is not allowed by rbac: operation 'update' on endpoint 'x' is not permitted"
    with asking(tmp_path, refusal(403, "forbidden", words)) as (_, session), pytest.raises(Forbidden) as refused:
        session.ask("PUT", "region", "/x", {})
    assert refused.value.message == f"O{words[1:]}: ask an administrator of the organization for that right."
    problems = [{"pointer": "/a", "reason": "is no number"}, {"pointer": "/b", "reason": "is missing"}]
    wrong = refusal(400, "malformed", "the request body is not valid: /a is no number", problems=problems)
    with asking(tmp_path, wrong) as (_, session), pytest.raises(Malformed) as malformed:
        session.ask("PUT", "region", "/x", {})
    assert malformed.value.message == "The request body is not valid: /a is no number (/b is missing)."


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        ("total gpus allocation of 3 would exceed quota limit of 2", "whoever runs the platform can raise it."),
        (
            "total gpus allocation of 3 would exceed project quota limit of 2",
            "remuda quota show --of project says what is used, and an administrator of the organization can raise it.",
        ),
        (
            "operation is not allowed by rbac: operation 'update' on endpoint 'identity:quotas' is not permitted",
            "whoever runs the platform can do that, so ask them.",
        ),
        (
            "operation is not allowed by rbac: operation 'update' on endpoint 'identity:projects' is not permitted",
            "ask an administrator of the organization for that right.",
        ),
    ],
)
def test_a_refusal_says_who_can_lift_it(words: str, remedy: str, tmp_path: Path) -> None:
    with asking(tmp_path, refusal(403, "forbidden", words)) as (_, session), pytest.raises(Forbidden) as refused:
        session.ask("PUT", "region", "/x", {})
    assert refused.value.message.startswith(f"{words[:1].upper()}{words[1:]}: ")
    assert refused.value.message.endswith(remedy)


def test_what_is_no_answer_of_ours_is_one_sentence(tmp_path: Path) -> None:
    page: Answer = (200, {}, b"<html>Please log in</html>")
    with asking(tmp_path, page) as (server, session), pytest.raises(Unavailable) as refused:
        session.get("region", "/x", {"token": "secret"})
    assert f"{server.url}/x" in refused.value.message
    assert "its answer is no JSON" in refused.value.message
    assert "secret" not in refused.value.message


def test_a_list_is_read_to_its_end(tmp_path: Path) -> None:
    with asking(tmp_path, told([1, 2], x_continue="more"), told([3])) as (server, session):
        assert session.get_all("region", "/x", {"tag": ["a=b", "c=d"], "none": None}) == [1, 2, 3]
    assert [path for _, path, _ in server.asked] == [
        "/x?tag=a%3Db&tag=c%3Dd&limit=500",
        "/x?tag=a%3Db&tag=c%3Dd&limit=500&continue=more",
    ]


def test_a_change_can_be_tied_to_what_was_read(tmp_path: Path) -> None:
    with asking(tmp_path, told({"a": 1}, ETag='"one"'), told(None)) as (server, session):
        found, state = session.read("region", "/x")
        session.ask("PUT", "region", "/x", found, match=state)
    assert server.asked[1][2]["if-match"] == '"one"'


def streamed(session: Session) -> bytes:
    with session.stream("region", "/x", {}) as chunks:
        return b"".join(chunks)


@pytest.mark.parametrize("way", [lambda session: session.get("region", "/x"), streamed])
def test_what_is_no_address_is_one_sentence(way: Callable[[Session], Any], tmp_path: Path) -> None:
    context = Context(endpoints={"region": "http://here:x"}, tokens=Tokens(access=Secret("first")))
    with (
        Session("me", context, ContextsFile(tmp_path / "contexts.json")) as session,
        pytest.raises(Unavailable, match=r"^http://here:x/x is no address: give one such as http://127.0.0.1:8080\.$"),
    ):
        way(session)


EXPIRED = refusal(401, "unauthenticated")
RENEWED = told({"access_token": "second", "refresh_token": "later"})


@pytest.mark.parametrize("way", [lambda session: session.get("region", "/x"), streamed])
def test_a_token_that_has_run_out_is_renewed_and_kept(way: Callable[[Session], Any], tmp_path: Path) -> None:
    with asking(tmp_path, EXPIRED, RENEWED, told({"a": 1})) as (server, session):
        assert way(session) in ({"a": 1}, b'{"a":1}')
    assert [headers.get("authorization") for _, _, headers in server.asked] == ["Bearer first", None, "Bearer second"]
    kept = ContextsFile(tmp_path / "contexts.json").read().contexts["me"].tokens
    assert (kept.access.reveal(), kept.refresh and kept.refresh.reveal()) == ("second", "later")


def test_a_login_that_cannot_be_renewed_has_ended(tmp_path: Path) -> None:
    spent = refusal(400, "invalid_grant")
    with (
        asking(tmp_path, EXPIRED, spent) as (_, session),
        pytest.raises(
            Unauthenticated, match=r"You are no longer logged in \(context me\): log in again with remuda login"
        ),
    ):
        session.get("region", "/x")
    with (
        asking(tmp_path, EXPIRED, refusal(503, "unavailable")) as (_, session),
        pytest.raises(Unavailable, match="cannot renew the login now"),
    ):
        session.get("region", "/x")
    assert ContextsFile(tmp_path / "contexts.json").read().contexts["me"].tokens.access.reveal() == "first"


def events(*lines: str) -> Answer:
    return 200, {"Content-Type": "text/event-stream"}, "".join(lines).encode()


def event(kind: str, data: str, place: str | None = None) -> str:
    return f"event: {kind}\n" + ("" if place is None else f"id: {place}\n") + f"data: {data}\n\n"


def test_a_stream_that_ends_is_taken_up_where_it_was_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(watching, "pause", lambda _: None)
    streams = (
        events(event("added", "1"), event("bookmark", "{}", "five"), ":\n\n", event("end", "closing", "six")),
        None,
        events(event("modified", "2", "seven")),
        refusal(410, "gone"),
        events(event("added", "3"), event("bookmark", "{}", "nine"), event("deleted", "3", "ten")),
        refusal(404, "not_found"),
    )
    with asking(tmp_path, *streams) as (server, session):
        changes = watching.changes(session, "region", "/x", {"projectID": "p"})
        seen = [next(changes) for _ in range(4)]
        with pytest.raises(NotFound):
            next(changes)
    assert seen == [("added", 1), ("modified", 2), ("added", 3), ("deleted", 3)]
    assert [headers.get("last-event-id") for _, _, headers in server.asked] == [
        None,
        "six",
        "six",
        "seven",
        None,
        "ten",
    ]
    assert server.asked[0][1] == "/x?projectID=p&watch=true"


def test_a_stream_that_cannot_be_opened_is_told(tmp_path: Path) -> None:
    with asking(tmp_path, None) as (_, session), pytest.raises(Unavailable, match="does not answer"):
        next(watching.changes(session, "region", "/x", {}))


def test_who_is_trusted_is_read_only_where_something_is_encrypted() -> None:
    with connected(["http://here"]) as plain, connected(["http://here", "https://there"]) as encrypted:
        pools = [client._transport._pool for client in (plain, encrypted)]  # type: ignore[attr-defined]  # no other way
    assert [len(pool._ssl_context.get_ca_certs()) > 0 for pool in pools] == [False, True]
    assert all(pool._ssl_context.check_hostname for pool in pools)


def test_a_command_that_asks_imports_nothing_heavy() -> None:
    code = "import remuda.cli.app, remuda.cli.commands.instance, sys; print(*sys.modules)"
    loaded = set(
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    )
    assert not loaded & HEAVY
    assert not [name for name in loaded if name.startswith(("remuda.compute", "remuda.region", "remuda.identity"))]
    assert not [name for name in loaded if name.startswith("remuda.store")]
