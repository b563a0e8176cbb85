"""Where quotas are asked for: in the same process, or over HTTP. Callers do not see the difference."""

from dataclasses import dataclass
from itertools import count
from typing import Any, Protocol

import msgspec

from remuda.access.principal import AccessList, Context, Permission, Principal
from remuda.identity.kinds.quotas import Quota, QuotaSpec
from remuda.identity.kinds.tenancy import ORGANIZATION as ORGANIZATION_KIND
from remuda.identity.kinds.tenancy import Organization, Project
from remuda.identity.quotas import schema
from remuda.identity.quotas.ledger import Ledger, seed_quota_metadata
from remuda.identity.quotas.quota_state import of_kind, used
from remuda.identity.quotas.service import Allocations, QuotaLimits
from remuda.kernel.clock import Clock
from remuda.kernel.errors import Forbidden, NotFound
from remuda.kernel.ids import random_id
from remuda.kernel.randomness import Randomness
from remuda.resources.conventions import NAME, ORGANIZATION
from remuda.resources.schema import MetadataWrite
from remuda.store.contract import Store
from remuda.store.objects import Metadata
from tests.kit.asgi.client import Client

KIND = "servers"
OWNERS = "computeinstances.compute.unikorn-cloud.org"
VERBS = ("create", "read", "update", "delete")
TELLER = Principal(
    subject="unikorn-compute",
    type="system",
    access=AccessList(
        everywhere=frozenset(
            Permission(f"identity:{endpoint}", verb)  # type: ignore[arg-type]  # one of the verbs
            for endpoint in ("allocations", "quotas", "projects")
            for verb in VERBS
        )
    ),
)
"""Who may do everything here."""


async def furnish(store: Store, organization: str, *projects: str) -> None:
    """Make an organization with projects, and the catalogue."""
    await seed_quota_metadata(store)
    metadata = Metadata(name=organization, labels={NAME: "acme"})
    owner = await store.create(Organization(metadata=metadata))
    for project in projects:
        labels = {NAME: "work", ORGANIZATION: organization}
        metadata = Metadata(name=project, labels=labels, owner_references=(ORGANIZATION_KIND.owner(owner),))
        await store.create(Project(metadata=metadata))


def asking(owner: str, **amounts: int) -> schema.AllocationWrite:
    """Return a request for so much of each kind."""
    kinds = tuple(schema.AmountWire(kind=kind, committed=amount, reserved=0) for kind, amount in amounts.items())
    spec = schema.AllocationSpecWire(kind=OWNERS, id=owner, allocations=kinds)
    return schema.AllocationWrite(metadata=MetadataWrite(name="undefined"), spec=spec)


def limiting(**limits: int) -> schema.QuotasWrite:
    """Return limits."""
    return schema.QuotasWrite(quotas=tuple(schema.QuotaWrite(kind=kind, quantity=limits[kind]) for kind in limits))


@dataclass(frozen=True, kw_only=True)
class Quotas:
    """The services of quotas as one process has them."""

    limits: QuotaLimits
    allocations: Allocations
    ledger: Ledger


class QuotaClient(Protocol):
    """Where one kind of quota of one organization is asked for."""

    async def allocate(self, owner: str, amount: int) -> str | None:
        """Reserve an amount; return None if the quota is exceeded."""
        ...

    async def change(self, allocation: str, owner: str, amount: int) -> bool:
        """Change the reserved amount; return whether the quota allows it."""
        ...

    async def release(self, allocation: str) -> None:
        """Hold nothing."""
        ...

    async def confirm(self, allocation: str) -> bool:
        """Say that what it is for is there; tell whether it is held."""
        ...

    async def set_limit(self, limit: int) -> bool:
        """Let there be so much; tell whether that can be."""
        ...

    async def read(self) -> tuple[int, int]:
        """Return the limit and what is used."""
        ...


