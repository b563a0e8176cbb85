"""Routes that may answer otherwise than usual, reject with more than a sentence, and answer repeats again."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from remuda.access.principal import Context
from remuda.http.api import Api
from remuda.http.docs import render_docs
from remuda.http.errors import ErrorBody
from remuda.http.openapi import document
from remuda.http.remote_errors import error_from
from remuda.http.responses import OtherResponse
from remuda.http.routes import AnyRoute, OtherResponseType, Route, Table
from remuda.http.schema import Parameters, Wire
from remuda.http.server.server import HttpServer, ListenAddress
from remuda.kernel.clock import SystemClock
from remuda.kernel.errors import Conflict, PlanChanged, PlanRequired
from remuda.kernel.randomness import SeededRandomness, SystemRandomness
from remuda.kernel.secrets import Secret
from remuda.store.sqlite.store import open_store
from tests.kit.asgi.api_ports import api_ports
from tests.kit.asgi.client import Client
from tests.kit.asgi.contract import Reply, contract_of
from tests.kit.asgi.validating import Validated
from tests.kit.clocks import SkippingClock
from tests.kit.sample_api.browser import SampleAuthenticator
from tests.kit.sample_api.client import client_of
from tests.kit.sample_kinds import REGISTRY
from tests.kit.simulation.store import SEALER


class Shoe(Wire, frozen=True):
    size: int
    code: Secret


class Fitting(Wire, frozen=True):
    fits: bool


class Rejection(ErrorBody, frozen=True, kw_only=True, omit_defaults=True):
    plan: Fitting | msgspec.UnsetType = msgspec.UNSET


class Trial(Parameters, frozen=True):
    dry: bool = False
    agreed: bool = False


@dataclass
class Smithy:
    shod: list[str] = field(default_factory=list)

    async def shoe(self, context: Context, *, dry: bool, agreed: bool) -> Shoe | OtherResponse[Fitting]:
        if dry:
            return OtherResponse(Fitting(fits=True))
        if not agreed:
            raise PlanRequired(Fitting(fits=False))
        self.shod.append(context.operation)
        return Shoe(size=len(self.shod), code=Secret("s3cret"))

    async def tell(self, *, dry: bool) -> Shoe | OtherResponse[Fitting]:
        return OtherResponse(Fitting(fits=True)) if dry else Shoe(size=100 + len(self.shod), code=Secret("s3cret"))


SHOE: AnyRoute = Route(
    method="PUT",
    path="/shoe",
    name="shoe",
    summary="Shoe a horse",
    scope="authenticated",
    query_type=Trial,
    response_type=Shoe,
    success=202,
    other=OtherResponseType(status=200, response_type=Fitting, about="With dry: whether it would fit."),
    error_bodies={409: Rejection},
    has_secret=True,
    service=Smithy,
    calls=Smithy.shoe,
    repeat_calls=Smithy.tell,
)


def table(*routes: AnyRoute) -> Table:
    return Table("smithy", title="Smithy", description="Shoes.", routes=routes or [SHOE])


@asynccontextmanager
async def opened(directory: Path) -> AsyncIterator[tuple[Client, Smithy]]:
    store, smithy = open_store(directory / "smithy.db", REGISTRY, SEALER), Smithy()
    ports = api_ports(store, SampleAuthenticator(), clock=SkippingClock(), randomness=SeededRandomness(1))
    api = Validated(Api(table(), smithy, ports), contract_of(table()))
    try:
        yield Client(app=api, token="good"), smithy
    finally:
        await store.close()
        api.assert_documented()


async def put(client: Client, key: str | None = None, **query: str) -> Reply:
    return await client.send("PUT", "/shoe", query=query, headers={"idempotency-key": key} if key else {})


async def test_a_route_answers_with_one_status_or_with_the_other(tmp_path: Path) -> None:
    async with opened(tmp_path) as (client, smithy):
        tried = await put(client, dry="true")
        assert (tried.status, tried.json) == (200, {"fits": True})
        assert smithy.shod == []
        done = await put(client, agreed="true")
        assert (done.status, done.json) == (202, {"size": 1, "code": "s3cret"})


async def test_a_rejection_shows_the_plan_beside_what_every_error_says(tmp_path: Path) -> None:
    async with opened(tmp_path) as (client, smithy):
        reply = await put(client)
        assert reply.status == 409
        assert reply.json["plan"] == {"fits": False}
        assert (reply.json["error"], reply.json["code"]) == ("conflict", "plan_required")
        assert "hash" in reply.json["error_description"]
        assert smithy.shod == []


async def test_a_repeat_whose_answer_was_a_secret_is_told_how_things_stand(tmp_path: Path) -> None:
    async with opened(tmp_path) as (client, smithy):
        first = await put(client, agreed="true", key="k")
        again = await put(client, agreed="true", key="k")
        assert (first.status, first.json["size"]) == (202, 1)
        assert (again.status, again.json["size"]) == (202, 101)
        assert "idempotency-replayed" not in first.headers
        assert again.headers["idempotency-replayed"] == "true"
        assert len(smithy.shod) == 1
        other = await put(client, dry="true", key="k")
        assert other.json["code"] == "key_reused"


async def test_a_trial_can_be_repeated_under_its_key(tmp_path: Path) -> None:
    async with opened(tmp_path) as (client, smithy):
        replies = [await put(client, dry="true", key="k") for _ in range(2)]
        assert [(reply.status, reply.json) for reply in replies] == [(200, {"fits": True})] * 2
        assert smithy.shod == []


async def test_a_typed_client_gets_either_answer_as_its_type(tmp_path: Path) -> None:
    async with opened(tmp_path) as (client, smithy):
        clock, randomness = SystemClock(), SystemRandomness()
        server = HttpServer(
            client.app, clock=clock, randomness=randomness, count_closed=lambda _: None, closing=asyncio.Event()
        )
        address = await server.start(ListenAddress("127.0.0.1", 0))
        try:
            async with client_of(f"http://{address}") as typed:
                assert await typed.send(SHOE, query=Trial(dry=True), response_type=Fitting) == Fitting(fits=True)
                with pytest.raises(PlanRequired) as refused:
                    await typed.send(SHOE, query=Trial())
                assert msgspec.json.decode(refused.value.plan, type=Fitting) == Fitting(fits=False)
                assert smithy.shod == []
                assert (await typed.send(SHOE, query=Trial(agreed=True))).size == 1
        finally:
            await server.stop()


async def test_a_client_gets_the_plan_with_the_error() -> None:
    body = {"error": "conflict", "error_description": "Look.", "code": "plan_changed", "plan": {"fits": False}}
    error = error_from(409, {}, msgspec.json.encode(body), server="x")
    assert isinstance(error, PlanChanged)
    assert msgspec.json.decode(error.plan, type=Fitting) == Fitting(fits=False)
    plain = error_from(409, {}, msgspec.json.encode({**body, "code": "conflict", "plan": None}), server="x")
    assert isinstance(plain, Conflict)


def test_the_document_and_the_page_have_both_answers() -> None:
    api = msgspec.json.decode(msgspec.json.encode(document(table(), version="1")))
    told = api["paths"]["/shoe"]["put"]["responses"]
    assert next(iter(told)) == "202", "the usual one comes first"
    assert told["200"]["description"] == "With dry: whether it would fit."
    assert told["200"]["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/Fitting"}
    assert told["409"]["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/Rejection"}
    assert "$ref" in told["400"]
    page = render_docs(api)[0].decode()
    assert "<h3>Response 202</h3>" in page
    assert "With dry: whether it would fit." in page
    assert "<p>200" not in page, "it is no error"


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"success": 200}, "has an alternative response with the status of the usual one"),
        ({"has_secret": False}, "has a method for repeats although its responses are stored"),
    ],
)
def test_a_route_that_contradicts_itself_cannot_be_made(wrong: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        table(replace(SHOE, **wrong))
