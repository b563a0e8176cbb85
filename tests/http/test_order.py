"""The order of validation: what is wrong first is told, whatever else is wrong."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from remuda.access.principal import AccessList, Principal
from remuda.http.failures import AuthenticationFailures
from remuda.http.ratelimit import RateLimit
from remuda.http.request_slots import RequestSlots
from remuda.http.verification_queue import Pacing
from remuda.kernel.clock import SystemClock
from tests.kit.sample_api.pipeline import HORSE, HORSES, running

GOOD_BODY = {"metadata": {"name": "bella"}, "spec": {"age": 7}}
BAD_BODY = {"metadata": {"name": 7}}
BAD_ID = "/api/v1/organizations/nonsense/horses"


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A request with several faults, and the one that is told."""

    method: str = "POST"
    path: str = HORSES
    token: str | None = "good"
    body: Any = field(default_factory=lambda: GOOD_BODY)
    query: Mapping[str, str] = field(default_factory=dict)
    status: int
    error: str
    told: str


TRIALS = {
    "an unknown path beats a missing token": Trial(
        method="GET", path="/api/v1/nonsense", token=None, status=404, error="not_found", told="resource not found"
    ),
    "an unknown method beats a bad id": Trial(
        method="DELETE",
        path=BAD_ID,
        token=None,
        status=405,
        error="method_not_allowed",
        told="the requested method was not allowed",
    ),
    "a bad id beats a missing token": Trial(
        path=BAD_ID, token=None, status=400, error="invalid_request", told="invalid path/query element"
    ),
    "a bad query beats a missing token": Trial(
        method="GET",
        token=None,
        query={"age": "old"},
        status=400,
        error="invalid_request",
        told='invalid path/query element: "age"',
    ),
    "a missing token beats a bad body": Trial(
        token=None, body=BAD_BODY, status=401, error="access_denied", told="authorization header missing"
    ),
    "a wrong token beats a bad body": Trial(
        token="wrong", body=BAD_BODY, status=401, error="access_denied", told="token is invalid or has expired"
    ),
    "a missing token beats an unknown query parameter": Trial(
        token=None, query={"bread": "a"}, status=401, error="access_denied", told="authorization header missing"
    ),
    "an unknown query parameter beats a bad body": Trial(
        body=BAD_BODY,
        query={"unknown": "a"},
        status=400,
        error="invalid_request",
        told='invalid path/query element: "unknown" is unknown: this request takes no query parameters',
    ),
    "a bad body beats a missing right": Trial(
        token="weak", body=BAD_BODY, status=400, error="invalid_request", told="the request body is not valid"
    ),
    "a missing right comes last": Trial(
        token="weak",
        status=403,
        error="forbidden",
        told="operation is not allowed by rbac: operation 'create' on endpoint 'sample:horses'",
    ),
}


@pytest.mark.parametrize("trial", TRIALS.values(), ids=TRIALS.keys())
async def test_what_is_validated_first_is_told(trial: Trial, tmp_path: Path) -> None:
    async with running(tmp_path) as api:
        client = api.client.having(trial.token)
        reply = await client.send(
            trial.method, trial.path, body=trial.body if trial.method == "POST" else None, query=trial.query
        )
        assert (reply.status, reply.json["error"]) == (trial.status, trial.error)
        assert reply.json["error_description"].startswith(trial.told)
        assert api.service.calls == []


async def test_nobody_is_authenticated_for_a_bad_id(tmp_path: Path) -> None:
    async with running(tmp_path) as api:
        assert (await api.client.get(f"{HORSES}/nonsense")).status == 400
        assert api.tokens.seen == []


async def test_what_has_no_fault_is_answered(tmp_path: Path) -> None:
    async with running(tmp_path) as api:
        assert (await api.client.post(HORSES, GOOD_BODY)).status == 201
        assert (await api.client.get(f"{HORSES}/{HORSE}")).status == 200
        assert [call.principal.subject for call in api.service.calls] == ["anna@example.com"] * 2


async def test_unknown_query_parameters_are_rejected_for_users_and_accounts_and_ignored_for_services(
    tmp_path: Path,
) -> None:
    async with running(tmp_path) as api:
        service = Principal(subject="unikorn-compute", type="system", access=api.tokens.known["good"].access)
        account = replace(service, type="service")
        api.tokens.known |= {
            "system": service,
            "account": account,
            "impersonating": replace(account, service="unikorn-compute"),
        }
        for token, status in {"good": 400, "account": 400, "system": 200, "impersonating": 200}.items():
            assert (await api.client.having(token).get(f"{HORSES}/{HORSE}", {"extra": "1"})).status == status, token


