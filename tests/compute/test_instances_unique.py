"""Names are unique on a network: whoever comes second leaves nothing behind, and takes nothing away."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from remuda.access.principal import Principal
from remuda.compute.kinds import ComputeInstance
from remuda.kernel.clock import Clock
from remuda.quota.ports import Charge
from remuda.region.kinds.servers import Server
from tests.kit.asgi.contract import Reply
from tests.kit.compute.environment import INSTANCES, ComputeEnvironment
from tests.kit.compute.requests import Tenant, at, held, made, settle
from tests.kit.environment import options
from tests.kit.resource_api import rejection

MANY = 64


async def _all_at_once(compute: ComputeEnvironment, tenant: Tenant, name: str = "web") -> list[Reply]:
    wanted = tenant.wanted(compute, name)
    return await asyncio.gather(*(tenant.client.post(INSTANCES, wanted) for _ in range(MANY)))


async def _one_is_there(compute: ComputeEnvironment, instance: str) -> None:
    """See that one instance, one server and one allocation are there, and stay there."""
    await compute.until(instance, "provisioned")
    await compute.clock.sleep(600)
    (stored,) = (await compute.store.list(ComputeInstance)).items
    assert (stored.name, stored.is_deleting) == (instance, False)
    assert [each.name for each in (await compute.store.list(Server)).items] == [instance]
    assert await held(compute) == [{"servers": 1}]


@pytest.mark.parametrize("seed", range(3))
@options(lambda seed: {"seed": seed})
async def test_m07_of_64_creates_of_one_name_at_once_one_is_done_and_the_rest_are_refused(
    compute: ComputeEnvironment,
) -> None:
    tenant = await settle(compute)
    replies = await _all_at_once(compute, tenant)
    assert Counter(reply.status for reply in replies) == {201: 1, 409: MANY - 1}
    (winner,) = [made(reply) for reply in replies if reply.status == 201]
    assert {reply.json["code"] for reply in replies if reply.status == 409} == {"already_exists"}
    await _one_is_there(compute, winner)


class Slow:
    """Identity, which takes its time to release what is held, and to say that somebody else holds something."""

    def __init__(self, identity: Any, clock: Clock) -> None:
        self._identity, self._clock = identity, clock
        self.released = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._identity, name)

    async def allocate(self, charge: Charge, payer: Principal | None = None) -> None:
        try:
            await self._identity.allocate(charge, payer)
        except Exception:
            await self._clock.sleep(3)
            raise

    async def release(self, charge: Charge) -> None:
        await self._clock.sleep(5)
        self.released += 1
        await self._identity.release(charge)


@pytest.mark.parametrize("seed", range(3))
@options(lambda seed: {"seed": seed})
async def test_c07_m07_also_when_the_undo_of_the_losers_runs_last(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    slow = Slow(compute.app.ports.identity, compute.clock)
    object.__setattr__(_ports(compute), "ledger", slow)
    replies = await _all_at_once(compute, tenant)
    assert Counter(reply.status for reply in replies) == {201: 1, 409: MANY - 1}
    (winner,) = [made(reply) for reply in replies if reply.status == 201]
    await compute.until(winner, "provisioned")
    await compute.clock.sleep(30)
    assert slow.released >= MANY - 1
    await _one_is_there(compute, winner)


def _ports(compute: ComputeEnvironment) -> Any:
    """Return what the steps of a create reach the world through."""
    return compute.app.operations._bound["instance.create"].ports


async def test_m07_a_name_is_taken_while_an_earlier_instance_of_it_is_being_deleted(
    compute: ComputeEnvironment,
) -> None:
    tenant = await settle(compute)
    first = made(await tenant.client.post(INSTANCES, tenant.wanted(compute, "web")))
    await compute.until(first, "provisioned")
    before = await compute.store.get(ComputeInstance, first)
    assert (await tenant.client.delete(at(first))).status == 202
    assert rejection(await tenant.client.post(INSTANCES, tenant.wanted(compute, "web"))) == (
        409,
        "An instance named 'web' is being created or deleted on this network: try again later.",
    )
    winners: list[str] = []
    rounds = 0
    while not winners:
        rounds += 1
        replies = await _all_at_once(compute, tenant)
        assert {reply.status for reply in replies} <= {201, 409}
        winners = [made(reply) for reply in replies if reply.status == 201]
        await compute.clock.sleep(1)
    assert (winners, rounds > 1) == ([first], True)
    await _one_is_there(compute, first)
    after = await compute.store.get(ComputeInstance, first)
    assert after.uid != before.uid
    assert after.spec.operation != before.spec.operation


async def test_m07_the_same_name_on_another_network_is_another_instance(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    second = await compute.region.network("second", projectId=tenant.project, prefix="10.1.0.0/16")
    one = made(await tenant.client.post(INSTANCES, tenant.wanted(compute, "web")))
    two = made(await tenant.client.post(INSTANCES, tenant.wanted(compute, "web", networkId=second)))
    assert one != two
    status, sentence = rejection(await tenant.client.post(INSTANCES, tenant.wanted(compute, "web")))
    assert (status, sentence) == (409, "The network already has an instance named 'web': choose another name.")
