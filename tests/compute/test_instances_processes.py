"""Compute apart from region and identity: what is asked over sockets is answered as in one process."""

import asyncio
from collections import Counter
from pathlib import Path

from tests.kit.compute.apart import apart
from tests.kit.compute.environment import INSTANCES
from tests.kit.compute.requests import (
    ABSENT,
    ARM_IMAGE,
    NOT_FOUND,
    OUT_OF_PROJECT,
    PINNED,
    at,
    encoded,
    forbidden,
    held,
    is_nothing,
    made,
    make_authority,
    make_group,
    settle,
)
from tests.kit.identity.environment import expect
from tests.kit.region.environment import NORTH
from tests.kit.resource_api import rejection


async def test_m01_m09_an_instance_is_made_used_and_given_up(tmp_path: Path) -> None:
    async with apart(tmp_path) as compute:
        tenant = await settle(compute)
        group, authority = await make_group(compute, tenant.network), await make_authority(compute, tenant.project)
        networking = {"securityGroups": [group], "publicIP": True}
        wanted = tenant.wanted(compute, "web", networking=networking, userData=encoded("#!/bin/sh\necho hello\n"))
        instance = made(await tenant.client.post(INSTANCES, wanted))
        read = await compute.until(instance, "provisioned")
        assert read["status"]["privateIP"]
        assert await held(compute) == [{"servers": 1, "floatingips": 1}]
        assert "login:" in expect(await tenant.client.get(at(instance, "consoleoutput")), 200)["contents"]
        assert expect(await tenant.client.get(at(instance, "sshkey")), 200)["privateKey"]
        assert expect(await tenant.client.get(at(instance, "consolesession")), 200)["url"]
        assert (await tenant.client.post(at(instance, "stop"))).status == 202
        assert (await tenant.client.post(at(instance, "stop"))).status == 202
        body = {"metadata": {"name": "backup", "tags": [{"name": "team", "value": "blue"}]}}
        image = expect(await tenant.client.post(at(instance, "snapshot"), body), 201)
        tags = {tag["name"]: tag["value"] for tag in image["metadata"]["tags"]}
        assert (tags["team"], tags["compute.unikorn-cloud.org:instance-id"]) == ("blue", instance)
        second = made(
            await tenant.client.post(INSTANCES, tenant.wanted(compute, "ca", sshCertificateAuthorityId=authority))
        )
        assert rejection(await tenant.client.get(at(second, "sshkey"))) == NOT_FOUND
        for each in (instance, second):
            assert (await tenant.client.delete(at(each))).status == 202
            await compute.until_gone(each)
        await is_nothing(compute)


async def test_m03_m05_what_region_rejects_is_told_in_its_words(tmp_path: Path) -> None:
    async with apart(tmp_path) as compute:
        tenant, other = await settle(compute), await settle(compute, "bob")
        second = await compute.region.network("second", projectId=tenant.project, prefix="10.1.0.0/16")
        group = await make_group(compute, second)
        no_flavor = (400, "requested flavor does not exist or is not accessible")
        other_processor = (400, "image architecture aarch64 is not compatible with flavor architecture x86_64")
        other_network = (422, "a referenced security group must belong to the same network as the instance")
        for spec, refused in (
            ({"networkId": ABSENT}, NOT_FOUND),
            ({"networkId": other.network}, forbidden("read", OUT_OF_PROJECT, "region:networks:v2")),
            ({"flavorId": PINNED}, no_flavor),
            ({"imageId": ARM_IMAGE}, other_processor),
            ({"networking": {"securityGroups": [ABSENT]}}, NOT_FOUND),
            ({"networking": {"securityGroups": [group]}}, other_network),
            ({"sshCertificateAuthorityId": ABSENT}, NOT_FOUND),
        ):
            assert rejection(await tenant.client.post(INSTANCES, tenant.wanted(compute, **spec))) == refused, spec
        await is_nothing(compute)


async def test_m07_names_are_unique_and_losers_leave_nothing(tmp_path: Path) -> None:
    async with apart(tmp_path) as compute:
        tenant = await settle(compute)
        wanted = tenant.wanted(compute, "web")
        replies = await asyncio.gather(*(tenant.client.post(INSTANCES, wanted) for _ in range(16)))
        assert Counter(reply.status for reply in replies) == {201: 1, 409: 15}
        (winner,) = [made(reply) for reply in replies if reply.status == 201]
        await compute.until(winner, "provisioned")
        assert await held(compute) == [{"servers": 1}]


async def test_m04_the_catalogue_is_regions(tmp_path: Path) -> None:
    async with apart(tmp_path) as compute:
        tenant = await settle(compute)
        regions = f"/api/v1/organizations/{compute.region.organization}/regions"
        assert NORTH in [each["metadata"]["id"] for each in expect(await tenant.client.get(regions), 200)]
        for what in ("flavors", "images"):
            assert expect(await tenant.client.get(f"{regions}/{NORTH}/{what}"), 200)
            assert rejection(await tenant.client.get(f"{regions}/{ABSENT}/{what}")) == NOT_FOUND
