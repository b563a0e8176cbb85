"""What can be done with one row: the acts that tests interrupt."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta

from remuda.access.principal import Context
from remuda.identity.kinds.quotas import AllocationState, Quota
from remuda.identity.quotas.schema import allocation_id
from remuda.kernel.randomness import SeededRandomness
from tests.kit.identity.resource_api import ORG, PROJECT
from tests.kit.proofs.crashing_store import CrashError, Fuse, FusedStore
from tests.kit.proofs.linearizability.quota_clients import TELLER, Quotas, asking, limiting, service

LIFE = timedelta(minutes=10)
WHERE = (ORG, PROJECT)
KEY = "operation-1"
ROW = allocation_id(TELLER.subject, KEY)
Act = Callable[[Quotas], Awaitable[object]]


def context(key: str | None = None, operation: str = "f0000000-0000-4000-8000-000000000001") -> Context:
    return Context(principal=TELLER, operation=operation, key=key)


async def nothing(_: Quotas) -> None:
    return


async def take(quotas: Quotas) -> None:
    await quotas.allocations.allocate(context(KEY), *WHERE, asking("owner-1", servers=2, gpus=1))


async def confirm(quotas: Quotas) -> None:
    await quotas.allocations.confirm(context(), *WHERE, ROW)


async def take_and_confirm(quotas: Quotas) -> None:
    await take(quotas)
    await confirm(quotas)


async def take_without_a_key(quotas: Quotas) -> None:
    await quotas.allocations.allocate(context(operation=KEY), *WHERE, asking("owner-1", servers=2, gpus=1))


async def grow(quotas: Quotas) -> None:
    await quotas.allocations.change(context(), *WHERE, ROW, asking("owner-1", servers=5))


async def shrink(quotas: Quotas) -> None:
    await quotas.allocations.change(context(), *WHERE, ROW, asking("owner-1", servers=1, gpus=1))


async def release(quotas: Quotas) -> None:
    await quotas.allocations.release(context(), *WHERE, ROW)


async def release_for_good(quotas: Quotas) -> None:
    await quotas.allocations.release(context(), *WHERE, ROW, fencing_token=1)


async def take_and_release(quotas: Quotas) -> None:
    await take_and_confirm(quotas)
    await release(quotas)


async def renew_and_confirm(quotas: Quotas) -> None:
    await quotas.allocations.renew(context(), *WHERE, ROW)
    await confirm(quotas)


async def renew(quotas: Quotas) -> None:
    await quotas.allocations.renew(context(), *WHERE, ROW)


async def half_released(quotas: Quotas) -> None:
    """Take and confirm it; then let a process die that has noted in the head that it releases it, and no more."""
    await take_and_confirm(quotas)
    dying = FusedStore(quotas.allocations.store, Fuse(2, "after"))  # the first is its look at the row
    with suppress(CrashError):
        await release(service(dying, quotas.allocations.clock, SeededRandomness(1), intent_lifetime=LIFE))
    intents = (await quotas.allocations.store.get(Quota, ORG)).spec.intents
    assert [intent.action for intent in intents] == ["release"]


async def set_limits(quotas: Quotas) -> None:
    await quotas.limits.update(context(), ORG, limiting(servers=20))


Standing = tuple[AllocationState | None, int]
"""How the row stands, and how many servers are counted in all."""
