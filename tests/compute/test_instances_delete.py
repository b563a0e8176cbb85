"""Giving instances up: asked once or often, it ends with nothing left."""

import msgspec
import pytest

from remuda.compute.instances import service
from remuda.compute.kinds import ComputeInstance, Protection
from remuda.compute.policies import check_deletion_allowed
from remuda.store.contract import Store
from tests.kit.compute.environment import INSTANCES, ComputeEnvironment
from tests.kit.compute.requests import NOT_FOUND, at, is_nothing, made, settle
from tests.kit.resource_api import rejection


async def test_m01_m13_what_is_given_up_goes_with_its_server_and_what_it_cost(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    instance = made(await tenant.client.post(INSTANCES, tenant.wanted(compute)))
    await compute.until(instance, "provisioned")
    reply = await tenant.client.delete(at(instance))
    assert (reply.status, reply.body) == (202, b"")
    read = (await tenant.client.get(at(instance))).json
    assert read["metadata"]["provisioningStatus"] == "deprovisioning"
    assert "deletionTime" in read["metadata"]
    assert (await tenant.client.delete(at(instance))).status == 202
    await compute.until_gone(instance)
    await is_nothing(compute)
    assert rejection(await tenant.client.delete(at(instance))) == NOT_FOUND


async def test_what_is_given_up_right_after_it_was_made_goes_too(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    instance = made(await tenant.client.post(INSTANCES, tenant.wanted(compute)))
    assert (await tenant.client.delete(at(instance))).status == 202
    await compute.until_gone(instance)
    await compute.clock.sleep(60)
    await is_nothing(compute)
    assert (await compute.region.root.delete(f"/api/v2/networks/{tenant.network}")).status == 202


async def test_b01_a_delete_holds_for_the_state_that_the_caller_has_seen(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    reply = await tenant.client.post(INSTANCES, tenant.wanted(compute))
    instance = made(reply)
    assert (await tenant.client.delete(at(instance), if_match='"0123456789abcdef0123456789abcdef"')).status == 412
    assert not (await compute.store.get(ComputeInstance, instance)).is_deleting
    await compute.until(instance, "provisioned")
    assert (await tenant.client.delete(at(instance), if_match=reply.headers["etag"])).status == 202


async def test_what_is_protected_from_deletion_stays(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    protected = {"deletion": True, "plan": False}
    instance = made(await tenant.client.post(INSTANCES, tenant.wanted(compute, protection=protected)))
    assert (await tenant.client.delete(at(instance))).status == 403
    reply = await tenant.client.delete(at(instance), if_match='"0123456789abcdef0123456789abcdef"')
    assert reply.status == 412, "If-Match is compared before the instance is found to be protected"
    read = (await tenant.client.get(at(instance))).json
    assert (read["spec"]["protection"], "deletionTime" in read["metadata"]) == (protected, False)


async def test_b02_what_becomes_protected_while_its_deletion_is_validated_stays(
    compute: ComputeEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def protect_meanwhile(store: Store, instance: ComputeInstance) -> None:
        await check_deletion_allowed(store, instance)
        spec = msgspec.structs.replace(instance.spec, protection=Protection(deletion=True))
        await store.update(msgspec.structs.replace(instance, spec=spec))

    tenant = await settle(compute)
    instance = made(await tenant.client.post(INSTANCES, tenant.wanted(compute)))
    await compute.until(instance, "provisioned")
    monkeypatch.setattr(service, "check_deletion_allowed", protect_meanwhile)
    assert (await tenant.client.delete(at(instance))).status == 403
    assert not (await compute.store.get(ComputeInstance, instance)).is_deleting
