"""Instances whose labels were damaged behind our back."""

import msgspec
import pytest

from remuda.compute.instances.rules import SCOPE
from remuda.resources.labels import PROJECT
from remuda.resources.regional import NETWORK, REGION
from tests.compute.asking import at
from tests.compute.controlling import (
    at_cloud,
    events,
    made,
    network_of,
    rest,
    said,
    stored,
)
from tests.compute.house import ComputeHouse, in_a_compute

replace = msgspec.structs.replace


@pytest.mark.parametrize("label", [NETWORK, REGION, PROJECT])
def test_c12_damaged_labels_are_said_and_keep_nobody_else_from_anything(label: str) -> None:
    async def scenario(house: ComputeHouse) -> None:
        network = await network_of(house)
        instance, other = await made(house, network, "one"), await made(house, network, "other")
        found = await stored(house, instance)
        labels = {key: value for key, value in found.metadata.labels.items() if key != label}
        damaged = replace(found, metadata=replace(found.metadata, labels=labels))
        await house.store.update(damaged)
        await rest(house, 5)
        assert label in (await said(house, instance)).message
        assert len(at_cloud(house)) == 2
        await house.root.delete(at(other))
        await house.until_gone(other)
        mended = await stored(house, instance)
        await house.store.update(replace(mended, metadata=replace(mended.metadata, labels=found.metadata.labels)))
        await rest(house, 5)
        assert (await house.read(instance))["metadata"]["provisioningStatus"] == "provisioned"
        assert "MadeAgain" not in await events(house, instance)

    in_a_compute(scenario)


@pytest.mark.parametrize("label", SCOPE)
def test_c12_nothing_that_is_asked_about_an_instance_with_damaged_labels_is_an_internal_error(label: str) -> None:
    async def scenario(house: ComputeHouse) -> None:
        instance = await made(house, await network_of(house))
        found = await stored(house, instance)
        labels = {key: value for key, value in found.metadata.labels.items() if key != label}
        await house.store.update(replace(found, metadata=replace(found.metadata, labels=labels)))
        for verb in ("", "timeline", "operations", "explain", "consoleoutput", "sshkey"):
            assert (await house.root.get(at(instance, verb))).status == 404, verb
        assert (await house.root.get("/api/v2/instances")).json == []
        assert (await house.root.delete(at(instance))).status == 404
        body = house.wanted(found.metadata.labels[NETWORK])
        spec = {key: body["spec"][key] for key in ("flavorId", "imageId")}
        assert (await house.root.put(at(instance), body | {"spec": spec})).status == 404

    in_a_compute(scenario)
