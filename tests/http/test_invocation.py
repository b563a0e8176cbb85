"""Routes that call a method of a service: which instance, with which values, and what becomes of the result."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import msgspec
import pytest

from remuda.access.principal import ANONYMOUS, Context, Principal
from remuda.clients.transport import local
from remuda.clients.watch import LocalWatch
from remuda.http.api import Api
from remuda.http.crud import crud
from remuda.http.endpoints import Endpoint
from remuda.http.invocation import invocation, invocations, repeat_invocation
from remuda.http.responses import Collection, OtherResponse, Rendered, Viewed, etag_view
from remuda.http.routes import AnyRoute, Call, OtherResponseType, Route, Table
from remuda.http.schema import NOTHING, ListQuery, Parameters, Wire
from remuda.kernel.randomness import SeededRandomness
from remuda.store.contract import Store
from remuda.store.sqlite.store import open_store
from tests.kit.asgi.api_ports import api_ports
from tests.kit.asgi.client import Client
from tests.kit.asgi.contract import contract_of
from tests.kit.asgi.validating import Validated
from tests.kit.clocks import SkippingClock
from tests.kit.sample_api.browser import SampleAuthenticator
from tests.kit.sample_kinds import REGISTRY, Horse, HorseSpec, horse
from tests.kit.simulation.store import SEALER


class HorseRead(Wire, frozen=True):
    id: str
    colour: str


class HorseWrite(Wire, frozen=True):
    colour: str


class Plan(Wire, frozen=True):
    colour: str


class HorsePath(Parameters, frozen=True, rename={"horse": "horseID"}):
    horse: str


class RideQuery(Parameters, frozen=True, rename={"is_fast": "fast"}):
    is_fast: bool = False
    laps: int = 1


READS: list[str] = []
"""The horses that were rendered."""


def read(one: Horse) -> HorseRead:
    READS.append(one.name)
    return HorseRead(id=one.name, colour=one.spec.colour)


VIEW = etag_view(read, lambda one: one.spec)


@dataclass(frozen=True, slots=True, kw_only=True)
class Horses:
    store: Store
    rides: list[tuple[str, bool, int]] = field(default_factory=list)

    async def list(self, context: Context) -> Collection[Horse, list[HorseRead]]:  # noqa: ARG002  its permissions
        return Collection(store=self.store, kind=Horse, view=VIEW)

    async def create(self, context: Context, body: HorseWrite) -> Horse:
        return await self.store.create(horse(context.operation, spec=HorseSpec(colour=body.colour)))

    async def get(self, context: Context, horse: str) -> Horse:  # noqa: ARG002  its permissions
        return await self.store.get(Horse, horse)

    async def update(self, context: Context, horse: str, body: HorseWrite) -> Horse | OtherResponse[Plan]:  # noqa: ARG002  same
        if body.colour == "dry":
            return OtherResponse(Plan(colour=body.colour))
        found = await self.store.get(Horse, horse)
        return await self.store.update(msgspec.structs.replace(found, spec=HorseSpec(colour=body.colour)))

    async def delete(self, context: Context, horse: str) -> Horse:  # noqa: ARG002  same
        found = await self.store.get(Horse, horse)
        await self.store.delete(Horse, horse, uid=found.uid)
        return found

    async def ride(self, context: Context, horse: str, *, is_fast: bool, laps: int) -> None:  # noqa: ARG002  same
        self.rides.append((horse, is_fast, laps))

    def count(self) -> int:
        return len(self.rides)

    async def last(self, context: Context) -> HorseRead:  # noqa: ARG002  same
        return HorseRead(id="last", colour="bay")


@dataclass(frozen=True, slots=True)
class Stables:
    name: str = "north"

    async def ride(self, horse: str) -> None: ...


@dataclass(frozen=True)
class SampleServices:
    stables: Stables
    horses: Horses


ROUTES = crud(
    Horses,
    path="/horses",
    item=HorsePath,
    name="horse",
    noun="a horse",
    permission=lambda verb: None,  # type: ignore[arg-type,return-value]  # noqa: ARG005  whoever is known may
    scope="authenticated",
    view=VIEW,
    create=HorseWrite,
    update=HorseWrite,
    read=HorseRead,
    overrides={"update": {"other": OtherResponseType(status=200, response_type=Plan, about="A dry run.")}},
)
RIDE: AnyRoute = Route(
    method="POST",
    path="/horses/{horseID}/ride",
    name="ride_horse",
    summary="Ride a horse",
    scope="authenticated",
    service=Horses,
    calls=Horses.ride,
    path_type=HorsePath,
    query_type=RideQuery,
    success=204,
)
COUNT: AnyRoute = Route(
    method="GET",
    path="/rides",
    name="count_rides",
    summary="Count rides",
    scope="authenticated",
    service=Horses,
    calls=Horses.count,
    response_type=int,
)
TABLE = Table("pasture", title="Pasture", description="Horses.", routes=[*ROUTES, RIDE, COUNT])


@asynccontextmanager
async def pasture(directory: Path) -> AsyncIterator[tuple[Client, Horses]]:
    store = open_store(directory / "pasture.db", REGISTRY, SEALER)
    horses = Horses(store=store)
    ports = api_ports(store, SampleAuthenticator(), clock=SkippingClock(), randomness=SeededRandomness(1))
    services = SampleServices(stables=Stables(), horses=horses)
    api = Validated(Api(TABLE, services, ports), contract_of(TABLE))
    try:
        yield Client(app=api, token="good"), horses
        api.assert_documented()
    finally:
        await store.close()


async def test_a_resource_is_created_listed_read_updated_and_deleted(tmp_path: Path) -> None:
    async with pasture(tmp_path) as (client, _):
        made = await client.post("/horses", {"colour": "bay"})
        assert (made.status, made.json["colour"]) == (201, "bay")
        path = f"/horses/{made.json['id']}"
        found = await client.get(path)
        assert (found.json, found.headers["etag"]) == (made.json, made.headers["etag"])
        assert (await client.get("/horses")).json == [made.json]
        changed = await client.put(path, {"colour": "roan"})
        assert (changed.status, changed.json["colour"]) == (202, "roan")
        assert changed.headers["etag"] != made.headers["etag"]
        gone = await client.send("DELETE", path)
        assert (gone.status, gone.body) == (202, b"")
        assert (await client.get(path)).status == 404


async def test_a_read_takes_the_bytes_that_the_store_has_cached(tmp_path: Path) -> None:
    async with pasture(tmp_path) as (client, _):
        name = (await client.post("/horses", {"colour": "bay"})).json["id"]
        await client.get(f"/horses/{name}")
        READS.clear()
        assert (await client.get(f"/horses/{name}")).json == {"id": name, "colour": "bay"}
        assert READS == []


async def test_a_method_may_answer_otherwise_than_with_a_stored_object(tmp_path: Path) -> None:
    async with pasture(tmp_path) as (client, _):
        reply = await client.put("/horses/any", {"colour": "dry"})
        assert (reply.status, reply.json) == (200, {"colour": "dry"})


async def test_query_fields_are_keywords_and_a_plain_method_is_called(tmp_path: Path) -> None:
    async with pasture(tmp_path) as (client, horses):
        assert (await client.send("POST", "/horses/star/ride", query={"fast": "true", "laps": "3"})).status == 204
        assert horses.rides == [("star", True, 3)]
        assert (await client.get("/rides")).json == 1


def call(**values: Any) -> Call[Any, Any, Any]:
    context = Context(principal=ANONYMOUS, operation="operation")
    return Call(**{"context": context, "path": NOTHING, "query": NOTHING, "body": NOTHING} | values)


async def test_results_are_shown_cached_or_left_out_as_the_route_says(tmp_path: Path) -> None:
    store = open_store(tmp_path / "pasture.db", REGISTRY, SEALER)
    try:
        invoke = invocations(TABLE, Horses(store=store))
        shown = await invoke["create_horse"](call(body=HorseWrite(colour="bay")))
        assert isinstance(shown, Viewed)
        assert shown.schema() == HorseRead(id="operation", colour="bay")
        path = HorsePath(horse="operation")
        assert isinstance(await invoke["get_horse"](call(path=path)), Rendered)
        assert isinstance(await invoke["list_horses"](call(query=ListQuery())), Collection)
        assert await invoke["delete_horse"](call(path=path)) is None
    finally:
        await store.close()


class PastureApi(Protocol):
    async def create_horse(self, context: Context, body: HorseWrite) -> HorseRead: ...

    async def get_horse(self, context: Context, horse: str) -> HorseRead: ...

    def list_horses(self, context: Context) -> AsyncGenerator[HorseRead]: ...

    async def count_rides(self) -> int: ...


async def nobody() -> Principal:
    return ANONYMOUS


async def test_another_service_in_the_process_reads_the_same(tmp_path: Path) -> None:
    store = open_store(tmp_path / "pasture.db", REGISTRY, SEALER)
    try:
        watch = LocalWatch(reader=nobody, clock=SkippingClock(), randomness=SeededRandomness(1))
        pasture = local(PastureApi, TABLE, Horses(store=store), watch=watch)
        context = call().context
        made = await pasture.create_horse(context, HorseWrite(colour="bay"))
        assert made == HorseRead(id="operation", colour="bay")
        assert await pasture.get_horse(context, "operation") == made
        assert [each async for each in pasture.list_horses(context)] == [made]
        assert await pasture.count_rides() == 0
    finally:
        await store.close()


async def test_a_repeat_calls_another_method() -> None:
    horses = Horses(store=None)  # type: ignore[arg-type]  # it is not used
    repeating: AnyRoute = Route(
        method="POST",
        path="/horses",
        name="buy",
        summary="Buy",
        scope="authenticated",
        service=Horses,
        calls=Horses.create,
        repeat_calls=Horses.last,
        body_type=HorseWrite,
        view=VIEW,
        response_type=HorseRead,
        has_secret=True,
    )
    repeat = repeat_invocation(repeating, horses)
    assert repeat is not None
    assert await repeat(call(body=HorseWrite(colour="bay"))) == HorseRead(id="last", colour="bay")
    assert repeat_invocation(RIDE, horses) is None


@pytest.mark.parametrize("kind", ["alone", "dataclass", "mapping"])
async def test_the_service_is_found(kind: str) -> None:
    horses = Horses(store=None)  # type: ignore[arg-type]  # it is not used
    services = {
        "alone": horses,
        "dataclass": SampleServices(stables=Stables(), horses=horses),
        "mapping": {"stables": Stables(), "horses": horses},
    }
    await invocation(RIDE, services[kind])(call(path=HorsePath(horse="star"), query=RideQuery()))
    assert horses.rides == [("star", False, 1)]


@pytest.mark.parametrize(
    ("services", "why"),
    [
        (object(), r"ride_horse needs one Horses, and there are 0 among the services \[\]"),
        ({"stables": Stables()}, r"there are 0 among the services \['Stables'\]"),
        (
            {number: Horses(store=None) for number in range(2)},  # type: ignore[arg-type]  # it is not used
            r"there are 2 among the services \['Horses', 'Horses'\]",
        ),
    ],
)
def test_a_service_that_is_missing_or_there_twice_is_refused(services: object, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Endpoint(RIDE, services)


class Storeless:
    async def get(self, context: Context, horse: str) -> Horse: ...  # type: ignore[empty-body]


def test_a_read_with_a_view_needs_a_service_with_a_store() -> None:
    (made,) = [each for each in ROUTES if each.name == "get_horse"]
    wrong: AnyRoute = Route(
        method="GET",
        path=made.path,
        name="get_horse",
        summary="Read",
        scope="authenticated",
        service=Storeless,
        calls=Storeless.get,
        path_type=HorsePath,
        response_type=HorseRead,
        view=VIEW,
    )
    with pytest.raises(ValueError, match="get_horse reads a view from the store, and Storeless has no store"):
        invocation(wrong, Storeless())


async def _name(stables: Stables, _call: Call[Any, Any, Any]) -> str:
    return stables.name


async def test_a_handler_is_given_its_service_or_all_of_them() -> None:
    common: dict[str, Any] = {"method": "GET", "summary": "Name", "scope": "public", "response_type": str}
    own: AnyRoute = Route(**common, path="/own", name="own", service=Stables, handler=_name)
    whole: AnyRoute = Route(**common, path="/all", name="all", handler=_name_of_stables)
    services = SampleServices(stables=Stables("south"), horses=Horses(store=None))  # type: ignore[arg-type]  # not used
    assert [await invocation(each, services)(call()) for each in (own, whole)] == ["south", "south"]


async def _name_of_stables(services: SampleServices, _call: Call[Any, Any, Any]) -> str:
    return services.stables.name
