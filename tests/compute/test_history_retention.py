"""What is remembered of an instance, however much is told under its id by creates that are refused."""

from typing import Any

import msgspec

from remuda.compute.kinds import INSTANCE
from remuda.resources.conventions import ORGANIZATION, PROJECT
from remuda.store.logs import Record, subject_of
from tests.kit.compute.controllers import rest
from tests.kit.compute.environment import INSTANCES, ComputeEnvironment
from tests.kit.compute.requests import at, made, settle
from tests.kit.compute.timelines import lived, timeline
from tests.kit.identity.environment import expect


def _entry(instance: str, said: dict[str, Any]) -> Record:
    data = msgspec.Raw(msgspec.json.encode(said))
    return Record(stream="timeline", subject=subject_of(INSTANCE.qualified, instance), data=data)


async def _refused(compute: ComputeEnvironment, instance: str, times: int = 2_500) -> None:
    """Leave what creates of a name leave behind that are refused again and again."""
    said = {"event": "OperationUndone", "operation": "o", "saga": "instance.create", "error": {"code": "forbidden"}}
    await compute.app.ports.log.append([_entry(instance, said)] * times)


async def test_creates_that_are_refused_do_not_make_an_instance_that_is_gone_forgotten(
    compute: ComputeEnvironment,
) -> None:
    tenant = await settle(compute)
    instance = await lived(compute, tenant)
    await _refused(compute, instance)
    explained = expect(await tenant.client.get(f"{at(instance)}/explain"), 200)
    assert explained["messages"][0].endswith(": deletion was requested by ann@example.com.")
    assert len(await timeline(tenant.client, instance, limit="5")) == 5


async def test_creates_that_are_refused_do_not_hide_who_stopped_an_instance(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    instance = made(await tenant.client.post(INSTANCES, tenant.wanted(compute)))
    await compute.until(instance, "provisioned")
    assert (await tenant.client.post(f"{at(instance)}/stop")).status == 202
    await rest(compute, 20)
    await _refused(compute, instance)
    explained = expect(await tenant.client.get(f"{at(instance)}/explain"), 200)
    assert explained["messages"][-1].startswith("The instance was stopped by ann@example.com at ")


async def test_an_instance_that_an_earlier_release_released_is_remembered(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    instance = "e0000000-0000-4000-8000-00000000000e"
    labels = {ORGANIZATION: compute.region.organization, PROJECT: tenant.project}
    said = {"event": "FinalizerRemoved", "uid": "u", "labels": labels}
    await compute.app.ports.log.append([_entry(instance, said)])
    assert expect(await tenant.client.get(f"{at(instance)}/explain"), 200)["incarnation"] == "u"
