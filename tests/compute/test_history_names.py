"""A service account is called by its name wherever users read who did something; programs find its id beside it."""

from typing import Any

from msgspec.structs import replace

from remuda.identity.kinds.users import ServiceAccount
from remuda.resources.conventions import NAME
from tests.kit.asgi.client import Client
from tests.kit.compute.environment import INSTANCES, ComputeEnvironment
from tests.kit.compute.requests import Tenant, at, made
from tests.kit.compute.timelines import timeline
from tests.kit.identity.environment import expect


async def _settle(compute: ComputeEnvironment) -> tuple[Tenant, str]:
    """Return a project with a service account that may do everything in it, and the id of the account."""
    region, identity = compute.region, compute.region.identity
    group = await identity.group(region.organization, "user", name="robots")
    robot = await identity.account(region.organization, group, name="scripts")
    project = await identity.project(region.organization, group, name="robot-project")
    network = await region.network("robot-net", projectId=project)
    await region.until(f"/api/v2/networks/{network}", "provisioned")
    return Tenant(compute.client(robot.token), project, network), robot.id


async def _rename(compute: ComputeEnvironment, robot: str, name: str) -> None:
    store = compute.region.identity.store
    found = await store.get(ServiceAccount, robot)
    labels = {**found.metadata.labels, NAME: name}
    await store.update(replace(found, metadata=replace(found.metadata, labels=labels)))


async def _events(client: Client, instance: str) -> dict[str, dict[str, Any]]:
    return {each["event"]: each for each in await timeline(client, instance)}


async def test_history_keeps_the_name_that_an_account_had_beside_its_id(compute: ComputeEnvironment) -> None:
    tenant, robot = await _settle(compute)
    instance = made(await tenant.client.post(INSTANCES, tenant.wanted(compute)))
    await compute.until(instance, "provisioned")
    await _rename(compute, robot, "deployment")
    assert (await tenant.client.post(f"{at(instance)}/stop")).status == 202
    await compute.awaited(instance, lambda reply: reply.json["status"].get("powerState") == "Stopped", "stopped")
    events = await _events(tenant.client, instance)
    requested, stopped = events["OperationStarted"], events["Stopped"]
    assert requested["message"] == "The instance was requested by the service account scripts."
    assert stopped["message"] == "The instance was stopped by the service account deployment."
    assert (requested["cause"]["actor"], requested["cause"]["actorName"]) == (robot, "scripts")
    assert (stopped["cause"]["actor"], stopped["cause"]["actorName"]) == (robot, "deployment")
    assert "actorName" not in stopped.get("facts", {})
    (created,) = expect(await tenant.client.get(f"{at(instance)}/operations"), 200)
    assert (created["actor"], created["actorName"]) == (robot, "scripts")
    metadata = expect(await tenant.client.get(at(instance)), 200)["metadata"]
    assert (metadata["createdBy"], metadata["createdByName"]) == (robot, "scripts")
    explained = " ".join(expect(await tenant.client.get(f"{at(instance)}/explain"), 200)["messages"])
    assert "stopped by the service account deployment at" in explained
    assert (await tenant.client.delete(at(instance))).status == 202
    await compute.until_gone(instance)
    explained = " ".join(expect(await tenant.client.get(f"{at(instance)}/explain"), 200)["messages"])
    assert "deletion was requested by the service account deployment" in explained
