"""The pasture: a small service that keeps horses, and its routes."""

import asyncio
from contextlib import suppress
from pathlib import Path

import msgspec

from remuda.access.principal import Context
from remuda.http.responses import Collection, Rendered, check_if_match, etag_of, etag_view, split_etag
from remuda.http.routes import Call, Route, Table
from remuda.http.schema import ListQuery, Nothing, Parameters, Wire
from remuda.kernel.errors import AlreadyExists, RemudaError
from remuda.kernel.ids import derived_id
from remuda.kernel.secrets import Secret
from remuda.store.sqlite.store import SqliteStore
from tests.kit.sample_kinds import Horse, HorseSpec, horse

HERD = "b0000000-0000-4000-8000-00000000000a"


class HorseWrite(Wire, frozen=True):
    colour: str
    is_tame: bool = True


class Offer(Wire, frozen=True):
    colour: str
    password: Secret
    note: str | None = None
    tags: tuple[str, ...] = ()


class HorseRead(Wire, frozen=True):
    id: str
    colour: str
    brand: Secret | None = None


class HorsePath(Parameters, frozen=True, rename={"horse": "horseID"}):
    horse: str


class HorseQuery(ListQuery, frozen=True):
    colour: tuple[str, ...] = ()
    tame: bool | None = None


def read(one: Horse) -> HorseRead:
    return HorseRead(id=one.name, colour=one.spec.colour)


TAGGED = etag_view(read, lambda one: one.spec)


class SampleService:
    """Keeps horses, and remembers how it was called."""

    def __init__(self, store: SqliteStore, hold: Path | None = None) -> None:
        self.store, self.hold = store, hold
        self.contexts: list[Context] = []
        self.queries: list[HorseQuery] = []
        self.paths: list[str] = []
        self.offers: list[Offer] = []
        self.failures: list[RemudaError] = []
        """Raised by the next calls, one each."""

    def enter(self, context: Context) -> None:
        self.contexts.append(context)
        if self.failures:
            raise self.failures.pop(0)

    async def create(self, context: Context, body: HorseWrite) -> HorseRead:
        """Make a horse named after the operation: if it is there, this very operation made it."""
        self.enter(context)
        name = derived_id(HERD, context.operation)
        made = horse(name, labels={"herd": "bay"}, spec=HorseSpec(colour=body.colour))
        with suppress(AlreadyExists):
            await self.store.create(made, log=context.audit("horses", name))
        while self.hold is not None and self.hold.exists():  # noqa: ASYNC110  another process removes it
            await asyncio.sleep(0.01)
        return HorseRead(id=name, colour=body.colour)

    async def paint(self, context: Context, name: str, body: HorseWrite) -> None:
        found = await self.store.get(Horse, name)
        check_if_match(context, etag_of(found.uid, found.spec), kind="Horse", name=name)
        painted = msgspec.structs.replace(found, spec=HorseSpec(colour=body.colour))
        await self.store.update(painted, log=context.audit("horses", name))


async def _create(service: SampleService, call: Call[Nothing, Nothing, HorseWrite]) -> HorseRead:
    return await service.create(call.context, call.body)


async def _brand(service: SampleService, call: Call[Nothing, Nothing, HorseWrite]) -> HorseRead:
    made = await service.create(call.context, call.body)
    return msgspec.structs.replace(made, brand=Secret("sesame"))


async def _offer(service: SampleService, call: Call[Nothing, Nothing, Offer]) -> HorseRead:
    service.enter(call.context)
    service.offers.append(call.body)
    return HorseRead(id="offered", colour=call.body.colour)


async def _get(service: SampleService, call: Call[HorsePath, Nothing, Nothing]) -> Rendered[HorseRead]:
    service.enter(call.context)
    service.paths.append(call.path.horse)
    return split_etag(await service.store.get_view(Horse, call.path.horse, TAGGED))


async def _paint(service: SampleService, call: Call[HorsePath, Nothing, HorseWrite]) -> None:
    await service.paint(call.context, call.path.horse, call.body)


async def _refer(service: SampleService, call: Call[HorsePath, Nothing, Nothing]) -> None:
    service.enter(call.context)
    service.paths.append(call.path.horse)


async def _list(service: SampleService, call: Call[Nothing, HorseQuery, Nothing]) -> Collection[Horse, list[HorseRead]]:
    service.enter(call.context)
    service.queries.append(call.query)
    return Collection(store=service.store, kind=Horse, view=TAGGED, visible=lambda one: one.spec.colour != "hidden")


CREATE = Route(
    method="POST",
    path="/horses",
    name="create_horse",
    summary="Make a horse",
    scope="authenticated",
    handler=_create,
    body_type=HorseWrite,
    response_type=HorseRead,
    success=201,
)
BRAND = Route(
    method="POST",
    path="/brands",
    name="brand_horse",
    summary="Make a horse with a secret",
    scope="authenticated",
    handler=_brand,
    body_type=HorseWrite,
    response_type=HorseRead,
    success=201,
    has_secret=True,
)
GET = Route(
    method="GET",
    path="/horses/{horseID}",
    name="get_horse",
    summary="Read a horse",
    scope="authenticated",
    handler=_get,
    path_type=HorsePath,
    response_type=HorseRead,
)
PAINT = Route(
    method="PUT",
    path="/horses/{horseID}",
    name="paint_horse",
    summary="Paint a horse",
    scope="authenticated",
    handler=_paint,
    path_type=HorsePath,
    body_type=HorseWrite,
    is_conditional=True,
)
REFER = Route(
    method="PUT",
    path="/references/{horseID}",
    name="refer",
    summary="Name anything",
    scope="authenticated",
    handler=_refer,
    path_type=HorsePath,
    success=201,
)
LIST = Route(
    method="GET",
    path="/horses",
    name="list_horses",
    summary="List horses",
    scope="authenticated",
    handler=_list,
    query_type=HorseQuery,
    response_type=list[HorseRead],
)
OFFER = Route(
    method="POST",
    path="/offers",
    name="offer",
    summary="Offer a price",
    scope="authenticated",
    handler=_offer,
    form=True,
    body_type=Offer,
    response_type=HorseRead,
)
TABLE = Table("pasture", title="Pasture", description="Horses.", routes=[CREATE, BRAND, GET, PAINT, REFER, LIST, OFFER])
