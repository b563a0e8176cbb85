"""Recorded histories of callers who all want the same quota, held against what a ledger should do."""

import asyncio
from collections import Counter
from datetime import timedelta
from itertools import count

from remuda.identity.kinds.quotas import Quota
from remuda.identity.quotas.routes import ROUTES
from remuda.store.contract import Store
from tests.kit.identity.resource_api import ORG, PROJECT, IdentityApi, registry, run_identity_api
from tests.kit.proofs.crashing_store import Fuse, FusedStore
from tests.kit.proofs.linearizability.histories import Caller, History, crowd
from tests.kit.proofs.linearizability.invariants import check_invariant, check_rest, invariant_of, settle
from tests.kit.proofs.linearizability.paused_store import SleepyStore
from tests.kit.proofs.linearizability.quota_clients import TELLER, OverHttp, Quotas, furnish, quota_client, service
from tests.kit.simulation.runner import World, simulate
from tests.kit.simulation.store import open_simulated

SEEDS = 40
LIFE = timedelta(minutes=10)
LIMIT = 10
EXPECTED = {
    *("Allocate ok", "Allocate refused", "Release ok", "Change ok", "Change refused"),
    *("SetLimit ok", "SetLimit refused", "Read read"),
}
"""What callers have to be told at least once for this to be a test."""


def test_callers_of_two_processes_see_one_ledger() -> None:
    outcomes: Counter[str] = Counter()

    async def scenario(world: World) -> None:
        store = open_simulated(world, registry())
        await furnish(store, ORG, PROJECT)
        history = History()
        world.invariants.append(invariant_of(store, ORG))
        processes = [service(store, world.clock, world.randomness, intent_lifetime=LIFE) for _ in range(2)]
        services = [quota_client(processes[number % 2], world.randomness, ORG, PROJECT) for number in range(5)]
        callers = [
            Caller(f"caller-{number}", each, history, world.clock, world.randomness)
            for number, each in enumerate(services)
        ]
        await crowd(callers, 12)
        history.check(LIMIT)
        outcomes.update(history.outcomes)
        held = {name: amount for caller in callers for name, (_, amount) in caller.held.items()}
        await check_rest(store, ORG, held=held, kind="servers")
        await store.close()

    simulate(scenario, SEEDS)
    assert outcomes.keys() >= EXPECTED, outcomes


def test_callers_of_a_process_that_dies_leave_nothing_behind() -> None:
    """One of two processes dies at a write. What its callers were told is kept, and the rest is settled in time.

    What they wanted to release and others say is there is held on, if it was not released by then.
    """
    outcomes: Counter[str] = Counter()

    async def scenario(world: World) -> None:
        store = open_simulated(world, registry())
        await furnish(store, ORG, PROJECT)
        history = History()
        world.invariants.append(invariant_of(store, ORG))
        moment = "before" if world.randomness.randrange(2) else "after"
        dying = FusedStore(store, Fuse(1 + world.randomness.randrange(40), moment))  # type: ignore[arg-type]  # one of the moments
        stores: list[Store] = [store, dying]
        processes = [service(each, world.clock, world.randomness, intent_lifetime=LIFE) for each in stores]
        callers = [
            Caller(
                f"caller-{number}",
                quota_client(processes[number % 2], world.randomness, ORG, PROJECT),
                history,
                world.clock,
                world.randomness,
            )
            for number in range(4)
        ]
        await crowd(callers, 10)
        survivor = Caller("late", quota_client(processes[0], world.randomness, ORG, PROJECT), history, world.clock,
                          world.randomness)  # fmt: skip
        await survivor.ask(3, pause_s=1)
        await survivor.confirm_all()
        await settle(world, store, processes[0], LIFE)
        await survivor.look()
        await survivor.ask(3, pause_s=1)
        history.check(LIMIT)
        outcomes.update(history.outcomes)
        await check_invariant(store, ORG)
        await store.close()

    simulate(scenario, SEEDS)
    unknown = {outcome for outcome in outcomes if outcome.endswith("unknown")}
    assert {"Allocate unknown", "Release unknown", "Change unknown"} <= unknown, outcomes
    assert outcomes.keys() >= {"Confirm ok", "Confirm gone"}, outcomes
    assert outcomes.keys() >= EXPECTED, outcomes


def test_callers_of_a_process_that_falls_asleep_collide_with_what_was_decided_without_them() -> None:
    outcomes: Counter[str] = Counter()

    async def scenario(world: World) -> None:
        store = open_simulated(world, registry())
        await furnish(store, ORG, PROJECT)
        history = History()
        world.invariants.append(invariant_of(store, ORG))
        draw = world.randomness.randrange
        sleepy = SleepyStore(
            store,
            world.clock,
            at=1 + draw(40),
            moment="before" if draw(2) else "after",
            for_s=LIFE.total_seconds() + 30,
        )
        stores: list[Store] = [store, sleepy]
        processes = [service(each, world.clock, world.randomness, intent_lifetime=LIFE) for each in stores]
        callers = [
            Caller(
                f"caller-{number}",
                quota_client(processes[number % 2], world.randomness, ORG, PROJECT),
                history,
                world.clock,
                world.randomness,
            )
            for number in range(4)
        ]
        asking = asyncio.ensure_future(crowd(callers, 10))
        late = Caller("late", callers[0].quotas, history, world.clock, world.randomness)
        await settle(world, store, processes[0], LIFE)
        await late.ask(4, pause_s=1)
        await asking
        await late.ask(3, pause_s=1)
        await settle(world, store, processes[0], LIFE)
        history.check(LIMIT)
        outcomes.update(history.outcomes)
        head = await store.get(Quota, ORG)
        assert not head.spec.intents
        await check_invariant(store, ORG)
        await store.close()

    simulate(scenario, SEEDS)
    assert outcomes["Allocate unknown"] > 0, "somebody came too late"
    assert outcomes.keys() >= EXPECTED, outcomes


def test_callers_over_http_see_one_ledger() -> None:
    outcomes: Counter[str] = Counter()

    async def scenario(api: IdentityApi[Quotas]) -> None:
        await furnish(api.store, ORG, PROJECT)
        history, client = History(), api.ask(TELLER)
        api.world.invariants.append(invariant_of(api.store, ORG))
        callers = [
            Caller(
                f"caller-{number}",
                OverHttp(client=client, organization=ORG, project=PROJECT, keys=count(number)),
                history,
                api.world.clock,
                api.world.randomness,
            )
            for number in range(4)
        ]
        await crowd(callers, 10)
        history.check(LIMIT)
        outcomes.update(history.outcomes)
        held = {name: amount for caller in callers for name, (_, amount) in caller.held.items()}
        await check_rest(api.store, ORG, held=held, kind="servers")

    run_identity_api(
        lambda world, store: service(store, world.clock, world.randomness, intent_lifetime=LIFE),
        ROUTES,
        scenario,
        seeds=8,
    )
    assert outcomes.keys() >= EXPECTED, outcomes
