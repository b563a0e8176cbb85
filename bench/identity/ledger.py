"""Allocations by 64 callers who all belong to one organization, beside 64 callers each in an organization of its own.

Each takes and confirms, as services do, one operation after the other. All callers of one organization write the same
head, and every write is durable before it counts. First through the port itself, then over the API.
"""

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence

from bench.bed import Bed
from bench.callers import CALLERS
from bench.identity.client import Client
from bench.identity.environment import ROOT, Environment, housed
from bench.identity.tenants import Tenant
from bench.kinds import name_of
from bench.loops import run
from bench.report import Measure, at_least
from bench.rounds import Subject, alternate, steady_rate
from remuda.access.principal import AccessList, Context, Permission, Principal
from remuda.identity.quotas import schema
from remuda.resources.schema import MetadataWrite

__all__ = ["measures"]

_GOAL = 0.25
_KIND = "servers"
_PERMISSIONS = frozenset(
    Permission(f"identity:{name}", verb) for name in ("allocations", "quotas") for verb in ("create", "update")
)
_WHO = Principal(subject=ROOT, type="user", access=AccessList(everywhere=_PERMISSIONS))
_TENANTS = [Tenant(number, members=0, projects=1) for number in range(CALLERS)]

Take = Callable[[Tenant, str], Awaitable[object]]


def measures(bed: Bed) -> Iterator[Measure]:
    """Compare both ways in."""
    for title, goal, (one, many) in zip(("", ", over the API"), (_GOAL, None), run(_compare(bed)), strict=True):
        measure = f"allocations by {CALLERS} callers in one organization, to {CALLERS} organizations{title}"
        yield at_least(goal, measure, one, many, "1/s")


async def _compare(bed: Bed) -> list[tuple[float, float]]:
    async with housed(bed, *_TENANTS) as environment:
        await _raise_limits(environment)
        ways = [_by_port(environment), _over_api(environment)]
        places = [_TENANTS[:1] * CALLERS, _TENANTS]
        numbers = itertools.count()
        subjects = [_subject(take, where, bed.sizes.operations, numbers) for take in ways for where in places]
        found = [steady_rate(values) for values in await alternate(bed.sizes.rounds, *subjects)]
    return list(zip(found[::2], found[1::2], strict=True))


def _subject(take: Take, places: Sequence[Tenant], count: int, numbers: Iterator[int]) -> Subject:
    async def go(tenant: Tenant) -> None:
        for _ in range(count // CALLERS):
            await take(tenant, name_of(next(numbers)))

    async def turn(_: int) -> float:
        start = time.perf_counter()
        await asyncio.gather(*map(go, places))
        return count / (time.perf_counter() - start)

    return turn


async def _raise_limits(environment: Environment) -> None:
    limits = schema.QuotasWrite(quotas=(schema.QuotaWrite(kind=_KIND, quantity=1_000_000),))
    for tenant in _TENANTS:
        await environment.identity.services.limits.update(_context(tenant.id), tenant.id, limits)


def _by_port(environment: Environment) -> Take:
    allocations = environment.identity.services.allocations

    async def take(tenant: Tenant, key: str) -> None:
        where = tenant.id, tenant.project(0)
        row = await allocations.allocate(_context(key), *where, _wanted(key))
        await allocations.confirm(_context(key), *where, row.name)

    return take


def _over_api(environment: Environment) -> Take:
    client = Client(environment.app, environment.root)

    async def take(tenant: Tenant, key: str) -> None:
        rows = f"/api/v1/organizations/{tenant.id}/projects/{tenant.project(0)}/allocations"
        made = await client.post(rows, _wanted(key), key=key)
        await client.post(f"{rows}/{made.json['metadata']['id']}/confirm", status=200)

    return take


def _context(key: str) -> Context:
    return Context(principal=_WHO, operation=key, key=key)


def _wanted(name: str) -> schema.AllocationWrite:
    amounts = (schema.AmountWire(kind=_KIND, committed=1, reserved=0),)
    spec = schema.AllocationSpecWire(kind="instances.compute", id=name, allocations=amounts)
    return schema.AllocationWrite(metadata=MetadataWrite(name="instance"), spec=spec)
