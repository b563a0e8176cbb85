"""What is remembered of an instance, however much is told under its id by creates that are refused."""

from typing import Any

import msgspec

from remuda.compute.kinds import INSTANCE
from remuda.resources.conventions import ORGANIZATION, PROJECT
from remuda.store.logs import Record, subject_of
from tests.compute.test_history import lived, timeline
from tests.kit.compute.asking import at, made, settle
from tests.kit.compute.controlling import rest
from tests.kit.compute.house import INSTANCES, ComputeHouse
from tests.kit.identity.household import told


def _entry(instance: str, said: dict[str, Any]) -> Record:
    data = msgspec.Raw(msgspec.json.encode(said))
    return Record(stream="timeline", subject=subject_of(INSTANCE.qualified, instance), data=data)


async def _refused(house: ComputeHouse, instance: str, times: int = 2_500) -> None:
    """Leave what creates of a name leave behind that are refused again and again."""
    said = {"event": "OperationUndone", "operation": "o", "saga": "instance.create", "error": {"code": "forbidden"}}
    await house.app.ports.log.append([_entry(instance, said)] * times)


async def test_creates_that_are_refused_do_not_make_an_instance_that_is_gone_forgotten(compute: ComputeHouse) -> None:
    home = await settle(compute)
    instance = await lived(compute, home)
    await _refused(compute, instance)
    explained = told(await home.client.get(f"{at(instance)}/explain"), 200)
    assert explained["sentences"][0].endswith(": deletion was requested by ann@example.com.")
    assert len(await timeline(home.client, instance, limit="5")) == 5


async def test_creates_that_are_refused_do_not_hide_who_stopped_an_instance(compute: ComputeHouse) -> None:
    home = await settle(compute)
    instance = made(await home.client.post(INSTANCES, home.wanted(compute)))
    await compute.until(instance, "provisioned")
    assert (await home.client.post(f"{at(instance)}/stop")).status == 202
    await rest(compute, 20)
    await _refused(compute, instance)
    explained = told(await home.client.get(f"{at(instance)}/explain"), 200)
    assert explained["sentences"][-1].startswith("The instance was stopped by ann@example.com at ")


async def test_an_instance_that_an_earlier_release_let_go_is_remembered(compute: ComputeHouse) -> None:
    home = await settle(compute)
    instance = "e0000000-0000-4000-8000-00000000000e"
    labels = {ORGANIZATION: compute.region.organization, PROJECT: home.project}
    said = {"event": "LetGo", "uid": "u", "labels": labels}
    await compute.app.ports.log.append([_entry(instance, said)])
    assert told(await home.client.get(f"{at(instance)}/explain"), 200)["incarnation"] == "u"
