"""What is held for an instance whose server has more than is wanted: that, until the server is without it."""

import pytest

from remuda.kernel.errors import Unavailable
from remuda.quota.client import QuotaClient
from remuda.quota.ports import Charge
from tests.kit.compute.controllers import choose, made, network_of, rest
from tests.kit.compute.environment import INSTANCES, ComputeEnvironment
from tests.kit.compute.requests import DEBIAN, GPUS, METAL, held
from tests.kit.compute.updates import as_it_is, plan, put
from tests.kit.region.environment import STANDARD

PLACES = 6
"""Of the flavor METAL."""
BEFORE = [{"servers": 1, "gpus": 4}]
AFTER = [{"servers": 1}]


async def allow(compute: ComputeEnvironment, **limits: int) -> None:
    path = f"/api/v1/organizations/{compute.region.organization}/quotas"
    quotas = [{"kind": kind, "quantity": quantity} for kind, quantity in limits.items()]
    reply = await compute.region.identity.client(compute.region.identity.root).put(path, {"quotas": quotas})
    assert reply.status < 300, reply.body.decode()


async def test_m17_gpus_are_paid_for_until_another_server_is_there(compute: ComputeEnvironment) -> None:
    instance = await made(compute, await network_of(compute), flavorId=GPUS)
    assert await held(compute) == BEFORE
    smaller = await as_it_is(compute, instance, flavorId=STANDARD)
    assert {each["kind"]: each["delta"] for each in (await plan(compute.root, instance, smaller))["quota"]} == {
        "servers": 0,
        "gpus": -4,
        "floatingips": 0,
    }
    assert (await put(compute.root, instance, smaller)).status == 202
    assert await held(compute) == BEFORE
    await compute.until(instance, "provisioned")
    assert await held(compute) == AFTER


async def test_m17_while_there_is_no_capacity_for_the_other_nobody_else_has_its_gpus(
    compute: ComputeEnvironment,
) -> None:
    await allow(compute, gpus=4)
    network = await network_of(compute)
    instance = await made(compute, network, flavorId=GPUS)
    full = [
        await compute.region.server(network, f"m{number}", flavorId=METAL, imageId=DEBIAN) for number in range(PLACES)
    ]
    await rest(compute)
    await choose(compute, instance, flavor_id=METAL, gpus=0)
    await compute.until(instance, "error")
    assert await held(compute) == BEFORE
    other = await compute.root.post(INSTANCES, compute.wanted(network, "other", flavorId=GPUS))
    assert other.status == 403
    assert await held(compute) == BEFORE
    await compute.region.root.delete(f"/api/v2/servers/{full[0]}")
    await compute.until(instance, "provisioned")
    assert await held(compute) == AFTER


async def test_what_is_not_released_at_once_is_released_later(
    compute: ComputeEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, lost = QuotaClient.update, [1, 2, 3]

    async def update(link: QuotaClient, charge: Charge) -> None:
        if lost:
            lost.pop()
            raise Unavailable("The ledger does not answer.")
        await plain(link, charge)

    instance = await made(compute, await network_of(compute), flavorId=GPUS)
    monkeypatch.setattr(QuotaClient, "update", update)
    assert (await put(compute.root, instance, await as_it_is(compute, instance, flavorId=STANDARD))).status == 202
    await compute.until(instance, "provisioned")
    assert (lost, await held(compute)) == ([], AFTER), "it is not provisioned before"


async def test_who_wants_them_again_in_between_has_them(
    compute: ComputeEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, asked = QuotaClient.update, list[int]()
    instance = await made(compute, await network_of(compute), flavorId=GPUS)
    before = await as_it_is(compute, instance)

    async def update(link: QuotaClient, charge: Charge) -> None:
        if not asked and all(amount.kind != "gpus" for amount in charge.amounts):
            asked.append((await put(compute.root, instance, before)).status)
        await plain(link, charge)

    monkeypatch.setattr(QuotaClient, "update", update)
    assert (await put(compute.root, instance, await as_it_is(compute, instance, flavorId=STANDARD))).status == 202
    await rest(compute, 200)
    assert asked == [202]
    assert (await compute.until(instance, "provisioned"))["spec"]["flavorId"] == GPUS
    assert await held(compute) == BEFORE


async def test_what_somebody_released_meanwhile_is_held_again_and_its_quota_is_asked_for(
    compute: ComputeEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, released = QuotaClient.update, list[str]()
    instance = await made(compute, await network_of(compute), flavorId=GPUS)

    async def update(link: QuotaClient, charge: Charge) -> None:
        if not released:
            released.append(charge.id)
            await link.release(charge)
            await allow(compute, servers=0)
        await plain(link, charge)

    monkeypatch.setattr(QuotaClient, "update", update)
    assert (await put(compute.root, instance, await as_it_is(compute, instance, flavorId=STANDARD))).status == 202
    await rest(compute, 60)
    assert (await compute.read(instance))["metadata"]["provisioningStatusDetail"]["reason"] == "QuotaExceeded"
    assert (released, await held(compute)) == ([instance], [])
    await allow(compute, servers=1)
    await compute.until(instance, "provisioned")
    assert await held(compute) == AFTER
