"""Genuine credentials: they wait for no forged ones at their address, however many of those do."""

import asyncio
import base64
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch
from urllib.parse import urlencode

import pytest

from remuda.http.bodies import FormReader
from remuda.http.ratelimit import RateLimit
from remuda.identity.kinds.oauth import AuthorizationCodeSpec, OAuth2Client, OAuth2ClientSpec
from remuda.identity.kinds.tokens import Session
from remuda.identity.kinds.users import user_id
from remuda.identity.oauth.clients import ASSERTION_TYPE
from remuda.identity.oauth.schema import TokenForm
from remuda.identity.oauth.service import OAuth
from remuda.identity.tokens.secrets import token_hash
from remuda.store.objects import Metadata
from tests.kit.asgi.contract import Reply
from tests.kit.environment import options, provided_by
from tests.kit.identity.environment import ISSUER, IdentityEnvironment
from tests.kit.identity.launch import run_identity
from tests.kit.identity.oauth import CALLBACK, CHALLENGE, FORM, VERIFIER
from tests.kit.identity.service_credentials import assertion

ANN = "ann@example.com"
TOKEN, USERINFO = "/oauth2/v2/token", "/oauth2/v2/userinfo"
PUBLIC = {"client_id": "remuda-cli"}
APP = {"client_id": "app", "client_secret": "the-secret-of-the-app"}
OTHER = {"client_id": "other", "client_secret": "the-secret-of-the-other"}
DEVICE = "urn:ietf:params:oauth:grant-type:device_code"
PASSPORT = {
    "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
    "subject_token_type": "urn:ietf:params:oauth:token-type:access_token",
}
BASIC = f"Basic {base64.b64encode(b'app:the-secret-of-the-app').decode()}"
FEW = RateLimit(quota=3, name="failures")
FORGED = 600
MANY = 400
"""As many wait all the time. The last of them would wait for 8 s."""
Form = dict[str, str]

identity = provided_by(run_identity)


@dataclass(frozen=True)
class Credentials:
    """What a caller at an address has, which failed there too often."""

    identity: IdentityEnvironment

    @property
    def oauth(self) -> OAuth:
        return self.identity.app.services.oauth

    async def code(self, client: Mapping[str, str], **sent: str) -> Form:
        spec = AuthorizationCodeSpec(
            user=user_id(ANN), client=client["client_id"], redirect_uri=CALLBACK, challenge=CHALLENGE, scope="openid"
        )
        code = (await self.oauth.grants.codes.issue(spec)).reveal()
        grant = {"grant_type": "authorization_code", "code": code, "redirect_uri": CALLBACK}
        return {**grant, "code_verifier": VERIFIER, **client, **sent}

    async def refresh(self, client: Mapping[str, str], **sent: str) -> Form:
        reply = await self.post(TOKEN, await self.code(client))
        return {"grant_type": "refresh_token", "refresh_token": reply.json["refresh_token"], **client, **sent}

    async def device(self, client: Mapping[str, str], **sent: str) -> Form:
        begun = await self.oauth.devices.begin(client["client_id"], "openid")
        assert await self.oauth.devices.approve(begun.user_code.reveal(), user=user_id(ANN))
        return {"grant_type": DEVICE, "device_code": begun.device_code.reveal(), **client, **sent}

    async def assertion(self, *, forged: bool = False) -> Form:
        signed = assertion(audience=ISSUER, now=self.identity.clock.now())
        signed = f"{signed[:-8]}AAAAAAAA" if forged else signed
        return {
            "grant_type": "client_credentials",
            "client_assertion_type": ASSERTION_TYPE,
            "client_assertion": signed,
        }

    async def post(self, path: str, form: Mapping[str, Any]) -> Reply:
        return await self.identity.client().post(path, form=dict(form))

    async def send(self, path: str, authorization: str, **form: str) -> Reply:
        return await self.identity.client(authorization=authorization).post(path, form=form)

    async def is_genuine(self, form: Form) -> bool:
        sent = FormReader(TokenForm).read(urlencode(form).encode(), FORM.encode())
        return await self.oauth.genuine.is_grant(sent, "")

    async def fail_too_often(self) -> None:
        while (await self.post(TOKEN, _forged(0))).status != 429:
            pass


