"""Every rejection of a create, with its status and sentence, in the order in which it is validated; nothing is made."""

import gzip
from typing import Any

import pytest

from tests.kit.compute.environment import INSTANCES, ComputeEnvironment
from tests.kit.compute.requests import (
    ABSENT,
    ARM_IMAGE,
    DEBIAN,
    METAL,
    METAL_IMAGE,
    NOT_FOUND,
    OUT_OF_ORGANIZATION,
    OUT_OF_PROJECT,
    PINNED,
    Tenant,
    encoded,
    forbidden,
    is_nothing,
    make_authority,
    make_group,
    settle,
)
from tests.kit.region.environment import SOUTH
from tests.kit.resource_api import rejection

NO_FLAVOR = (400, "requested flavor does not exist or is not accessible")
NO_IMAGE = (400, "requested image does not exist or is not accessible")
UNKNOWN_FORMAT = "userData must be a recognized cloud-init format: "


async def test_m03_who_has_no_right_in_the_claimed_project_is_refused_before_anything_is_looked_at(
    compute: ComputeEnvironment,
) -> None:
    tenant, other = await settle(compute), await settle(compute, "bob")
    reader = await settle(compute, "eve", role="reader")
    identity, wanted = compute.region.identity, tenant.wanted(compute, networkId=ABSENT)
    elsewhere = await identity.organization("elsewhere")
    stranger = compute.client(await identity.member("mallory@example.com", elsewhere, "administrator"))
    assert (await compute.client(None).post(INSTANCES, wanted)).status == 401
    assert rejection(await stranger.post(INSTANCES, wanted)) == forbidden("create", OUT_OF_ORGANIZATION)
    assert rejection(await other.client.post(INSTANCES, wanted)) == forbidden("create", OUT_OF_PROJECT)
    own = reader.wanted(compute, networkId=ABSENT)
    assert rejection(await reader.client.post(INSTANCES, own)) == forbidden("create")
    administrator = compute.client(await identity.member("root@acme.com", compute.region.organization, "administrator"))
    nowhere = tenant.wanted(compute, networkId=ABSENT, projectId=ABSENT)
    assert rejection(await administrator.post(INSTANCES, nowhere)) == NOT_FOUND
    await is_nothing(compute)


async def test_m03_the_network_is_the_scoping_root_and_a_claim_of_ownership_is_never_trusted(
    compute: ComputeEnvironment,
) -> None:
    tenant, other = await settle(compute), await settle(compute, "bob")
    identity = compute.region.identity
    assert rejection(await tenant.client.post(INSTANCES, tenant.wanted(compute, networkId=ABSENT))) == NOT_FOUND
    foreign = tenant.wanted(compute, networkId=other.network)
    told = forbidden("read", OUT_OF_PROJECT, "region:networks:v2")
    assert rejection(await tenant.client.post(INSTANCES, foreign)) == told
    administrator = compute.client(await identity.member("root@acme.com", compute.region.organization, "administrator"))
    for client in (administrator, compute.root):
        status, sentence = rejection(await client.post(INSTANCES, foreign))
        assert (status, sentence) == (
            422,
            (
                "spec.networkId is of another project than spec.projectId says: name a network of that project, or "
                "the project that the network is in."
            ),
        )
    elsewhere = await identity.organization("elsewhere")
    theirs = await identity.project(elsewhere, name="theirs")
    network = await compute.region.network("far", organizationId=elsewhere, projectId=theirs)
    assert rejection(await tenant.client.post(INSTANCES, tenant.wanted(compute, networkId=network))) == NOT_FOUND
    await is_nothing(compute)


