"""What reconciles the ledger: the controller, the monitor, and what forgets."""

import asyncio
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from remuda.access.principal import Context
from remuda.identity.kinds.quotas import Allocation, Amount, Quota
from remuda.identity.kinds.tenancy import Organization, Project
from remuda.identity.ports import Fetched, IdentityPorts
from remuda.identity.quotas.controller import UsageRetention, controllers
from remuda.identity.quotas.monitor import Monitor, drift_of, pause_s
from remuda.identity.quotas.quota_state import OrganizationDeleting
from remuda.kernel.errors import NotFound
from remuda.kernel.ids import random_id
from remuda.reconcile.leader import SingleProcess
from remuda.reconcile.ports import ControllerSettings
from remuda.store.sqlite.store import SqliteStore
from tests.kit.environment import options
from tests.kit.identity.login import nothing_published
from tests.kit.identity.resource_api import ORG, PROJECT, registry
from tests.kit.proofs.linearizability.invariants import check_invariant, invariant_of
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
from tests.kit.simulation.store import SEALER, open_simulated

LIFE = timedelta(minutes=10)
WHERE = (ORG, PROJECT)
HOUR_S = 3600


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


async def no_fetch(*_: Any, organization: str) -> Fetched:  # noqa: ARG001  a Fetch
    raise AssertionError("nobody is asked")


def ports_of(world: World, store: SqliteStore) -> IdentityPorts:
    return IdentityPorts(
        store=store,
        log=store,
        clock=world.clock,
        randomness=world.randomness,
        sealer=SEALER,
        fetch=no_fetch,
        find_txt=nothing_published,
    )


async def until(world: World, sentence: str, holds: Any) -> None:
    for _ in range(200):
        if await holds():
            return
        await world.clock.sleep(0.5)
    raise AssertionError(sentence)


@options(seeds=3)
async def test_the_controller_ends_what_nobody_else_does_and_lets_an_organization_go(world: World) -> None:
    store, quotas = await opened(world)
    (driver,) = controllers(ports_of(world, store).reconcile_ports, quotas.ledger, settings=ControllerSettings())
    await driver.start()
    held = await quotas.allocations.allocate(context(world), *WHERE, asking("owner-1", servers=1))
    await quotas.allocations.allocate(context(world, "key"), *WHERE, asking("owner-2", servers=1))
    await quotas.limits.update(context(world), ORG, limiting(servers=5), PROJECT)
    await world.clock.sleep(LIFE.total_seconds() + 5)
    head = await store.get(Quota, ORG)
    assert (used_in(head), head.spec.intents) == (1, ())
    organization = await store.get(Organization, ORG)
    await store.delete(Organization, ORG, uid=organization.uid)
    await world.clock.sleep(30)
    assert (await store.get(Quota, ORG)).is_deleting, "something is held"
    with pytest.raises((OrganizationDeleting, NotFound)):
        await quotas.ledger.reserve(renamed(held), log=())
    await quotas.ledger.release(held.name, check=lambda _: None)

    async def is_gone() -> bool:
        return not (await store.list(Organization)).items

    await until(world, "the organization goes", is_gone)
    assert not (await store.list(Quota)).items
    left = (await store.list(Allocation)).items
    assert {row.spec.state for row in left} == {"released"}, "what was used is known still"
    assert held.name in {row.name for row in left}
    retention = UsageRetention(store, clock=world.clock, leader=SingleProcess(), retention=timedelta(days=2))
    assert await retention.delete_expired() == 0
    await world.clock.sleep(50 * HOUR_S)
    assert await retention.delete_expired() == len(left)
    await driver.stop()
    await store.close()


def renamed(row: Allocation) -> Allocation:
    metadata = msgspec.structs.replace(row.metadata, name="c0000000-0000-4000-8000-000000000009")
    return msgspec.structs.replace(row, metadata=metadata)


@options(seeds=[0])
async def test_limits_of_a_project_go_with_it(world: World) -> None:
    store, quotas = await opened(world)
    (driver,) = controllers(ports_of(world, store).reconcile_ports, quotas.ledger, settings=ControllerSettings())
    await driver.start()
    await quotas.limits.update(context(world), ORG, limiting(servers=5), PROJECT)
    await world.clock.sleep(5)
    assert [each.project for each in (await store.get(Quota, ORG)).spec.projects] == [PROJECT]
    project = await store.get(Project, PROJECT)
    await store.delete(Project, PROJECT, uid=project.uid)

    async def is_gone() -> bool:
        return not (await store.get(Quota, ORG)).spec.projects

    await until(world, "the limits go", is_gone)
    await driver.stop()
    await store.close()