def _forged(number: int) -> Form:
    return {"grant_type": "refresh_token", "refresh_token": f"forged-{number}", **PUBLIC}


async def furnish(identity: IdentityEnvironment) -> Credentials:
    """Add a user, two clients with secrets, and the failures of others."""
    await identity.log_in(ANN)
    for client in (APP, OTHER):
        spec = OAuth2ClientSpec(redirect_uri=CALLBACK, secret_hash=token_hash(client["client_secret"]))
        await identity.store.create(OAuth2Client(metadata=Metadata(name=client["client_id"]), spec=spec))
    return Credentials(identity)


GRANTS: Mapping[str, Callable[[Credentials], Awaitable[Form]]] = {
    "a refresh token": lambda own: own.refresh(PUBLIC),
    "a refresh token and a client secret": lambda own: own.refresh(APP),
    "a code": lambda own: own.code(PUBLIC),
    "a code and a client secret": lambda own: own.code(APP),
    "a device code": lambda own: own.device(PUBLIC),
    "a device code and a client secret": lambda own: own.device(APP),
    "an assertion": lambda own: own.assertion(),
}


async def wait_for_nobody(own: Credentials, request: Callable[[], Awaitable[Reply]]) -> float:
    """Send a request while many forged credentials wait, see it accepted before them, and return how long it took."""
    clock = own.identity.clock
    await own.fail_too_often()
    forged = [asyncio.create_task(own.post(TOKEN, _forged(number))) for number in range(FORGED)]
    await clock.sleep(0.1)
    began = clock.monotonic()
    reply = await request()
    took_s = clock.monotonic() - began
    assert reply.status == 200, reply.body
    assert sum(not each.done() for each in forged) >= MANY, "it was not in their queue"
    assert {each.status for each in await asyncio.gather(*forged)} == {429}
    return took_s


@pytest.mark.parametrize("grant", GRANTS.values(), ids=GRANTS)
@options(failure_rate=FEW)
async def test_m27_a_genuine_grant_waits_for_no_others_however_many_wait_at_its_address(
    identity: IdentityEnvironment, grant: Callable[[Credentials], Awaitable[Form]]
) -> None:
    own = await furnish(identity)
    sent = await grant(own)
    await wait_for_nobody(own, lambda: own.post(TOKEN, sent))


UNWRITTEN: Mapping[str, Callable[[Credentials, str], Awaitable[Reply]]] = {
    "a client secret": lambda own, token: own.post("/oauth2/v2/introspect", {"token": token, **APP}),
    "a client secret in the header": lambda own, token: own.send("/oauth2/v2/introspect", BASIC, token=token),
    "an access token to be exchanged": lambda own, token: own.post(TOKEN, {**PASSPORT, "subject_token": token}),
    "an access token at the userinfo endpoint": lambda own, token: own.identity.client(token).get(USERINFO),
    "an access token in a form": lambda own, token: own.post(USERINFO, {"access_token": token}),
}


@pytest.mark.parametrize("send", UNWRITTEN.values(), ids=UNWRITTEN)
@options(failure_rate=FEW)
async def test_m27_a_genuine_client_or_token_waits_for_no_time_at_all(
    identity: IdentityEnvironment, send: Callable[[Credentials, str], Awaitable[Reply]]
) -> None:
    own = await furnish(identity)
    token = await identity.log_in(ANN)
    assert await wait_for_nobody(own, lambda: send(own, token)) == 0


@options(failure_rate=FEW)
async def test_m27_a_device_begins_a_login_whatever_waits_at_its_address(identity: IdentityEnvironment) -> None:
    own = await furnish(identity)
    await wait_for_nobody(own, lambda: own.post("/oauth2/v2/device_authorization", PUBLIC))


async def _used(own: Credentials) -> Form:
    form = await own.code(APP)
    assert (await own.post(TOKEN, form)).status == 200
    return form


async def _ended(own: Credentials) -> Form:
    form = await own.refresh(APP)
    for session in (await own.identity.store.list(Session)).items:
        await own.oauth.sessions.end(session)
    return form


