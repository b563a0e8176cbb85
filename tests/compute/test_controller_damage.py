"""Instances whose labels, annotations or spec were damaged behind our back."""

import dataclasses
from typing import Any

import pytest
from msgspec.structs import replace

from remuda.compute.instances.rules import SCOPE
from remuda.compute.instances.server_lookup import sorted_out
from remuda.compute.kinds import ComputeInstance
from remuda.resources.conventions import MODIFIED, NAME, NETWORK, ORGANIZATION, PROJECT, REGION
from tests.compute import explained
from tests.compute.asking import ABSENT, at, held
from tests.compute.controlling import (
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
from tests.compute.house import INSTANCES, JAMMY, ComputeHouse, in_a_compute

PLACES = (ORGANIZATION, PROJECT, REGION, NETWORK)
"""The labels that say where an instance is, and its server too."""
WRONG = [None, "nowhere", ABSENT]
"""What a damaged label is: missing, no id at all, or the id of something else."""
READS = ("", "timeline", "operations", "explain")
VERBS = (("GET", "sshkey"), ("GET", "consolesession"), ("GET", "consoleoutput"), ("POST", "start"), ("POST", "stop"))
INTERNAL = 500


async def damage(house: ComputeHouse, instance: str, label: str, value: str | None) -> ComputeInstance:
    """Write a label of an instance otherwise, or leave it out; return the instance as it was before."""
    found = await stored(house, instance)
    labels = {key: each for key, each in found.metadata.labels.items() if key != label}
    labels |= {} if value is None else {label: value}
    await house.store.update(replace(found, metadata=replace(found.metadata, labels=labels)))
    return found


async def mend(house: ComputeHouse, whole: ComputeInstance) -> None:
    """Give an instance the labels again that it had."""
    found = await stored(house, whole.name)
    await house.store.update(replace(found, metadata=replace(found.metadata, labels=whole.metadata.labels)))


async def written(house: ComputeHouse, instance: str, **spec: Any) -> tuple[int, int]:
    """Ask for a change, first without doing it; return both answers."""
    found = await stored(house, instance)
    kept = {"flavorId": found.spec.flavor_id, "imageId": found.spec.image_id}
    body = {"metadata": {"name": found.metadata.labels.get(NAME, "instance")}, "spec": kept | spec}
    dry = await house.root.send("PUT", at(instance), query={"dryRun": "true"}, body=body)
    return dry.status, (await house.root.put(at(instance), body)).status


@pytest.mark.parametrize("value", WRONG)
@pytest.mark.parametrize("label", PLACES)
def test_c12_damaged_labels_are_said_and_keep_nobody_else_from_anything(label: str, value: str | None) -> None:
    async def scenario(house: ComputeHouse) -> None:
        network = await network_of(house)
        instance, other = await made(house, network, "one"), await made(house, network, "other")
        whole = await damage(house, instance, label, value)
        await rest(house, 5)
        told = await said(house, instance)
        right = whole.metadata.labels[label]
        assert told.reason == "Errored"
        assert label in told.message
        assert value is None or f"{label} is {value} and should be {right}" in told.message
        assert len(at_cloud(house)) == 2
        await house.root.delete(at(other))
        await house.until_gone(other)
        await mend(house, whole)
        await rest(house, 5)
        assert (await house.read(instance))["metadata"]["provisioningStatus"] == "provisioned"
        assert "MadeAgain" not in await events(house, instance)

    in_a_compute(scenario)


@pytest.mark.parametrize("value", ["nowhere", ABSENT])
@pytest.mark.parametrize("label", PLACES)
def test_c12_an_instance_does_not_go_while_its_server_is_elsewhere_than_its_labels_say(label: str, value: str) -> None:
    async def scenario(house: ComputeHouse) -> None:
        instance = await made(house, await network_of(house))
        whole = await damage(house, instance, label, value)
        await rest(house, 5)
        assert (await house.root.delete(at(instance))).status == 202
        await rest(house, 1000)
        assert (
            f"{label} is {value} and should be {whole.metadata.labels[label]}" in (await said(house, instance)).message
        )
        assert await server_of(house, instance) is not None
        assert await held(house) == [{"servers": 1}]
        await mend(house, whole)
        await house.until_gone(instance)
        await rest(house, 5)
        assert at_cloud(house) == []
        assert await held(house) == []

    in_a_compute(scenario)


def test_c12_a_timeline_that_names_images_is_read_without_their_names() -> None:
    async def scenario(house: ComputeHouse) -> None:
        instance = await made(house, await network_of(house))
        await choose(house, instance, image_id=JAMMY)
        await house.until(instance, "provisioned")
        await damage(house, instance, REGION, "nowhere")
        reply = await house.root.get(at(instance, "timeline"))
        assert (reply.status, "Rebuilding" in [each["event"] for each in reply.json]) == (200, True)

    in_a_compute(scenario)


def test_c12_a_damaged_instance_goes_when_somebody_has_removed_its_server() -> None:
    async def scenario(house: ComputeHouse) -> None:
        instance = await made(house, await network_of(house))
        await damage(house, instance, REGION, "nowhere")
        await house.root.delete(at(instance))
        await rest(house, 60)
        assert (await house.root.get(at(instance))).status == 200
        await delete_server(house, instance)
        await house.until_gone(instance)
        assert await held(house) == []

    in_a_compute(scenario)


@pytest.mark.parametrize("label", SCOPE)
def test_c12_an_instance_without_one_of_its_labels_is_not_there(label: str) -> None:
    async def scenario(house: ComputeHouse) -> None:
        instance = await made(house, await network_of(house))
        await damage(house, instance, label, None)
        for verb in READS:
            assert (await house.root.get(at(instance, verb))).status == 404, verb
        for method, verb in VERBS:
            assert (await house.root.send(method, at(instance, verb))).status == 404, verb
        assert (await house.root.get(INSTANCES)).json == []
        assert (await house.root.delete(at(instance))).status == 404
        assert await written(house, instance) == (404, 404)

    in_a_compute(scenario)


@pytest.mark.parametrize("value", ["nowhere", ABSENT])
@pytest.mark.parametrize("label", PLACES)
def test_c12_an_instance_with_a_wrong_label_is_shown_and_nothing_can_be_done_to_its_server(
    label: str, value: str
) -> None:
    async def scenario(house: ComputeHouse) -> None:
        instance = await made(house, await network_of(house))
        await damage(house, instance, label, value)
        await rest(house, 5)
        for verb in READS:
            assert (await house.root.get(at(instance, verb))).status == 200, verb
        assert [each["metadata"]["id"] for each in (await house.root.get(INSTANCES)).json] == [instance]
        for method, verb in VERBS:
            assert (await house.root.send(method, at(instance, verb))).status == 404, verb
        assert metric(house, "remuda_compute_odd_matches_total", found="none") == len(VERBS)
        assert max(await written(house, instance)) < INTERNAL
        assert (await house.root.delete(at(instance))).status == 202

    in_a_compute(scenario)


@pytest.mark.parametrize("value", ["yesterday", "2026-13-01T00:00:00Z", "2026-11-16T00:00:00"])
def test_c12_a_time_that_is_none_is_not_told_and_hides_nothing_else(value: str) -> None:
    async def scenario(house: ComputeHouse) -> None:
        instance = await made(house, await network_of(house))
        found = await stored(house, instance)
        annotations = {**found.metadata.annotations, MODIFIED: value}
        await house.store.update(replace(found, metadata=replace(found.metadata, annotations=annotations)))
        assert "modifiedTime" not in (await house.read(instance))["metadata"]
        (listed,) = (await house.root.get(INSTANCES)).json
        assert "modifiedTime" not in listed["metadata"]
        assert await written(house, instance, networking={"publicIP": True}) == (200, 202)
        assert (await house.read(instance))["metadata"]["modifiedTime"]

    in_a_compute(scenario)


@pytest.mark.parametrize("prefix", ["nope", "", "10.0.0.0/33", "fd00::/8"])
def test_c12_a_stored_prefix_that_is_none_is_said_and_mended_by_another_one(prefix: str) -> None:
    async def scenario(house: ComputeHouse) -> None:
        instance = await made(house, await network_of(house))
        networking = (await stored(house, instance)).spec.networking
        await choose(house, instance, networking=replace(networking, allowed_source_addresses=("10.8.0.0/16", prefix)))
        await rest(house, 5)
        told = await said(house, instance)
        assert told.reason == "Errored"
        assert f"networking.allowedSourceAddresses has {prefix!r}, which is no IPv4 prefix" in told.message
        assert await written(house, instance, networking={"allowedSourceAddresses": [prefix]}) == (400, 400)
        assert await written(house, instance, networking={"allowedSourceAddresses": ["10.9.0.0/16"]}) == (200, 202)
        await house.until(instance, "provisioned")
        assert len(at_cloud(house)) == 1

    in_a_compute(scenario)


def test_c12_an_instance_whose_spec_is_damaged_can_be_deleted() -> None:
    async def scenario(house: ComputeHouse) -> None:
        instance = await made(house, await network_of(house))
        networking = (await stored(house, instance)).spec.networking
        await choose(house, instance, networking=replace(networking, allowed_source_addresses=("nope",)))
        await rest(house, 5)
        assert "its spec is damaged" in (await said(house, instance)).message
        assert (await house.root.delete(at(instance))).status == 202
        await house.until_gone(instance)
        await rest(house, 5)
        assert at_cloud(house) == []

    in_a_compute(scenario)


def test_c12_a_server_that_names_no_incarnation_and_is_elsewhere_is_its_own_if_it_is_linked_to_it() -> None:
    server = dataclasses.replace(explained.server(), region="south")
    of_another = dataclasses.replace(server, incarnation="uid-0")
    linked = sorted_out(explained.instance(server_id="one"), [server, of_another])
    assert (linked.elsewhere, linked.own, linked.leftovers) == ([server], [], [])
    assert sorted_out(explained.instance(), [server]).elsewhere == []
