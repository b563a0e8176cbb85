"""The livery as the subject of its matrix."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from itertools import count
from typing import Any

import msgspec

from remuda.access.principal import Context
from remuda.http.api import ApiSettings
from remuda.http.authentication import TrustedProxies
from remuda.http.ratelimit import RateLimit
from remuda.http.server.server import HttpServer, ListenAddress
from remuda.http.sse import EventReader
from remuda.kernel.clock import SystemClock
from remuda.kernel.ids import random_id
from remuda.kernel.randomness import SystemRandomness
from remuda.operations.kinds import Operation, OperationSpec
from remuda.store.objects import Metadata
from remuda.store.sqlite.store import SqliteStore, open_store
from tests.authz.livery import CALLERS, ROWS
from tests.authz.livery_port import REFERENCE, port_calls
from tests.example import wire
from tests.example.app import LiveryApp, build, registry
from tests.example.pasture import SimPasture
from tests.example.ports import Ports
from tests.example.sagas import NewMount
from tests.kit.asgi.client import Client, Stream
from tests.kit.asgi.contract import contract_of
from tests.kit.proofs.authorization.credentials import CallerCredentials
from tests.kit.proofs.authorization.matrix import ABSENT, Caller, Row, Scope, Target
from tests.kit.proofs.authorization.transports import ApiTransport, PortTransport, Request, SocketTransport, Transport
from tests.kit.simulation.disk import memory_directory
from tests.kit.simulation.store import SEALER


class LiverySubject:
    """The livery, with nobody at work in it but the callers."""

    rows: Sequence[Row] = ROWS
    callers: Sequence[Caller] = CALLERS

    def __init__(self, store: SqliteStore) -> None:
        self._store, self._clock, self._randomness = store, SystemClock(), SystemRandomness()
        self.credentials = CallerCredentials(CALLERS, self._clock)
        self.app = self._build()
        self.table = self.app.ports.table
        self.transports: dict[str, Transport] = {
            "api": ApiTransport(self.app.asgi, contract_of(self.table), self.credentials),
            "port": PortTransport(port_calls(self.app.service), self.credentials),
        }
        self._things: dict[tuple[str, Scope], str] = {}
        self._counter = count()

    async def request(self, row: Row, target: Target) -> Request:
        """Return a request about this target."""
        values = {"name": f"n{next(self._counter)}", "reference": REFERENCE}
        if target.named is not None:
            values |= {"organizationID": target.named.organization, "projectID": target.named.project}
        if row.thing:
            values[row.thing] = ABSENT if target.holder is None else await self._find(row.thing, target.holder)
        return Request(row=row, values=values, query=target.query)

    async def shown(self, row: Row, place: Scope) -> str:
        """Return the id of a yard or a mount in a place."""
        return await self._find({"list_yards": "yardID", "list_mounts": "mountID"}[row.operation], place)

    async def watched(self, caller: Caller, row: Row, target: Target) -> set[str] | None:
        """Return the ids that a watch begins with, or None if it is refused."""
        request = await self.request(row, target)
        client = Client(app=self.app.asgi)
        query = [*request.query, ("watch", "true")]
        async with client.stream(request.target, query, **self.credentials.headers(caller)) as stream:
            if (await stream.head()).status != 200:
                return None
            return await _present(stream)

    def use_up(self, place: Scope) -> None:
        """Forget what is in a place."""
        self._things = {key: name for key, name in self._things.items() if key[1] != place}

    async def state(self) -> Any:
        """Return a number that changes with anything that is stored."""
        return self._store.change_counter([kind.type for kind in self._store.registry.kinds])

    async def _find(self, thing: str, place: Scope) -> str:
        if (thing, place) not in self._things:
            make = {"yardID": self._make_yard, "mountID": self._make_mount, "operationID": self._make_operation}
            self._things[thing, place] = await make[thing](place)
        return self._things[thing, place]

    async def _make_yard(self, place: Scope) -> str:
        wanted = wire.YardWrite(metadata=wire.MetadataWrite(name="yard"), spec=wire.YardSpecWire(stalls=100))
        yard = await self.app.service.create_yard(self._context(), place.organization, place.project, wanted)
        return yard.name

    async def _make_mount(self, place: Scope) -> str:
        spec = wire.NewMountSpec(yard_id=await self._find("yardID", place), breed="mule")
        wanted = wire.MountCreate(metadata=wire.MetadataWrite(name="bella"), spec=spec)
        return (await self.app.service.create_mount(self._context(), wanted)).name

    async def _make_operation(self, place: Scope) -> str:
        """Leave an operation behind that nobody could undo yet."""
        wanted = NewMount(yard=await self._find("yardID", place), name="never", breed="mule", paddock="home")
        spec = OperationSpec(
            saga="mount.create",
            subject_kind="mounts",
            subject="never",
            actor="somebody",
            input=msgspec.json.encode(wanted).decode(),
            deadline=self._clock.now() - timedelta(minutes=1),
            process="gone",
        )
        name = random_id(self._randomness)
        stored = await self._store.create(Operation(metadata=Metadata(name=name), spec=spec))
        await self._store.update_status(stored.moved("stuck"))
        return name

    def _context(self) -> Context:
        admin = next(caller for caller in CALLERS if caller.name == "admin")
        return Context(principal=self.credentials.principal(admin), operation=random_id(self._randomness))

    def _build(self) -> LiveryApp:
        ports = Ports(
            store=self._store,
            log=self._store,
            clock=self._clock,
            randomness=self._randomness,
            pasture=SimPasture(self._clock, self._randomness),
            authenticator=self.credentials,
            rate=RateLimit(quota=1_000_000),
            api=ApiSettings(proxies=TrustedProxies(["127.0.0.1/32"])),
        )
        return build(ports)


async def _present(stream: Stream) -> set[str]:
    """Read a stream up to where it says that all that is there has been told."""
    reader = EventReader()
    ids: set[str] = set()
    async for chunk in stream.chunks():
        for event in reader.feed(chunk):
            if event.type == "bookmark":
                return ids
            ids.add(msgspec.json.decode(event.data)["metadata"]["id"])
    raise AssertionError("the stream ended before all was told")


@asynccontextmanager
async def livery() -> AsyncIterator[LiverySubject]:
    """Open the livery while the block runs, on a socket too."""
    with memory_directory() as directory:
        store = open_store(directory / "remuda.db", registry(), SEALER)
        async with _serving(LiverySubject(store)) as subject:
            yield subject
        await store.close()


@asynccontextmanager
async def _serving(subject: LiverySubject) -> AsyncIterator[LiverySubject]:
    server = HttpServer(
        subject.app.asgi, clock=SystemClock(), randomness=SystemRandomness(), count_closed=lambda _: None
    )
    address = await server.start(ListenAddress("127.0.0.1", 0))
    door = SocketTransport(f"http://{address}", subject.table, subject.credentials)
    subject.transports["socket"] = door
    try:
        yield subject
    finally:
        await door.close()
        await server.stop()
        await subject.app.stop()
