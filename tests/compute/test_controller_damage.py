"""Instances whose labels, annotations or spec were damaged behind our back."""

from typing import Any

import pytest
from msgspec.structs import replace

from remuda.compute.instances.rules import SCOPE
from remuda.compute.instances.server_lookup import classified
from remuda.compute.kinds import ComputeInstance
from remuda.resources.conventions import MODIFIED, NAME, NETWORK, ORGANIZATION, PROJECT, REGION
from tests.kit.compute import explanations as explained
from tests.kit.compute.controllers import (
    at_cloud,
    choose,
    delete_server,
    events,
    made,
    metric,
    network_of,
    rest,
    said,
    server_of,
    stored,
)
from tests.kit.compute.environment import INSTANCES, JAMMY, ComputeEnvironment
from tests.kit.compute.region_api import server_read
from tests.kit.compute.requests import ABSENT, at, held

PLACES = (ORGANIZATION, PROJECT, REGION, NETWORK)
"""The labels that say where an instance is, and its server too."""
NOWHERE = "ffffffff-ffff-4fff-8fff-ffffffffffff"
WRONG = [None, NOWHERE, ABSENT]
"""What a damaged label is: missing, an id that we never give, or the id of something else."""
READS = ("", "timeline", "operations", "explain")
VERBS = (("GET", "sshkey"), ("GET", "consolesession"), ("GET", "consoleoutput"), ("POST", "start"), ("POST", "stop"))
INTERNAL = 500


async def damage(compute: ComputeEnvironment, instance: str, label: str, value: str | None) -> ComputeInstance:
    """Write a label of an instance otherwise, or leave it out; return the instance as it was before."""
    found = await stored(compute, instance)
    labels = {key: each for key, each in found.metadata.labels.items() if key != label}
    labels |= {} if value is None else {label: value}
    await compute.store.update(replace(found, metadata=replace(found.metadata, labels=labels)))
    return found


async def repair(compute: ComputeEnvironment, whole: ComputeInstance) -> None:
    """Give an instance the labels again that it had."""
    found = await stored(compute, whole.name)
    await compute.store.update(replace(found, metadata=replace(found.metadata, labels=whole.metadata.labels)))


async def written(compute: ComputeEnvironment, instance: str, **spec: Any) -> tuple[int, int]:
    """Ask for a change, first without doing it; return both answers."""
    found = await stored(compute, instance)
    kept = {"flavorId": found.spec.flavor_id, "imageId": found.spec.image_id}
    body = {"metadata": {"name": found.metadata.labels.get(NAME, "instance")}, "spec": kept | spec}
    dry = await compute.root.send("PUT", at(instance), query={"dryRun": "true"}, body=body)
    return dry.status, (await compute.root.put(at(instance), body)).status


@pytest.mark.parametrize("value", WRONG)
@pytest.mark.parametrize("label", PLACES)
async def test_c12_damaged_labels_are_said_and_keep_nobody_else_from_anything(
    compute: ComputeEnvironment, label: str, value: str | None
) -> None:
    network = await network_of(compute)
    instance, other = await made(compute, network, "one"), await made(compute, network, "other")
    whole = await damage(compute, instance, label, value)
    await rest(compute, 5)
    told = await said(compute, instance)
    right = whole.metadata.labels[label]
    assert told.reason == "LabelsDamaged"
    assert label in told.message
    assert value is None or f"{label} is {value} and should be {right}" in told.message
    assert len(at_cloud(compute)) == 2
    await compute.root.delete(at(other))
    await compute.until_gone(other)
    await repair(compute, whole)
    await rest(compute, 5)
    assert (await compute.read(instance))["metadata"]["provisioningStatus"] == "provisioned"
    assert "ServerRecreated" not in await events(compute, instance)


@pytest.mark.parametrize("value", [NOWHERE, ABSENT])
@pytest.mark.parametrize("label", PLACES)
async def test_c12_an_instance_does_not_go_while_its_server_is_elsewhere_than_its_labels_say(
    compute: ComputeEnvironment, label: str, value: str
) -> None:
    instance = await made(compute, await network_of(compute))
    whole = await damage(compute, instance, label, value)
    await rest(compute, 5)
    assert (await compute.root.delete(at(instance))).status == 202
    await rest(compute, 1000)
    assert f"{label} is {value} and should be {whole.metadata.labels[label]}" in (await said(compute, instance)).message
    assert await server_of(compute, instance) is not None
    assert await held(compute) == [{"servers": 1}]
    await repair(compute, whole)
    await compute.until_gone(instance)
    await rest(compute, 5)
    assert at_cloud(compute) == []
    assert await held(compute) == []


async def test_c12_a_timeline_that_names_images_is_read_without_their_names(compute: ComputeEnvironment) -> None:
    instance = await made(compute, await network_of(compute))
    await choose(compute, instance, image_id=JAMMY)
    await compute.until(instance, "provisioned")
    await damage(compute, instance, REGION, NOWHERE)
    reply = await compute.root.get(at(instance, "timeline"))
    assert (reply.status, "Rebuilding" in [each["event"] for each in reply.json]) == (200, True)


