"""Failed authentications at identity: every kind counts against the address, and valid credentials still pass."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from remuda.http.ratelimit import RateLimit
from tests.kit.asgi.contract import Reply
from tests.kit.environment import options, provided_by
from tests.kit.identity.environment import ROOT, IdentityEnvironment
from tests.kit.identity.launch import run_identity

TOKEN = "/oauth2/v2/token"
PUBLIC = {"client_id": "remuda-cli"}
EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"
DEVICE = "urn:ietf:params:oauth:grant-type:device_code"
FEW = RateLimit(quota=3, name="failures")

identity = provided_by(run_identity)


def granted(**form: str) -> Callable[[IdentityEnvironment], Awaitable[Reply]]:
    return lambda identity: identity.client().post(TOKEN, form={**PUBLIC, **form})


FAILURES: dict[str, Callable[[IdentityEnvironment], Awaitable[Reply]]] = {
    "a bearer token": lambda identity: identity.client("garbage").get("/api/v1/organizations"),
    "no token": lambda identity: identity.client().get("/api/v1/organizations"),
    "a bearer token at the userinfo endpoint": lambda identity: identity.client("garbage").get("/oauth2/v2/userinfo"),
    "a client's basic authentication": lambda identity: identity.client(authorization="Basic eDp5").post(
        TOKEN, form={"grant_type": "refresh_token", "refresh_token": "x"}
    ),
    "a client's secret in the form": lambda identity: identity.client().post(
        "/oauth2/v2/introspect", form={"token": "x", "client_id": "x", "client_secret": "y"}
    ),
    "a refresh token": granted(grant_type="refresh_token", refresh_token="x.y.z"),
    "a device code": granted(grant_type=DEVICE, device_code="x"),
    "an authorization code": granted(grant_type="authorization_code", code="x" * 43, redirect_uri="http://127.0.0.1/"),
    "a passport's token": granted(grant_type=EXCHANGE, subject_token="x", subject_token_type=ACCESS_TOKEN),
}


@pytest.mark.parametrize("fail", FAILURES.values(), ids=FAILURES)
@options(failure_rate=FEW)
async def test_m27_every_failed_authentication_counts_against_its_address(
    identity: IdentityEnvironment, fail: Callable[[IdentityEnvironment], Awaitable[Reply]]
) -> None:
    statuses = [(await fail(identity)).status for _ in range(4)]
    assert statuses[3] == 429
    assert all(status in {400, 401} for status in statuses[:3])
    other = await FAILURES["a refresh token"](identity)
    assert other.status == 429, "all kinds count together"
    assert int(other.headers["retry-after"]) > 0


@options(failure_rate=FEW)
async def test_m27_a_valid_credential_is_not_rejected_for_the_failures_of_others_at_its_address(
    identity: IdentityEnvironment,
) -> None:
    token = await identity.log_in(ROOT)
    for _ in range(20):
        await FAILURES["a bearer token"](identity)
        await FAILURES["a refresh token"](identity)
    assert (await FAILURES["a bearer token"](identity)).status == 429
    assert (await identity.client(token).get("/api/v1/organizations")).status == 200, "it was never seen before"
    began = await identity.client().post("/oauth2/v2/device_authorization", form=PUBLIC)
    assert began.status == 200
    form: dict[str, Any] = {"grant_type": DEVICE, "device_code": began.json["device_code"], **PUBLIC}
    assert (await identity.client().post(TOKEN, form=form)).json["error"] == "authorization_pending"
    passport = {"grant_type": EXCHANGE, "subject_token": token, "subject_token_type": ACCESS_TOKEN}
    assert (await identity.client().post(TOKEN, form={**PUBLIC, **passport})).status == 200


@options(failure_rate=FEW)
async def test_m27_a_token_of_ours_waits_for_no_others_however_many_wait_at_its_address(
    identity: IdentityEnvironment,
) -> None:
    token = await identity.log_in(ROOT)
    while (await FAILURES["a bearer token"](identity)).status != 429:
        pass
    forged = [f"{token[:-8]}{number:08}" for number in range(600)]
    waiting = [asyncio.create_task(identity.client(each).get("/api/v1/organizations")) for each in forged]
    await identity.clock.sleep(0.1)
    assert sum(not each.done() for each in waiting) >= 400
    began = identity.clock.monotonic()
    assert (await identity.client(token).get("/api/v1/organizations")).status == 200, "it was never seen before"
    assert identity.clock.monotonic() == began
    statuses = {reply.status for reply in await asyncio.gather(*waiting)}
    assert statuses == {429}


@options(failure_rate=FEW, rate=RateLimit(quota=10))
async def test_failures_do_not_use_up_the_requests_of_an_address(identity: IdentityEnvironment) -> None:
    for _ in range(30):
        await FAILURES["a refresh token"](identity)
    began = await identity.client().post("/oauth2/v2/device_authorization", form=PUBLIC)
    assert began.status == 200