async def _expired(own: Credentials) -> Form:
    form = await own.code(APP)
    await own.identity.clock.sleep(own.oauth.settings.code_lifetime.total_seconds())
    return form


WRONG = {**APP, "client_secret": "a-wrong-one"}
NOT_GENUINE: Mapping[str, Callable[[Credentials], Awaitable[Form]]] = {
    "a code of another client": lambda own: own.code(APP, **OTHER),
    "a code without the client's secret": lambda own: own.code(APP, **WRONG),
    "a code without its verifier": lambda own: own.code(APP, code_verifier="x" * 43),
    "a code for another address": lambda own: own.code(APP, redirect_uri=f"{CALLBACK}/x"),
    "a used code": _used,
    "an expired code": _expired,
    "a refresh token of another client": lambda own: own.refresh(APP, **OTHER),
    "a refresh token without the client's secret": lambda own: own.refresh(APP, **WRONG),
    "a refresh token of an ended session": _ended,
    "a device code of another client": lambda own: own.device(APP, **OTHER),
    "a device code without the client's secret": lambda own: own.device(APP, **WRONG),
    "a client secret with an unknown code": lambda own: own.code(APP, code="x" * 43),
    "an unknown client": lambda own: own.code({"client_id": "nobody", "client_secret": "x"}),
    "a forged assertion": lambda own: own.assertion(forged=True),
    "two kinds of client credentials": lambda own: own.code(APP, client_assertion="x"),
    "no grant": lambda own: own.code(APP, grant_type="x"),
}


@pytest.mark.parametrize("grant", NOT_GENUINE.values(), ids=NOT_GENUINE)
@options(failure_rate=FEW)
async def test_m27_what_is_not_genuine_as_a_whole_waits_like_a_forged_credential(
    identity: IdentityEnvironment, grant: Callable[[Credentials], Awaitable[Form]]
) -> None:
    """So how long a rejection takes tells nobody that a stolen part of it is valid."""
    own = await furnish(identity)
    sent = await grant(own)
    await own.fail_too_often()
    forged = [asyncio.create_task(own.post(TOKEN, _forged(number))) for number in range(50)]
    await identity.clock.sleep(0.01)
    assert (await own.post(TOKEN, sent)).status in {400, 429}
    assert sum(each.done() for each in forged) >= 49, "they were first"
    await asyncio.gather(*forged)


@options(failure_rate=FEW)
async def test_m27_a_credential_is_recognized_without_being_used(identity: IdentityEnvironment) -> None:
    own = await furnish(identity)
    forms = [await grant(own) for grant in GRANTS.values()]
    before = identity.change_count()
    assert [await own.is_genuine(form) for form in forms for _ in range(3)] == [True] * 3 * len(forms)
    assert identity.change_count() == before
    assert {(await own.post(TOKEN, form)).status for form in forms} == {200}


@options(failure_rate=FEW)
async def test_m27_no_forged_credential_is_looked_up_by_name(identity: IdentityEnvironment) -> None:
    """On Kubernetes each of them would cost a request to the API server."""
    own = await furnish(identity)
    forged = [await grant(own) for grant in NOT_GENUINE.values()]
    genuine = [await grant(own) for grant in GRANTS.values()]
    with patch.object(identity.store, "get", side_effect=AssertionError("it was looked up by name")):
        assert [await own.is_genuine(form) for form in genuine] == [True] * len(genuine)
        assert [await own.is_genuine(form) for form in forged] == [False] * len(forged)


@options(failure_rate=FEW)
async def test_m27_an_earlier_refresh_token_ends_its_session_whatever_waits_at_its_address(
    identity: IdentityEnvironment,
) -> None:
    own = await furnish(identity)
    earlier = await own.refresh(PUBLIC)
    latest = {**earlier, "refresh_token": (await own.post(TOKEN, earlier)).json["refresh_token"]}
    await own.fail_too_often()
    forged = [asyncio.create_task(own.post(TOKEN, _forged(number))) for number in range(FORGED)]
    await identity.clock.sleep(0.1)
    assert (await own.post(TOKEN, earlier)).status == 429
    assert sum(not each.done() for each in forged) >= MANY
    await asyncio.gather(*forged)
    assert (await own.post(TOKEN, latest)).status == 429, "the session has ended"