async def test_c12_a_damaged_instance_goes_when_somebody_has_removed_its_server(compute: ComputeEnvironment) -> None:
    instance = await made(compute, await network_of(compute))
    await damage(compute, instance, REGION, NOWHERE)
    await compute.root.delete(at(instance))
    await rest(compute, 60)
    assert (await compute.root.get(at(instance))).status == 200
    await delete_server(compute, instance)
    await compute.until_gone(instance)
    assert await held(compute) == []


@pytest.mark.parametrize("label", SCOPE)
async def test_c12_an_instance_without_one_of_its_labels_is_not_there(compute: ComputeEnvironment, label: str) -> None:
    instance = await made(compute, await network_of(compute))
    await damage(compute, instance, label, None)
    for verb in READS:
        assert (await compute.root.get(at(instance, verb))).status == 404, verb
    for method, verb in VERBS:
        assert (await compute.root.send(method, at(instance, verb))).status == 404, verb
    assert (await compute.root.get(INSTANCES)).json == []
    assert (await compute.root.delete(at(instance))).status == 404
    assert await written(compute, instance) == (404, 404)


@pytest.mark.parametrize("value", [NOWHERE, ABSENT])
@pytest.mark.parametrize("label", PLACES)
async def test_c12_an_instance_with_a_wrong_label_is_shown_and_nothing_can_be_done_to_its_server(
    compute: ComputeEnvironment, label: str, value: str
) -> None:
    instance = await made(compute, await network_of(compute))
    await damage(compute, instance, label, value)
    await rest(compute, 5)
    for verb in READS:
        assert (await compute.root.get(at(instance, verb))).status == 200, verb
    assert [each["metadata"]["id"] for each in (await compute.root.get(INSTANCES)).json] == [instance]
    for method, verb in VERBS:
        assert (await compute.root.send(method, at(instance, verb))).status == 404, verb
    assert metric(compute, "remuda_compute_server_lookups_failed_total", found="none") == len(VERBS)
    assert max(await written(compute, instance)) < INTERNAL
    assert (await compute.root.delete(at(instance))).status == 202


@pytest.mark.parametrize("value", ["yesterday", "2026-13-01T00:00:00Z", "2026-11-16T00:00:00"])
async def test_c12_a_time_that_is_none_is_not_told_and_hides_nothing_else(
    compute: ComputeEnvironment, value: str
) -> None:
    instance = await made(compute, await network_of(compute))
    found = await stored(compute, instance)
    annotations = {**found.metadata.annotations, MODIFIED: value}
    await compute.store.update(replace(found, metadata=replace(found.metadata, annotations=annotations)))
    assert "modifiedTime" not in (await compute.read(instance))["metadata"]
    (listed,) = (await compute.root.get(INSTANCES)).json
    assert "modifiedTime" not in listed["metadata"]
    assert await written(compute, instance, networking={"publicIP": True}) == (200, 202)
    assert (await compute.read(instance))["metadata"]["modifiedTime"]


@pytest.mark.parametrize("prefix", ["nope", "", "10.0.0.0/33", "fd00::/8"])
async def test_c12_a_stored_prefix_that_is_none_is_said_and_repaired_by_another_one(
    compute: ComputeEnvironment, prefix: str
) -> None:
    instance = await made(compute, await network_of(compute))
    networking = (await stored(compute, instance)).spec.networking
    await choose(compute, instance, networking=replace(networking, allowed_source_addresses=("10.8.0.0/16", prefix)))
    await rest(compute, 5)
    told = await said(compute, instance)
    assert told.reason == "Errored"
    assert f"networking.allowedSourceAddresses has {prefix!r}, which is not an IPv4 prefix" in told.message
    assert await written(compute, instance, networking={"allowedSourceAddresses": [prefix]}) == (400, 400)
    assert await written(compute, instance, networking={"allowedSourceAddresses": ["10.9.0.0/16"]}) == (200, 202)
    await compute.until(instance, "provisioned")
    assert len(at_cloud(compute)) == 1


async def test_c12_an_instance_whose_spec_is_damaged_can_be_deleted(compute: ComputeEnvironment) -> None:
    instance = await made(compute, await network_of(compute))
    networking = (await stored(compute, instance)).spec.networking
    await choose(compute, instance, networking=replace(networking, allowed_source_addresses=("nope",)))
    await rest(compute, 5)
    assert "its spec is damaged" in (await said(compute, instance)).message
    assert (await compute.root.delete(at(instance))).status == 202
    await compute.until_gone(instance)
    await rest(compute, 5)
    assert at_cloud(compute) == []


def test_c12_a_server_that_names_no_incarnation_and_is_elsewhere_is_its_own_if_it_is_linked_to_it() -> None:
    server = explained.server(region_id="south")
    of_another = server_read(uid="uid-0", region_id="south")
    linked = classified(explained.instance(server_id="one"), [server, of_another])
    assert (linked.displaced, linked.own, linked.previous) == ([server], [], [])
    assert classified(explained.instance(), [server]).displaced == []
