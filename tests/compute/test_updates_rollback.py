"""A change to what costs less whose last answer is lost: what was released is held again before anything is put back.

Found by the simulation: the instance had its public address again, and nobody held what that costs.
"""

import pytest

from remuda.compute.kinds import ComputeInstance
from remuda.kernel.errors import Unavailable
from remuda.operations.kinds import OPEN, Operation
from remuda.quota.client import QuotaClient
from remuda.quota.ports import Charge
from tests.kit.compute.environment import ComputeEnvironment
from tests.kit.compute.requests import held, settle
from tests.kit.compute.updates import put, wanted

LESS, MORE = [{"servers": 1}], [{"servers": 1, "floatingips": 1}]


@pytest.mark.parametrize("is_taken", [False, True])
async def test_c10_a_change_that_is_rolled_back_holds_first_what_it_costs_again(
    compute: ComputeEnvironment, monkeypatch: pytest.MonkeyPatch, *, is_taken: bool
) -> None:
    tenant = await settle(compute)
    reply = await tenant.client.post("/api/v2/instances", tenant.wanted(compute, networking={"publicIP": True}))
    instance = reply.json["metadata"]["id"]
    await compute.until(instance, "provisioned")
    _lose_the_answer(compute, monkeypatch, is_taken=is_taken)
    reply = await put(tenant.client, instance, wanted(tenant, compute, networking={"publicIP": False}))
    assert reply.status == 503
    await compute.clock.sleep(60)
    assert not (await compute.store.list(Operation, index=OPEN)).items
    found = await compute.store.get(ComputeInstance, instance)
    assert found.spec.wants_public_ip is not is_taken
    assert await held(compute) == (LESS if is_taken else MORE)
    await compute.until(instance, "provisioned")


def _lose_the_answer(compute: ComputeEnvironment, monkeypatch: pytest.MonkeyPatch, *, is_taken: bool) -> None:
    """Lose the answer to what gives something back; if it `is_taken`, nobody may have it again after that."""
    plain, lost = QuotaClient.update, [True]

    async def update(self: QuotaClient, charge: Charge) -> None:
        await plain(self, charge)
        if lost and all(amount.kind != "floatingips" for amount in charge.amounts):
            lost.clear()
            if is_taken:
                await _allow_no_more(compute)
            raise Unavailable("The answer was lost.")

    monkeypatch.setattr(QuotaClient, "update", update)


async def _allow_no_more(compute: ComputeEnvironment) -> None:
    region = compute.region
    quotas = {"quotas": [{"kind": "floatingips", "quantity": 0}, {"kind": "servers", "quantity": 5}]}
    platform = region.identity.client(region.identity.root)
    reply = await platform.put(f"/api/v1/organizations/{region.organization}/quotas", quotas)
    assert reply.status == 200, reply.body
