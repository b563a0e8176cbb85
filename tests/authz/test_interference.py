"""What one tenant is told does not depend on what another does."""

import asyncio

from tests.example.api import table
from tests.example.app import build, registry
from tests.example.authenticator import ORGANIZATION, PROJECT
from tests.example.pasture import SimPasture
from tests.example.ports import Ports
from tests.kit.asgi.client import Client
from tests.kit.asgi.contract import contract_of
from tests.kit.proofs.authorization.tenants import Diary, Intruder, Tenant
from tests.kit.simulation.runner import World, simulate
from tests.kit.simulation.store import open_simulated

SEEDS = tuple(range(10))
STEPS = 25
SETTLE_S = 120
"""After so long everything is at rest, and nobody's rate is limited."""


async def _play(world: World, diary: Diary, *, with_intruder: bool) -> None:
    store = open_simulated(world, registry())
    pasture = SimPasture(world.clock, world.randomness)
    api = table()
    app = build(
        Ports(store=store, log=store, clock=world.clock, randomness=world.randomness, pasture=pasture, table=api)
    )
    await app.start()
    client = Client(app=app.asgi, contract=contract_of(api))
    tenant = Tenant(client.having("organization-admin"), world.seed, ORGANIZATION, PROJECT)
    intruder = Intruder(client.having("foreigner"), world.seed, tenant)
    for step in range(STEPS):
        async with asyncio.TaskGroup() as group:
            acting = group.create_task(tenant.act(f"key-{step}"))
            if with_intruder:
                group.create_task(intruder.intrude(f"key-{step}"))
        diary.write(*acting.result())
        await world.clock.sleep(SETTLE_S)
    await app.stop()
    await store.close()


def test_a_tenant_is_told_the_same_whether_or_not_another_is_there() -> None:
    alone: dict[int, Diary] = {}
    together: dict[int, Diary] = {}
    simulate(lambda world: _play(world, alone.setdefault(world.seed, Diary()), with_intruder=False), SEEDS)
    simulate(lambda world: _play(world, together.setdefault(world.seed, Diary()), with_intruder=True), SEEDS)
    told = "\n".join(line for diary in alone.values() for line in diary.lines)
    assert all(f" {status} " in told for status in (200, 201, 202, 403, 409)), "the diary has all sorts of answers"
    for seed, diary in alone.items():
        assert together[seed].lines == diary.lines, f"seed {seed}"
