"""An update is shown as under way by its own response and by every read until the instance is as requested.

A client that reads once after its request, as Terraform does, then keeps no value of the server that there was before.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from remuda.compute.kinds import ComputeInstance
from remuda.kernel.errors import Unavailable
from remuda.region.kinds.servers import Server
from tests.kit.asgi.contract import Reply
from tests.kit.compute.controllers import rest
from tests.kit.compute.environment import INSTANCES, ComputeEnvironment
from tests.kit.compute.requests import Tenant, at, encoded, made, settle
from tests.kit.compute.updates import LARGE, ROCKY, put, wanted
from tests.kit.identity.environment import expect

OFTEN_S = 0.01
Update = Callable[[ComputeEnvironment, Tenant, str], Awaitable[Reply]]
PUBLIC = {"networking": {"publicIP": True}}


def _putting(**spec: Any) -> Update:
    return lambda compute, tenant, instance: put(tenant.client, instance, wanted(tenant, compute, **spec))


def _rebuild(_: ComputeEnvironment, tenant: Tenant, instance: str) -> Awaitable[Reply]:
    return tenant.client.post(at(instance, "rebuild"))


UPDATES: dict[str, tuple[dict[str, Any], Update, set[str]]] = {
    "another flavor": ({}, _putting(flavorId=LARGE), {"Rebuilding"}),
    "another image": ({}, _putting(imageId=ROCKY), {"Rebuilding"}),
    "its own image": ({}, _rebuild, {"Rebuilding"}),
    "a public address": ({}, _putting(**PUBLIC), {"Running"}),
    "no public address": (PUBLIC, _putting(), {"Running"}),
    "everything": ({}, _putting(flavorId=LARGE, imageId=ROCKY, **PUBLIC), {"Rebuilding"}),
}
"""What an instance has before, what is requested, and the power states that it may show until that is done."""


async def _begin(compute: ComputeEnvironment, spec: dict[str, Any]) -> tuple[Tenant, str]:
    tenant = await settle(compute)
    instance = made(await tenant.client.post(INSTANCES, tenant.wanted(compute, **spec)))
    await compute.until(instance, "provisioned")
    await rest(compute, 5)
    return tenant, instance


async def _is_as_requested(compute: ComputeEnvironment, instance: str) -> bool:
    """Tell whether the cloud has what is requested; it is looked at directly."""
    wanted_ = await compute.store.get(ComputeInstance, instance)
    server = await compute.store.get(Server, instance)
    (found,) = compute.region.north.operator.servers()
    if found.state != "running":
        return False
    has_ip = bool(server.status.public_ip)
    there = (found.flavor, found.image, found.rebuilds, has_ip)
    spec = wanted_.spec
    return there == (spec.flavor_id, spec.image_id, spec.rebuilds, spec.wants_public_ip)


@pytest.mark.parametrize("update", UPDATES)
async def test_m12_an_update_is_under_way_in_its_response_and_in_every_read_until_it_is_true(
    compute: ComputeEnvironment, update: str
) -> None:
    spec, ask, powers = UPDATES[update]
    tenant, instance = await _begin(compute, spec)
    before = (await compute.read(instance))["status"]
    reads = [expect(await ask(compute, tenant, instance), 202)]
    while reads[-1]["metadata"]["provisioningStatus"] != "provisioned":
        read = reads[-1]
        assert read["metadata"]["provisioningStatus"] == "provisioning"
        assert read["status"]["powerState"] in powers
        assert read["status"]["privateIP"] == before["privateIP"]
        assert read["status"]["macAddress"] == before["macAddress"]
        if "publicIP" not in (read["spec"].get("networking") or {}):
            assert "publicIP" not in read["status"], "it is released"
        reads.append(await compute.read(instance))
        if reads[-1]["metadata"]["provisioningStatus"] == "provisioned":
            assert await _is_as_requested(compute, instance), "it says so only when it is true"
            break
        await compute.clock.sleep(OFTEN_S)
    assert len(reads) > 2, "it was under way"
    last = reads[-1]
    assert (last["status"]["powerState"], last["status"]["privateIP"]) == ("Running", before["privateIP"])
    assert bool(last["status"].get("publicIP")) == bool((last["spec"].get("networking") or {}).get("publicIP"))
    await rest(compute)
    final = await compute.read(instance)
    assert (final["status"], final["spec"]) == (last["status"], last["spec"]), "nothing changes by itself afterwards"


async def test_m12_a_watch_does_not_show_the_old_state_again(compute: ComputeEnvironment) -> None:
    tenant, instance = await _begin(compute, {})
    seen: list[ComputeInstance] = []
    expect(await _rebuild(compute, tenant, instance), 202)
    version = ""
    while not seen or (await compute.read(instance))["metadata"]["provisioningStatus"] != "provisioned":
        found = await compute.store.get(ComputeInstance, instance)
        if found.version != version:
            version = found.version
            seen.append(found)
            read = await compute.read(instance)
            is_done = read["metadata"]["provisioningStatus"] == "provisioned"
            assert read["status"]["powerState"] == ("Running" if is_done else "Rebuilding")
        await compute.clock.sleep(OFTEN_S)
    assert len(seen) > 1


@pytest.mark.parametrize("lasts_s", [0.05, 5])
async def test_an_update_stays_under_way_while_region_does_not_respond(
    compute: ComputeEnvironment, lasts_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant, instance = await _begin(compute, {})
    api = compute.app.ports.region.api
    update = api.update_server

    async def unreachable(*_: Any, **__: Any) -> Any:
        await asyncio.sleep(0)
        raise Unavailable("not now")

    body = wanted(tenant, compute, imageId=ROCKY)
    monkeypatch.setattr(api, "update_server", unreachable)
    shown = [expect(await put(tenant.client, instance, body), 202)]
    for _ in range(20):
        await compute.clock.sleep(lasts_s / 20)
        shown.append(await compute.read(instance))
    for read in shown:
        assert (read["metadata"]["provisioningStatus"], read["status"]["powerState"]) == ("provisioning", "Rebuilding")
    monkeypatch.setattr(api, "update_server", update)
    await compute.until(instance, "provisioned")
    assert (await compute.read(instance))["status"]["powerState"] == "Running"


async def test_an_update_that_destroys_nothing_shows_the_power_state_as_it_is(compute: ComputeEnvironment) -> None:
    tenant, instance = await _begin(compute, {})
    reply = await put(tenant.client, instance, wanted(tenant, compute, userData=encoded("#cloud-config\n")))
    read = expect(reply, 202)
    assert (read["metadata"]["provisioningStatus"], read["status"]["powerState"]) == ("provisioning", "Running")
    await compute.until(instance, "provisioned")


async def test_m12_groups_and_projects_are_provisioned_at_once(compute: ComputeEnvironment) -> None:
    identity, organization = compute.region.identity, compute.region.organization
    group = await identity.group(organization, "user", name="others")
    client = identity.client(identity.root)
    for kind, id_ in (("groups", group), ("projects", await identity.project(organization, group, name="other"))):
        path = f"/api/v1/organizations/{organization}/{kind}/{id_}"
        read = (await client.get(path)).json
        if kind == "projects":
            while read["metadata"]["provisioningStatus"] != "provisioned":
                await compute.clock.sleep(OFTEN_S)
                read = (await client.get(path)).json
        body = {"metadata": {"name": read["metadata"]["name"], "description": "changed"}, "spec": read["spec"]}
        assert (await client.put(path, body)).status in {200, 202}
        assert (await client.get(path)).json["metadata"]["provisioningStatus"] == "provisioned", kind
