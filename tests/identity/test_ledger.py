"""The ledger under many callers at once."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.access.principal import Context
from remuda.identity.kinds.quotas import Allocation, Amount, Amounts, Quota
from remuda.identity.quotas.allocation_state import AllocationReleased
from remuda.identity.quotas.quota_state import MAX_INTENTS, OwnerHasAllocation, larger, minus, of_kind, plus, used
from remuda.identity.quotas.routes import ROUTES
from remuda.identity.quotas.schema import allocation_id
from remuda.kernel.errors import Forbidden, KeyReused, Unavailable
from remuda.kernel.ids import random_id
from remuda.store.contract import Store
from remuda.store.sqlite.store import SqliteStore
from tests.kit.environment import options
from tests.kit.identity.resource_api import ORG, OTHER_ORG, PROJECT, IdentityApi, registry, run_identity_api
from tests.kit.proofs.crashing_store import Fuse, FusedStore
from tests.kit.proofs.linearizability.invariants import check_invariant, invariant_of, settle
from tests.kit.proofs.linearizability.quota_clients import (
    TELLER,
    Quotas,
    asking,
    furnish,
    limiting,
    quota_client,
    service,
    used_in,
)
from tests.kit.simulation.runner import World
from tests.kit.simulation.store import open_simulated

LIFE = timedelta(minutes=10)
WHERE = (ORG, PROJECT)
OTHER_PROJECT = "b0000000-0000-4000-8000-00000000000a"


def context(world: World, key: str | None = None, operation: str = "") -> Context:
    return Context(principal=TELLER, operation=operation or random_id(world.randomness), key=key)


async def opened(world: World) -> tuple[SqliteStore, Quotas]:
    store = open_simulated(world, registry())
    await furnish(store, *WHERE)
    world.invariants.append(invariant_of(store, ORG))
    return store, service(store, world.clock, world.randomness, intent_lifetime=LIFE)


async def many(quotas: Quotas, world: World, number: int) -> list[Any]:
    """Let so many callers ask for a server each, all at once."""
    return await asyncio.gather(
        *[
            quotas.allocations.allocate(context(world), *WHERE, asking(f"owner-{each}", servers=1))
            for each in range(number)
        ],
        return_exceptions=True,
    )


@options(seeds=10)
async def test_64_callers_who_want_10_get_exactly_10(world: World) -> None:

    async def many_more(quotas: Quotas, world: World) -> list[Any]:
        return await asyncio.gather(
            *[
                quotas.allocations.allocate(context(world), *WHERE, asking(f"other-{each}", servers=1))
                for each in range(32)
            ],
            return_exceptions=True,
        )

    store, quotas = await opened(world)
    other = service(store, world.clock, world.randomness, intent_lifetime=LIFE)
    outcomes = [*await asyncio.gather(many(quotas, world, 32), many_more(other, world))]
    told = [each for half in outcomes for each in half]
    assert sum(isinstance(each, Allocation) for each in told) == 10
    refused = [each for each in told if isinstance(each, Forbidden)]
    assert len(refused) == 54
    assert {each.message for each in refused} == {"total servers allocation of 11 would exceed quota limit of 10"}
    head = await store.get(Quota, ORG)
    assert (used_in(head), head.spec.intents) == (10, ())
    assert len((await store.list(Allocation)).items) == 10
    await store.close()


def test_64_callers_over_http_who_want_10_get_exactly_10() -> None:
    async def scenario(api: IdentityApi[Quotas]) -> None:
        await furnish(api.store, *WHERE)
        client, path = api.ask(TELLER), f"/api/v1/organizations/{ORG}/projects/{PROJECT}/allocations"
        replies = await asyncio.gather(*[client.post(path, asking(f"owner-{each}", servers=1)) for each in range(64)])
        assert sorted(reply.status for reply in replies) == [201] * 10 + [403] * 54
        quotas = (await client.get(f"/api/v1/organizations/{ORG}/quotas")).json["quotas"]
        assert [each["used"] for each in quotas if each["kind"] == "servers"] == [10]

    run_identity_api(
        lambda world, store: service(store, world.clock, world.randomness, intent_lifetime=LIFE),
        ROUTES,
        scenario,
        seeds=3,
    )


@options(seeds=5)
async def test_callers_of_one_organization_share_writes_of_its_head(world: World) -> None:
    store, _ = await opened(world)
    fuse = Fuse()
    counted = cast("Store", FusedStore(store, fuse))
    quotas = service(counted, world.clock, world.randomness, intent_lifetime=LIFE)
    await quotas.limits.update(context(world), ORG, limiting(servers=100))
    fuse.by_kind.clear()
    assert all(isinstance(each, Allocation) for each in await many(quotas, world, 64))
    assert fuse.by_kind["Allocation"] == 64
    assert fuse.by_kind["Quota"] < 32, "each alone would have needed 128"
    await store.close()


@options(seeds=20)
async def test_a_caller_that_goes_away_disturbs_nobody(world: World) -> None:
    store, quotas = await opened(world)
    asking_all = [
        asyncio.ensure_future(quotas.allocations.allocate(context(world), *WHERE, asking(f"owner-{each}", servers=1)))
        for each in range(20)
    ]
    await world.clock.sleep(world.randomness.uniform(0, 0.05))
    for task in asking_all[::2]:
        task.cancel()
    outcomes = await asyncio.gather(*asking_all, return_exceptions=True)
    stayed = outcomes[1::2]
    assert all(isinstance(each, Allocation | Forbidden) for each in stayed), stayed
    await settle(world, store, quotas, LIFE)
    head = await store.get(Quota, ORG)
    rows = (await store.list(Allocation, index=("active", ORG))).items
    assert not head.spec.intents
    assert used_in(head) == len(rows) <= 10
    assert {each.name for each in stayed if isinstance(each, Allocation)} <= {row.name for row in rows}
    await store.close()


@options(seeds=20)
async def test_two_operations_for_one_owner_are_never_both_admitted(world: World) -> None:
    store, _ = await opened(world)
    services = [service(store, world.clock, world.randomness, intent_lifetime=LIFE).allocations for _ in range(2)]
    outcomes = await asyncio.gather(
        *[
            services[each % 2].allocate(context(world, f"operation-{each}"), *WHERE, asking("owner", servers=1))
            for each in range(6)
        ],
        return_exceptions=True,
    )
    assert sum(isinstance(each, Allocation) for each in outcomes) == 1
    assert sum(isinstance(each, OwnerHasAllocation) for each in outcomes) == 5
    await store.close()


@options(seeds=20)
async def test_the_same_operation_at_the_same_time_is_one_row(world: World) -> None:
    store, _ = await opened(world)
    services = [service(store, world.clock, world.randomness, intent_lifetime=LIFE).allocations for _ in range(2)]
    rows = await asyncio.gather(
        *[each.allocate(context(world, "operation"), *WHERE, asking("owner", servers=3)) for each in services * 3]
    )
    assert {row.name for row in rows} == {allocation_id(TELLER.subject, "operation")}
    await asyncio.gather(*[each.confirm(context(world), *WHERE, rows[0].name) for each in services * 2])
    changes = [each.change(context(world), *WHERE, rows[0].name, asking("owner", servers=5)) for each in services * 2]
    assert {each.spec.allocations for each in await asyncio.gather(*changes)} == {
        (Amount(kind="servers", committed=5),)
    }
    await asyncio.gather(*[each.release(context(world), *WHERE, rows[0].name) for each in services * 2])
    head = await store.get(Quota, ORG)
    assert (used_in(head), head.spec.intents) == (0, ())
    await store.close()


@options(seeds=[0])
async def test_a_key_belongs_to_one_request_for_ever(world: World) -> None:
    store, quotas = await opened(world)
    row = await quotas.allocations.allocate(context(world, "key"), *WHERE, asking("owner", servers=1))
    with pytest.raises(KeyReused):
        await quotas.allocations.allocate(context(world, "key"), *WHERE, asking("another", servers=1))
    await quotas.allocations.release(context(world), *WHERE, row.name)
    with pytest.raises(AllocationReleased):
        await quotas.allocations.allocate(context(world, "key"), *WHERE, asking("owner", servers=1))
    await store.close()


@options(seeds=[0])
async def test_a_head_takes_only_so_many_open_intents(world: World) -> None:
    store, quotas = await opened(world)
    await quotas.limits.update(context(world), ORG, limiting(servers=2 * MAX_INTENTS))
    world.invariants.clear()
    for start in range(0, MAX_INTENTS, 100):
        taking = [
            quotas.allocations.allocate(context(world, f"key-{each}"), *WHERE, asking(f"owner-{each}", servers=1))
            for each in range(start, start + 100)
        ]
        await asyncio.gather(*taking)
    with pytest.raises(Unavailable, match="are in progress"):
        await quotas.allocations.allocate(context(world, "late"), *WHERE, asking("late", servers=1))
    await quotas.allocations.confirm(context(world), *WHERE, allocation_id(TELLER.subject, "key-0"))
    await quotas.allocations.allocate(context(world, "late"), *WHERE, asking("late", servers=1))
    await check_invariant(store, ORG)
    await store.close()


@options(seeds=[0])
async def test_other_organizations_have_ledgers_of_their_own(world: World) -> None:
    store, quotas = await opened(world)
    await furnish(store, OTHER_ORG, OTHER_PROJECT)
    full = quota_client(quotas, world.randomness, *WHERE)
    assert await full.allocate("owner-1", 10) is not None
    assert await full.allocate("owner-2", 1) is None
    other = quota_client(quotas, world.randomness, OTHER_ORG, OTHER_PROJECT)
    assert await other.allocate("owner-1-there", 10) is not None
    assert (await full.read(), await other.read()) == ((10, 10), (10, 10))
    await store.close()


KINDS = st.sampled_from(["servers", "gpus", "networks"])
NUMBERS = st.integers(min_value=0, max_value=5)
AMOUNTS = st.lists(
    st.builds(Amount, kind=KINDS, committed=NUMBERS, reserved=NUMBERS), unique_by=lambda amount: amount.kind
).map(tuple)


@given(AMOUNTS, AMOUNTS)
def test_amounts_add_up(one: Amounts, other: Amounts) -> None:
    both = plus(one, other)
    assert minus(both, other) == plus(one, ())
    assert plus(other, one) == both
    kinds: Sequence[str] = [amount.kind for amount in both]
    assert kinds == sorted(set(kinds))
    most = larger(one, other)
    for kind in ("servers", "gpus", "networks"):
        assert used(of_kind(most, kind)) == max(used(of_kind(one, kind)), used(of_kind(other, kind)))
        assert of_kind(most, kind) in {of_kind(one, kind), of_kind(other, kind)}