@dataclass(frozen=True, kw_only=True)
class InProcess:
    """Asks the service itself. Every second allocation is under a key, and confirmed."""

    quotas: Quotas
    randomness: Randomness
    organization: str
    project: str
    keys: Any

    def context(self, key: str | None = None) -> Context:
        """Return the context of a new request."""
        return Context(principal=TELLER, operation=random_id(self.randomness), key=key)

    async def allocate(self, owner: str, amount: int) -> str | None:
        number = next(self.keys)
        key, where = f"operation-{owner}-{number}" if number % 2 else None, (self.organization, self.project)
        try:
            row = await self.quotas.allocations.allocate(self.context(key), *where, asking(owner, **{KIND: amount}))
            if key is not None:
                await self.quotas.allocations.confirm(self.context(), *where, row.name)
        except Forbidden:
            return None
        return row.name

    async def change(self, allocation: str, owner: str, amount: int) -> bool:
        wanted = asking(owner, **{KIND: amount})
        try:
            await self.quotas.allocations.change(self.context(), self.organization, self.project, allocation, wanted)
        except Forbidden:
            return False
        return True

    async def confirm(self, allocation: str) -> bool:
        try:
            await self.quotas.allocations.confirm(self.context(), self.organization, self.project, allocation)
        except NotFound:
            return False
        return True

    async def release(self, allocation: str) -> None:
        await self.quotas.allocations.release(self.context(), self.organization, self.project, allocation)

    async def set_limit(self, limit: int) -> bool:
        try:
            await self.quotas.limits.update(self.context(), self.organization, limiting(**{KIND: limit}))
        except Forbidden:
            return False
        return True

    async def read(self) -> tuple[int, int]:
        limited = await self.quotas.limits.get(self.context(), self.organization)
        read = msgspec.json.decode(limited.body, type=schema.QuotasRead)
        (quota,) = [each for each in read.quotas if each.kind == KIND]
        return quota.quantity, quota.used


def service(store: Store, clock: Clock, randomness: Randomness, *, intent_lifetime: Any) -> Quotas:
    """Return the services of quotas as one process has them."""
    ledger = Ledger(store, clock, randomness, intent_lifetime=intent_lifetime)
    return Quotas(
        limits=QuotaLimits(store=store, ledger=ledger),
        allocations=Allocations(store=store, clock=clock, ledger=ledger),
        ledger=ledger,
    )


def quota_client(quotas: Quotas, randomness: Randomness, organization: str, project: str) -> InProcess:
    """Return a client in the process of the service."""
    return InProcess(quotas=quotas, randomness=randomness, organization=organization, project=project, keys=count(1))


@dataclass(frozen=True, kw_only=True)
class OverHttp:
    """Asks over HTTP, and is told statuses."""

    client: Client
    organization: str
    project: str
    keys: Any

    @property
    def path(self) -> str:
        return f"/api/v1/organizations/{self.organization}"

    @property
    def rows(self) -> str:
        return f"{self.path}/projects/{self.project}/allocations"

    async def allocate(self, owner: str, amount: int) -> str | None:
        number = next(self.keys)
        headers = {"idempotency_key": f"operation-{owner}-{number}"} if number % 2 else {}
        reply = await self.client.post(self.rows, asking(owner, **{KIND: amount}), **headers)
        if reply.status == 403:
            return None
        assert reply.status == 201, reply
        allocation: str = reply.json["metadata"]["id"]
        if headers:
            assert (await self.client.post(f"{self.rows}/{allocation}/confirm")).status == 200
        return allocation

    async def change(self, allocation: str, owner: str, amount: int) -> bool:
        reply = await self.client.put(f"{self.rows}/{allocation}", asking(owner, **{KIND: amount}))
        assert reply.status in {200, 403}, reply
        return reply.status == 200

    async def confirm(self, allocation: str) -> bool:
        reply = await self.client.post(f"{self.rows}/{allocation}/confirm")
        assert reply.status in {200, 404}, reply
        return reply.status == 200

    async def release(self, allocation: str) -> None:
        assert (await self.client.delete(f"{self.rows}/{allocation}")).status == 202

    async def set_limit(self, limit: int) -> bool:
        reply = await self.client.put(f"{self.path}/quotas", limiting(**{KIND: limit}))
        assert reply.status in {200, 403}, reply
        return reply.status == 200

    async def read(self) -> tuple[int, int]:
        quotas = (await self.client.get(f"{self.path}/quotas")).json["quotas"]
        (quota,) = [each for each in quotas if each["kind"] == KIND]
        return quota["quantity"], quota["used"]


def used_in(head: Quota | None) -> int:
    """Return what a head counts of the kind."""
    return used(of_kind((head.spec if head else QuotaSpec()).totals, KIND))
