"""Rejecting in the words of OAuth2, the headers that a handler is given, and who pays by the path."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from remuda.access.principal import Principal
from remuda.http.audit import STREAM, SYSTEM
from remuda.http.authentication import PrincipalClaim, acting_for
from remuda.http.proxies import ForwardingProxies
from remuda.kernel.errors import OAuthError, Unauthenticated
from remuda.kernel.secrets import Secret
from tests.kit.sample_api.browser import ORGANIZATION, PLACE, PROJECT, Open, TokenRead, opened

ANNA = Principal(subject="anna@example.com", type="user")
FORM = {"grant_type": "authorization_code"}


def tell(tack: Open, reply: Any) -> None:
    def act() -> Any:
        if isinstance(reply, Exception):
            raise reply
        return reply

    tack.service.reply = act


async def test_what_oauth_answers_is_not_to_be_kept(tmp_path: Path) -> None:
    async with opened(tmp_path) as tack:
        tell(tack, TokenRead(access_token=Secret("sesame")))
        reply = await tack.client.post("/token", form=FORM)
        assert (reply.status, reply.json) == (200, {"access_token": "sesame"})
        assert (reply.headers["cache-control"], reply.headers["pragma"]) == ("no-store", "no-cache")


async def test_oauth_rejects_in_its_own_words(tmp_path: Path) -> None:
    async with opened(tmp_path) as tack:
        tell(tack, OAuthError("invalid_grant", "the code is used: log in again"))
        reply = await tack.client.post("/token", form=FORM)
        told = {"error": "invalid_grant", "error_description": "the code is used: log in again"}
        assert (reply.status, reply.json) == (400, told)
        assert (reply.headers["cache-control"], reply.headers["pragma"]) == ("no-store", "no-cache")


async def test_a_client_is_told_how_to_show_who_it_is(tmp_path: Path) -> None:
    async with opened(tmp_path) as tack:
        challenge = (b"www-authenticate", b'Basic realm="remuda"')
        tell(tack, OAuthError("invalid_client", "the client is not known", 401, headers=[challenge]))
        reply = await tack.client.post("/token", form=FORM)
        assert (reply.status, reply.json["error"]) == (401, "invalid_client")
        assert reply.headers["www-authenticate"] == 'Basic realm="remuda"'


@pytest.mark.parametrize(
    ("error", "status", "word"),
    [
        (Unauthenticated("token is invalid or has expired"), 401, "access_denied"),
        (RuntimeError("sesame"), 500, "server_error"),
    ],
)
async def test_other_errors_of_oauth_are_as_everywhere(
    tmp_path: Path, error: Exception, status: int, word: str
) -> None:
    async with opened(tmp_path) as tack:
        tell(tack, error)
        reply = await tack.client.post("/token", form=FORM)
        assert (reply.status, reply.json["error"], len(reply.json["trace_id"])) == (status, word, 32)
        assert reply.headers["cache-control"] == "no-store"
        malformed = await tack.client.post("/token", form={})
        assert (malformed.status, malformed.json["error"]) == (400, "invalid_request")
        assert malformed.json["problems"] == [{"pointer": "/grant_type", "reason": "is required"}]
        assert malformed.headers["cache-control"] == "no-store"


async def test_a_rejection_of_oauth_elsewhere_is_an_error_like_any(tmp_path: Path) -> None:
    async with opened(tmp_path) as tack:
        tell(tack, OAuthError("access_denied", "the user is not active", 401))
        page = await tack.client.get("/login")
        assert (page.status, page.media) == (401, "text/html")
        assert b"the user is not active" in page.body


async def test_a_handler_is_given_the_headers_that_its_route_declares(tmp_path: Path) -> None:
    async with opened(tmp_path) as tack:
        reply = await tack.client.get("/headers", cookie="a=1; b=\xe9", authorization="Basic YTpi", x_other="x")
        assert reply.json["headers"] == {"cookie": "a=1; b=é", "authorization": "Basic YTpi"}
        assert reply.json["peer"] == "127.0.0.1"
        others = await tack.client.having("good").get(PLACE, x_flavour="mint")
        assert others.json["headers"] == {}


async def test_a_declared_header_must_not_come_twice(tmp_path: Path) -> None:
    async with opened(tmp_path) as tack:
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        async def receive() -> Any:
            return {"type": "http.request", "body": b""}

        def scope(*names: bytes) -> dict[str, Any]:
            headers = [(name, b"1") for name in names]
            bare = {"type": "http", "method": "GET", "path": "/headers", "query_string": b"", "client": None}
            return {**bare, "headers": headers}

        await tack.api(scope(b"x-flavour", b"x-flavour"), receive, send)
        assert sent[0]["status"] == 400
        assert msgspec.json.decode(sent[1]["body"])["problems"][0]["pointer"] == "x-flavour"
        sent.clear()
        await tack.api(scope(b"x-flavour", b"x-other", b"x-other"), receive, send)
        assert sent[0]["status"] == 200
        assert msgspec.json.decode(sent[1]["body"])["peer"] == "", "nobody knows"


async def test_where_a_request_comes_from_is_told_by_proxies_that_we_trust(tmp_path: Path) -> None:
    async with opened(tmp_path, forwarding=ForwardingProxies(["127.0.0.1"])) as tack:
        reply = await tack.client.get("/headers", x_forwarded_for="6.6.6.6, 192.0.2.7")
        assert reply.json["peer"] == "192.0.2.7"
    (tmp_path / "open").mkdir()
    async with opened(tmp_path / "open") as tack:
        assert (await tack.client.get("/headers", x_forwarded_for="192.0.2.7")).json["peer"] == "127.0.0.1"


async def test_who_pays_is_who_the_path_names_unless_the_credentials_say(tmp_path: Path) -> None:
    async with opened(tmp_path) as tack:
        client = tack.client.having("good")

        async def paying(principal: Principal, path: str = PLACE) -> tuple[str | None, str | None]:
            tack.authenticator.known["good"] = principal
            seen = (await client.get(path)).json
            written = (await client.post(PLACE)).json
            assert path != PLACE or (written["organization"], written["project"]) == (
                seen["organization"],
                seen["project"],
            )
            return seen["organization"], seen["project"]

        assert await paying(ANNA) == (ORGANIZATION, PROJECT)
        assert await paying(ANNA, f"/organizations/{ORGANIZATION}") == (ORGANIZATION, None)
        assert await paying(replace(ANNA, organization=ORGANIZATION)) == (ORGANIZATION, PROJECT)
        assert await paying(replace(ANNA, organization="other")) == ("other", None)
        assert await paying(replace(ANNA, organization="other", project="own")) == ("other", "own")
        claim = PrincipalClaim(actor="anna@example.com", organization=ORGANIZATION, project="own")
        assert await paying(acting_for(ANNA, claim)) == (ORGANIZATION, "own")
        assert tack.service.calls[-1].principal.actor_name == "anna@example.com"


async def test_naming_an_organization_does_not_put_a_stranger_into_its_audit(tmp_path: Path) -> None:
    async with opened(tmp_path) as tack:
        assert (await tack.client.having("good").post(PLACE)).status == 200
        assert (await tack.store.read(STREAM, f"organization/{ORGANIZATION}")).entries == []
        assert len((await tack.store.read(STREAM, SYSTEM)).entries) == 1


async def test_what_strangers_do_is_recorded_by_whoever_lets_them(tmp_path: Path) -> None:
    async with opened(tmp_path) as tack:
        assert (await tack.client.post("/login", form={"user": "anna", "password": "x"})).status == 200
        tell(tack, OAuthError("invalid_grant", "the code is used: log in again"))
        assert (await tack.client.post("/token", form=FORM)).status == 400
        assert (await tack.store.read(STREAM, SYSTEM)).entries == []


async def test_a_handler_knows_the_key_that_its_caller_chose(tmp_path: Path) -> None:
    async with opened(tmp_path) as tack:
        client = tack.client.having("good")
        assert (await client.post(PLACE, idempotency_key="chosen")).json["key"] == "chosen"
        assert (await client.post(PLACE)).json["key"] is None


async def test_an_authenticator_has_the_time_that_a_request_has(tmp_path: Path) -> None:
    async with opened(tmp_path, time_limit_s=0.01) as tack:
        tack.authenticator.wait = asyncio.Event().wait
        reply = await tack.client.having("good").get(PLACE)
        assert (reply.status, reply.json["code"]) == (503, "timed_out")
        assert tack.service.calls == []