async def test_a_rate_limit_is_validated_after_the_token_and_before_the_body(tmp_path: Path) -> None:
    async with running(tmp_path, quota=1) as api:
        assert (await api.client.post(HORSES, GOOD_BODY)).status == 201
        assert (await api.client.having("wrong").post(HORSES, GOOD_BODY)).status == 401
        refused = await api.client.post(HORSES, BAD_BODY)
        assert (refused.status, refused.json["code"]) == (429, "too_many")
        assert int(refused.headers["retry-after"]) > 0
        assert refused.headers["ratelimit"].startswith('"default";r=0')


async def test_who_tries_wrong_tokens_is_limited_by_address(tmp_path: Path) -> None:
    async with running(tmp_path, quota=2) as api:
        statuses = [(await api.client.having("wrong").get(f"{HORSES}/{HORSE}")).status for _ in range(3)]
        assert statuses == [401, 401, 429]
        assert (await api.client.get(f"{HORSES}/{HORSE}")).status == 200


async def test_m27_a_strange_token_from_an_address_over_its_limit_is_rejected_only_if_it_is_wrong(
    tmp_path: Path,
) -> None:
    async with running(tmp_path, quota=2) as api:
        for _ in range(2):
            assert (await api.client.having("wrong").get(f"{HORSES}/{HORSE}")).status == 401
        rejected = await api.client.having("another").get(f"{HORSES}/{HORSE}")
        assert (rejected.status, rejected.json["code"]) == (429, "too_many")
        assert rejected.headers["ratelimit"].startswith('"failures";r=0')
        assert (await api.client.get(f"{HORSES}/{HORSE}")).status == 200


async def test_m27_the_wrong_tokens_of_others_at_an_address_do_not_reject_a_valid_one(tmp_path: Path) -> None:
    limit, pacing = RateLimit(quota=1, name="failures"), Pacing(interval_s=0.2, most_waiting=3)
    failures = AuthenticationFailures(limit, SystemClock(), pacing=pacing)
    async with running(tmp_path, failures=failures) as api:
        api.tokens.verified = {"strange": api.tokens.known["good"]}
        path = f"{HORSES}/{HORSE}"
        assert (await api.client.having("wrong").get(path)).status == 401
        tokens = [*["wrong"] * 6, "strange"]
        *others, valid = await asyncio.gather(*(api.client.having(token).get(path) for token in tokens))
        assert {each.status for each in others} == {429}
        assert valid.status == 200


async def test_m27_a_caller_has_at_most_half_of_the_requests_in_progress(tmp_path: Path) -> None:
    async with running(tmp_path, slots=RequestSlots(4)) as api:
        api.tokens.known["weak"] = replace(api.tokens.known["good"], subject="bert@example.com")
        path, arrived = f"{HORSES}/{HORSE}", asyncio.Semaphore(0)
        api.service.is_stuck, api.service.act = True, arrived.release
        stuck = [asyncio.create_task(api.client.get(path)) for _ in range(2)]
        for _ in stuck:
            await arrived.acquire()
        api.service.is_stuck = False
        refused = await api.client.get(path)
        assert (refused.status, refused.json["code"], refused.headers["retry-after"]) == (429, "too_many", "5")
        assert (await api.client.having("weak").get(path)).status == 200
        for each in stuck:
            each.cancel()
        await asyncio.wait(stuck)
        assert (await api.client.get(path)).status == 200, "their slots are free again"


async def test_a_caller_who_lost_the_right_is_told_again_what_it_was_told_and_nothing_else(tmp_path: Path) -> None:
    async with running(tmp_path) as api:
        first = await api.client.post(HORSES, GOOD_BODY, idempotency_key="k")
        api.tokens.known["good"] = replace(api.tokens.known["good"], access=AccessList())
        again = await api.client.post(HORSES, GOOD_BODY, idempotency_key="k")
        assert (again.status, again.body, again.headers["idempotency-replayed"]) == (201, first.body, "true")
        assert (await api.client.post(HORSES, GOOD_BODY, idempotency_key="k2")).status == 403
        assert (await api.client.having("weak").post(HORSES, GOOD_BODY, idempotency_key="k")).status == 403
        assert len(api.service.calls) == 1