def monitor_of(
    world: World, store: SqliteStore, quotas: Quotas, *, every_s: float = 300.0
) -> tuple[Monitor, CollectorRegistry]:
    metrics = CollectorRegistry()
    return Monitor(
        store, quotas.ledger, clock=world.clock, leader=SingleProcess(), metrics=metrics, interval_s=every_s
    ), metrics


@options(seeds=10)
async def test_the_monitor_finds_nothing_wrong_while_everybody_writes(world: World) -> None:
    store, quotas = await opened(world)
    monitor, metrics = monitor_of(world, store, quotas)
    asking_all = asyncio.ensure_future(many(quotas, world, 30))
    while not asking_all.done():
        await monitor.check_all()
        await world.clock.sleep(0.01)
    await asking_all
    assert metrics.get_sample_value("remuda_quota_drift") == 0
    assert metrics.get_sample_value("remuda_quota_rebuilds_total") == 0
    await store.close()


@options(seeds=[0])
async def test_a_head_that_is_wrong_twice_is_written_again_from_its_rows(world: World) -> None:
    store, quotas = await opened(world)
    await quotas.allocations.allocate(context(world), *WHERE, asking("owner-1", servers=2))
    await quotas.allocations.allocate(context(world, "key"), *WHERE, asking("owner-2", servers=3, gpus=1))
    world.invariants.clear()
    monitor, metrics = monitor_of(world, store, quotas)
    head = await store.get(Quota, ORG)
    wrong = msgspec.structs.replace(head.spec, totals=(Amount(kind="servers", committed=9),), projects=())
    await store.update(msgspec.structs.replace(head, spec=wrong))
    with capture_logs() as lines:
        await monitor.check_all()
        assert metrics.get_sample_value("remuda_quota_drift") == 1
        assert await drift_of(store, ORG) is not None, "once is not enough"
        await monitor.check_all()
    assert {line["event"] for line in lines} == {"quota record differs from its allocations"}
    assert metrics.get_sample_value("remuda_quota_rebuilds_total") == 1
    assert await drift_of(store, ORG) is None
    await monitor.check_all()
    assert metrics.get_sample_value("remuda_quota_drift") == 0
    await check_invariant(store, ORG)
    assert used_in(await store.get(Quota, ORG)) == 5
    await store.close()


@options(seeds=[0])
async def test_an_organization_with_very_many_rows_is_looked_at_less_often(world: World) -> None:
    store, quotas = await opened(world)
    for number in range(3):
        await quotas.allocations.allocate(context(world, f"key-{number}"), *WHERE, asking(f"owner-{number}", servers=1))
    world.invariants.clear()
    monitor, metrics = monitor_of(world, store, quotas, every_s=0.01)  # three allocations are very many for that
    head = await store.get(Quota, ORG)
    wrong = msgspec.structs.replace(head.spec, totals=(Amount(kind="servers", committed=9),), projects=())
    await store.update(msgspec.structs.replace(head, spec=wrong))
    await monitor.check_all()
    await monitor.check_all()
    assert metrics.get_sample_value("remuda_quota_drift") == 1, "it is still known to be wrong"
    assert metrics.get_sample_value("remuda_quota_rebuilds_total") == 0, "and was not looked at again"
    await world.clock.sleep(pause_s(3, 0.01))
    await monitor.check_all()
    assert metrics.get_sample_value("remuda_quota_rebuilds_total") == 1
    assert metrics.get_sample_value("remuda_quota_drift") == 0
    await check_invariant(store, ORG)
    await store.close()


@options(seeds=[0])
async def test_usage_is_forgotten_when_nobody_may_ask_for_it_any_more(world: World) -> None:
    store, quotas = await opened(world)
    retention = UsageRetention(store, clock=world.clock, leader=SingleProcess(), retention=timedelta(hours=30))
    there = quota_client(quotas, world.randomness, *WHERE)
    first, second = await there.allocate("owner-1", 1), await there.allocate("owner-2", 1)
    assert first is not None
    assert second is not None
    await there.release(first)
    await world.clock.sleep(29 * HOUR_S)
    assert await retention.delete_expired() == 0
    await world.clock.sleep(2 * HOUR_S)
    assert await retention.delete_expired() == 1
    assert [row.name for row in (await store.list(Allocation)).items] == [second], "what is held stays"
    assert await retention.delete_expired() == 0
    await there.release(second)
    hasty = UsageRetention(store, clock=world.clock, leader=SingleProcess(), retention=timedelta(0))
    assert await hasty.delete_expired() == 0, "a name that keeps late writers out stays for a day"
    await world.clock.sleep(25 * HOUR_S)
    assert await hasty.delete_expired() == 1
    await store.close()