_ENCODING = (400, "spec.userData is not base64: encode it with the standard alphabet and padding")
_TOO_LONG = "userData is longer than 65536 bytes: send less, for example an #include of a long part."
_PREFIX = (400, "failed to parse IPv4 prefix")
_IPV6 = (400, "failed to parse IPv4 prefix, IPv6 is not supported")
_OTHER_PROCESSOR = (400, "image architecture aarch64 is not compatible with flavor architecture x86_64")
_OTHER_MACHINE = (400, "image virtualization baremetal is not compatible with a virtualized flavor")
REFUSED: dict[str, tuple[dict[str, Any], tuple[int, str]]] = {
    "no such flavor": ({"flavorId": ABSENT}, NO_FLAVOR),
    "a flavor to be pinned": ({"flavorId": PINNED, "imageId": METAL_IMAGE}, NO_FLAVOR),
    "no such image": ({"imageId": ABSENT}, NO_IMAGE),
    "another processor": ({"imageId": ARM_IMAGE}, _OTHER_PROCESSOR),
    "another sort of machine": ({"imageId": METAL_IMAGE}, _OTHER_MACHINE),
    "no such group": ({"networking": {"securityGroups": [ABSENT]}}, NOT_FOUND),
    "no such authority": ({"sshCertificateAuthorityId": ABSENT}, NOT_FOUND),
    "no prefix": ({"networking": {"allowedSourceAddresses": ["10.0.0.0/33"]}}, _PREFIX),
    "a prefix of IPv6": ({"networking": {"allowedSourceAddresses": ["fe80::/64"]}}, _IPV6),
    "no base64": ({"userData": "%%%"}, _ENCODING),
    "no ASCII": ({"userData": "\u00e9"}, _ENCODING),
    "too long": ({"userData": encoded("#" * (64 * 1024 + 1))}, (422, _TOO_LONG)),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_m04_m05_m06_what_it_cannot_be_made_of_is_refused(compute: ComputeEnvironment, case: str) -> None:
    spec, refused = REFUSED[case]
    tenant = await settle(compute)
    for client in (tenant.client, compute.root):
        assert rejection(await client.post(INSTANCES, tenant.wanted(compute, **spec))) == refused
    await is_nothing(compute)


async def test_m04_a_flavor_of_another_region_is_not_accessible(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    south = await compute.region.network("south", projectId=tenant.project, regionId=SOUTH)
    wanted = tenant.wanted(compute, networkId=south, flavorId="a1f0c0de-0004-4000-8000-000000000004")
    assert rejection(await tenant.client.post(INSTANCES, wanted)) == NO_FLAVOR
    await is_nothing(compute)


async def test_m05_groups_of_another_network_and_authorities_of_another_project_are_refused(
    compute: ComputeEnvironment,
) -> None:
    tenant, other = await settle(compute), await settle(compute, "bob")
    second = await compute.region.network("second", projectId=tenant.project, prefix="10.1.0.0/16")
    group, authority = await make_group(compute, second), await make_authority(compute, other.project)
    wanted = tenant.wanted(compute, networking={"securityGroups": [group]})
    assert rejection(await tenant.client.post(INSTANCES, wanted)) == (
        422,
        "a referenced security group must belong to the same network as the instance",
    )
    wanted = tenant.wanted(compute, sshCertificateAuthorityId=authority)
    told = forbidden("read", OUT_OF_PROJECT, "region:sshcertificateauthorities:v2")
    assert rejection(await tenant.client.post(INSTANCES, wanted)) == told
    assert rejection(await compute.root.post(INSTANCES, wanted)) == (
        422,
        (
            "sshCertificateAuthorityId must reference an SSH certificate authority in the same organization and "
            "project as the instance"
        ),
    )
    await is_nothing(compute)


async def test_m06_user_data_is_validated_before_anything_is_made_and_more_strictly_with_an_authority(
    compute: ComputeEnvironment,
) -> None:
    tenant = await settle(compute)
    authority = await make_authority(compute, tenant.project)
    secret = "hunter2"
    for extra in ({}, {"sshCertificateAuthorityId": authority}):
        wanted = tenant.wanted(compute, userData=encoded(f"password: {secret}"), **extra)
        status, sentence = rejection(await tenant.client.post(INSTANCES, wanted))
        assert (status, sentence.startswith(UNKNOWN_FORMAT)) == (422, True)
        assert secret not in sentence
    packed = encoded(gzip.compress(b"#!/bin/sh\n", mtime=0))
    wanted = tenant.wanted(compute, userData=packed, sshCertificateAuthorityId=authority)
    assert rejection(await tenant.client.post(INSTANCES, wanted)) == (
        422,
        f"{UNKNOWN_FORMAT}gzip userData cannot be combined with managed cloud-init augmentation",
    )
    await is_nothing(compute)


async def test_a_network_that_is_being_deleted_takes_no_more_instances(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    assert (await compute.region.root.delete(f"/api/v2/networks/{tenant.network}")).status == 202
    refused = rejection(await tenant.client.post(INSTANCES, tenant.wanted(compute)))
    assert refused == (400, "network is being deleted")
    await is_nothing(compute)


@pytest.mark.parametrize(
    "names",
    [
        ["compute.unikorn-cloud.org/instance-id"],
        ["compute.unikorn-cloud.org:instance-id"],
        ["region.unikorn-cloud.org/x"],
        ["twice", "twice"],
    ],
    ids=" ".join,
)
async def test_m10_reserved_tags_and_those_that_are_there_twice_are_refused(
    compute: ComputeEnvironment, names: list[str]
) -> None:
    tenant = await settle(compute)
    wanted = tenant.wanted(compute)
    wanted["metadata"]["tags"] = [{"name": name, "value": ABSENT} for name in names]
    assert rejection(await compute.root.post(INSTANCES, wanted))[0] == 422
    await is_nothing(compute)


def _repaired(tenant: Tenant, group: str) -> list[tuple[dict[str, Any], tuple[int, str]]]:
    """Return what is repaired one after the other, and what is refused before that."""
    return [
        ({"projectId": tenant.project}, forbidden("create", OUT_OF_PROJECT)),
        ({"networkId": tenant.network}, NOT_FOUND),
        ({"flavorId": METAL}, NO_FLAVOR),
        ({"imageId": ARM_IMAGE}, NO_IMAGE),
        ({"imageId": DEBIAN}, _OTHER_PROCESSOR),
        ({"networking": {"securityGroups": [group], "allowedSourceAddresses": ["x"]}}, NOT_FOUND),
        ({"sshCertificateAuthorityId": None}, NOT_FOUND),
        ({"userData": ""}, _ENCODING),
        ({"networking": {}}, _PREFIX),
    ]


async def test_what_is_wrong_is_told_in_the_order_that_clients_know(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    group = await make_group(compute, tenant.network)
    wanted = tenant.wanted(
        compute,
        projectId=ABSENT,
        networkId=ABSENT,
        flavorId=ABSENT,
        imageId=ABSENT,
        networking={"securityGroups": [ABSENT], "allowedSourceAddresses": ["x"]},
        sshCertificateAuthorityId=ABSENT,
        userData="%%%",
    )
    for repaired, refused in _repaired(tenant, group):
        assert rejection(await tenant.client.post(INSTANCES, wanted)) == refused, repaired
        wanted["spec"] |= repaired
    await is_nothing(compute)
    assert (await tenant.client.post(INSTANCES, wanted)).status == 201


@pytest.mark.parametrize("field", ["organizationId", "projectId", "networkId", "flavorId", "imageId"])
async def test_an_id_that_is_none_is_told_before_anybody_is_asked(compute: ComputeEnvironment, field: str) -> None:
    tenant = await settle(compute)
    reply = await tenant.client.post(INSTANCES, tenant.wanted(compute, **{field: "net-1"}))
    assert reply.status == 400
    assert [each["pointer"] for each in reply.json["problems"]] == [f"/spec/{field}"]
    await is_nothing(compute)
