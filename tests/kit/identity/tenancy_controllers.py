"""Tenancy APIs with their controllers on the simulated machine, where time passes and power may fail."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from remuda.access.principal import Principal
from remuda.identity.kinds.quotas import Allocation, AllocationSpec, AllocationState
from remuda.identity.kinds.tenancy import Organization, Project
from remuda.identity.quotas.writer import QuotaWriter
from remuda.identity.tenancy.controller import controllers
from remuda.identity.tenancy.domain_proofs import ProofTimes, domain_proofs
from remuda.identity.tenancy.routes import ROUTES
from remuda.kernel.conditions import Condition, find_condition
from remuda.kernel.errors import NotFound, Unavailable
from remuda.reconcile.controller import Controller
from remuda.reconcile.ports import ControllerSettings, ReconcilePorts
from remuda.reconcile.resync import ResyncSettings
from remuda.resources.conventions import ORGANIZATION, PROJECT, RESOURCE_ID, RESOURCE_KIND
from remuda.store.objects import Metadata
from remuda.store.sqlite.store import SqliteStore
from tests.kit.asgi.contract import Reply
from tests.kit.identity.resource_api import IdentityApi, registry
from tests.kit.identity.tenancy import (
    ISSUER,
    ORGANIZATIONS,
    PLATFORM,
    TenancyApi,
    made,
    organization,
    project,
    tenancy_of,
)
from tests.kit.simulation.resync import ResyncFinds
from tests.kit.simulation.runner import World
from tests.kit.simulation.store import open_simulated


@dataclass
class PublishedRecords:
    """TXT records of the DNS, as a `FindTxt`."""

    texts: dict[str, tuple[str, ...]] = field(default_factory=dict)
    is_down: bool = False
    asked: list[str] = field(default_factory=list)

    async def __call__(self, name: str, *, organization: str) -> Sequence[str]:  # noqa: ARG002  a FindTxt
        self.asked.append(name)
        if self.is_down:
            raise Unavailable("no name server responds")
        return self.texts.get(name, ())

    def publish(self, record: Mapping[str, str]) -> None:
        """Publish a record, as it is shown to the owner of a domain, beside what others have published."""
        self.texts[record["name"]] = ("v=spf1 -all", *self.texts.get(record["name"], ()), record["value"])


PROOF_TIMES = ProofTimes(claim=timedelta(minutes=1), proof=timedelta(minutes=2), grace=timedelta(minutes=20))
"""Times of the checks of domains, short because a simulated day is long."""
CLAIM_S, PROOF_S, GRACE_S = (
    each.total_seconds() + 2 for each in (PROOF_TIMES.claim, PROOF_TIMES.proof, PROOF_TIMES.grace)
)

SERVERS = "servers.region.unikorn-cloud.org"


@dataclass(frozen=True)
class TenancyControllers:
    """Tenancy APIs with running controllers, which reconcile only on events."""

    world: World
    store: SqliteStore
    api: TenancyApi
    controllers: tuple[Controller, ...]
    finds: ResyncFinds
    dns: PublishedRecords

    async def prove(self, home: str) -> None:
        """Publish the record that proves the domain of an organization, and wait until it was looked for."""
        self.dns.publish((await self.domain(home))["record"])
        await self.world.clock.sleep(CLAIM_S)

    async def domain(self, home: str) -> dict[str, Any]:
        """Return what an organization is told about its domain."""
        reply = await self.api.ask(PLATFORM).get(f"{ORGANIZATIONS}/{home}/domain")
        assert reply.status == 200, reply
        read: dict[str, Any] = reply.json
        return read

    async def rest(self) -> None:
        """Let everything come to rest."""
        await self.world.clock.sleep(20)

    async def make(self, wanted: dict[str, Any] | None = None) -> tuple[str, str]:
        """Make an organization with a project, wait, and return their ids."""
        home = await made(self.api, ORGANIZATIONS, wanted or organization())
        inside = await made(self.api, f"{ORGANIZATIONS}/{home}/projects", project())
        await self.rest()
        return home, inside

    async def read(self, path: str, who: Principal = PLATFORM) -> dict[str, Any]:
        """Return the metadata of what is at a path."""
        reply = await self.api.ask(who).get(path)
        assert reply.status == 200, reply
        metadata: dict[str, Any] = reply.json["metadata"]
        return metadata

    async def is_gone(self, path: str) -> bool:
        """Tell whether there is nothing at a path."""
        return (await self.api.ask(PLATFORM).get(path)).status == 404

    async def put_reference(self, path: str, name: str) -> Reply:
        """Have something keep a project."""
        return await self.api.ask(PLATFORM).put(f"{path}/references/{SERVERS}%252F{name}")

    async def drop_reference(self, path: str, name: str) -> Reply:
        """Have something keep a project no longer."""
        return await self.api.ask(PLATFORM).delete(f"{path}/references/{SERVERS}%252F{name}")

    async def allocate(self, home: str, inside: str, name: str, state: AllocationState = "confirmed") -> None:
        """Store an allocation, or set its state."""
        try:
            allocation = await self.store.get(Allocation, name)
            await self.store.update(replace(allocation, spec=replace(allocation.spec, state=state)))
        except NotFound:
            labels = {ORGANIZATION: home, PROJECT: inside, RESOURCE_KIND: SERVERS, RESOURCE_ID: name}
            metadata = Metadata(name=name, labels=labels)
            await self.store.create(Allocation(metadata=metadata, spec=AllocationSpec(state=state)))

    async def available(self, kind: type[Organization | Project], name: str) -> Condition:
        """Return what a controller says of an object."""
        found = find_condition((await self.store.get(kind, name)).status.conditions, "Available")
        assert found is not None
        return found

    async def confirm_absence(self) -> None:
        """Check that a resync of settled objects finds and writes nothing."""
        before = await self.versions()
        for controller in self.controllers:
            await controller.resync()
        await self.rest()
        assert not self.finds.found
        assert await self.versions() == before

    async def versions(self) -> dict[str, str]:
        """Return the version of everything that is stored."""
        kinds = [kind.type for kind in self.store.registry.kinds]
        return {each.name: each.version for kind in kinds for each in (await self.store.list(kind)).items}


@asynccontextmanager
async def tenancy_controllers(
    world: World,
    wrapped: Callable[[SqliteStore], Any] = lambda store: store,
    dns: PublishedRecords | None = None,
) -> AsyncIterator[TenancyControllers]:
    """Open the store as it was left, and begin; controllers have it as `wrapped` gives it to them."""
    store, finds = open_simulated(world, registry()), ResyncFinds()
    seen = wrapped(store)
    ports = ReconcilePorts(store=seen, log=store, clock=world.clock, randomness=world.randomness, reporter=finds)
    settings = ControllerSettings(blocked_every_s=10_000, resync=ResyncSettings(interval_s=10_000))
    heads = QuotaWriter(seen, world.clock, world.randomness)
    records = dns or PublishedRecords()
    proofs = domain_proofs(ports, records, issuer=ISSUER, times=PROOF_TIMES, settings=settings)
    made_now = (*controllers(ports, heads, settings=settings), proofs)
    tenancy = IdentityApi(world, store, tenancy_of(store, world.clock), ROUTES)
    for driver in made_now:
        await driver.start()
    try:
        yield TenancyControllers(world, store, tenancy, made_now, finds, records)
        tenancy.app.assert_documented()
    finally:
        for driver in made_now:
            await driver.stop()
        await store.close()
