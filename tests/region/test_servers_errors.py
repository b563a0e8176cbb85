"""Servers over HTTP: what cannot be made, in the order in which that is validated, and in which words."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from remuda.providers.contract.catalogue import CloudImage
from remuda.region.authorities.routes import AUTHORITIES
from remuda.region.kinds.networks import Network
from remuda.region.kinds.securitygroups import SecurityGroup
from remuda.region.kinds.servers import Server
from remuda.region.networks.routes import NETWORKS
from remuda.region.securitygroups.routes import SECURITY_GROUPS
from remuda.region.servers.routes import SERVERS
from remuda.resources.conventions import API_VERSION, ORGANIZATION
from remuda.resources.conventions import PROJECT as PROJECT_LABEL
from remuda.store.objects import Metadata
from tests.kit.environment import options
from tests.kit.region.network_requests import NOT_FOUND, OUTSIDE, forbidden
from tests.kit.region.networks import ABSENT, OTHER_PROJECT
from tests.kit.region.resource_api import ORG, OTHER_ORG, PROJECT, catalogues, member, rejection
from tests.kit.region.servers import (
    ARM,
    FOR_METAL,
    METAL,
    PERMISSIONS,
    PINNED,
    TENANT,
    UBUNTU,
    ServersEnvironment,
    encoded,
    wanted,
)

IMAGES = {each.id: each for each in catalogues()["sim-north"].images}
RAW, HUGE, ODD, PLAIN = (f"b1f0c0de-00ff-4000-8000-00000000000{n}" for n in range(4))
STRANGE: Mapping[str, CloudImage] = {
    RAW: replace(IMAGES[UBUNTU], id=RAW, state="pending"),
    HUGE: replace(IMAGES[UBUNTU], id=HUGE, size_gib=4000),
    ODD: replace(IMAGES[UBUNTU], id=ODD, virtualization="paper"),  # type: ignore[arg-type]  # a cloud says what it likes
    PLAIN: replace(IMAGES[UBUNTU], id=PLAIN, virtualization=""),  # type: ignore[arg-type]  # likewise
}
BAD_CA = (
    "sshCertificateAuthorityId must reference an SSH certificate authority in the same organization and project as "
    "the server"
)
BAD_DATA = (
    "userData must be a recognized cloud-init format: unsupported userData format: first line must identify a "
    "cloud-init payload"
)
BAD_GROUP = "a referenced security group must belong to the same network as the server"
BAD_SOURCES = "allowedSourceAddresses must contain valid CIDR prefixes"
NO_IPV6 = f"{BAD_SOURCES}, IPv6 is not supported"

REFUSED: dict[str, tuple[dict[str, Any], tuple[int, str]]] = {
    "ca without authority": (
        {"sshInjection": "ca", "userData": encoded("bad")},
        (422, "sshInjection ca requires sshCertificateAuthorityId"),
    ),
    "key pair with authority": (
        {"sshInjection": "identityKeypair", "sshCertificateAuthorityId": ABSENT, "userData": encoded("bad")},
        (422, "sshInjection identityKeypair cannot be used with sshCertificateAuthorityId"),
    ),
    "none with authority": (
        {"sshInjection": "none", "sshCertificateAuthorityId": ABSENT, "infrastructureRef": "rack"},
        (422, "sshInjection none cannot be used with sshCertificateAuthorityId"),
    ),
    "machine with key pair": (
        {"sshInjection": "identityKeypair", "infrastructureRef": "rack", "userData": encoded("bad")},
        (422, "infrastructureRef cannot be used with sshInjection identityKeypair"),
    ),
    "machine by default": (
        {"infrastructureRef": "rack", "userData": encoded("bad")},
        (422, "infrastructureRef cannot be used with sshInjection identityKeypair"),
    ),
    "user data before authority": (
        {"userData": encoded("bad"), "sshCertificateAuthorityId": ABSENT},
        (422, BAD_DATA),
    ),
    "no base64": (
        {"userData": "*"},
        (400, "spec.userData is not base64: encode it with the standard alphabet and padding"),
    ),
    "authority unknown, before group": (
        {"sshCertificateAuthorityId": ABSENT, "networking": {"securityGroups": [ABSENT]}},
        NOT_FOUND,
    ),
    "group unknown, before image": ({"networking": {"securityGroups": [ABSENT]}, "imageId": ABSENT}, NOT_FOUND),
    "image unknown, before flavor": ({"imageId": ABSENT, "flavorId": ABSENT}, NOT_FOUND),
    "image not ready, before flavor": (
        {"imageId": RAW, "flavorId": ABSENT},
        (422, "image is not ready for use"),
    ),
    "flavor gone, before sources": (
        {"flavorId": ABSENT, "networking": {"allowedSourceAddresses": ["x"]}},
        (422, "flavor is no longer offered by the region"),
    ),
    "processor, before disk": (
        {"imageId": HUGE, "flavorId": ARM},
        (422, "image architecture is not compatible with the flavor"),
    ),
    "disk, before virtualization": (
        {"imageId": HUGE, "flavorId": METAL},
        (422, "flavor disk is too small for the image"),
    ),
    "machine image": ({"imageId": FOR_METAL}, (422, "image virtualization is not compatible with the flavor")),
    "virtual image, before pinned": (
        {"flavorId": PINNED},
        (422, "image virtualization is not compatible with the flavor"),
    ),
    "odd image": ({"imageId": ODD}, (422, "image virtualization type is not recognized")),
    "pinned only, before sources": (
        {"imageId": FOR_METAL, "flavorId": PINNED, "networking": {"allowedSourceAddresses": ["x"]}},
        (422, "flavor requires infrastructureRef to be set"),
    ),
    "sources": ({"networking": {"allowedSourceAddresses": ["10.0.0.0/8", "10.0.0.256/32"]}}, (422, BAD_SOURCES)),
    "IPv6 sources": ({"networking": {"allowedSourceAddresses": ["2001:db8::/32"]}}, (422, NO_IPV6)),
}


@pytest.mark.parametrize(("spec", "answer"), REFUSED.values(), ids=REFUSED.keys())
@options(lambda: {"images": (*IMAGES.values(), *STRANGE.values())})
async def test_what_cannot_be_is_refused_in_the_order_that_clients_know(
    region_servers: ServersEnvironment, spec: dict[str, Any], answer: tuple[int, str]
) -> None:
    network = await region_servers.make_network()
    status, sentence = rejection(await region_servers.servers.ask(TENANT).post(SERVERS, wanted(network, **spec)))
    assert (status, sentence[: len(answer[1])]) == answer
    assert len(sentence) == len(answer[1]) or "payload (" in sentence, "only the list of formats may follow"
    assert not (await region_servers.store.list(Server)).items


@options(lambda: {"images": (*IMAGES.values(), *STRANGE.values())})
async def test_an_image_that_does_not_say_what_it_runs_on_runs_on_anything(region_servers: ServersEnvironment) -> None:
    await region_servers.make_server(await region_servers.make_network(), imageId=PLAIN)


@options(
    lambda: {
        "images": tuple(STRANGE.values()),
        "flavors": tuple(replace(each, disk_bytes=0) for each in catalogues()["sim-north"].flavors),
    }
)
async def test_a_flavor_without_a_disk_takes_any_image(region_servers: ServersEnvironment) -> None:
    await region_servers.make_server(await region_servers.make_network(), imageId=HUGE)


async def test_what_a_server_names_has_to_be_of_its_network_and_of_its_project(
    region_servers: ServersEnvironment,
) -> None:
    network, other = await region_servers.make_network(), await region_servers.make_network()
    client = region_servers.servers.ask(TENANT)
    networking = {"securityGroups": [await region_servers.make_group(other)]}
    reply = await client.post(SERVERS, wanted(network, networking=networking, imageId=ABSENT))
    assert rejection(reply) == (422, BAD_GROUP)
    authority = await region_servers.make_authority(OTHER_PROJECT)
    reply = await client.post(SERVERS, wanted(network, sshCertificateAuthorityId=authority, networking=networking))
    assert rejection(reply) == (422, BAD_CA)


async def test_a_network_that_the_first_api_made_is_not_there(region_servers: ServersEnvironment) -> None:
    like = await region_servers.store.get(Network, await region_servers.make_network())
    labels = {label: value for label, value in like.metadata.labels.items() if label != API_VERSION}
    await region_servers.store.create(Network(metadata=Metadata(name=ABSENT, labels=labels), spec=like.spec))
    assert rejection(await region_servers.servers.ask(TENANT).post(SERVERS, wanted(ABSENT))) == NOT_FOUND


async def test_a_group_that_the_first_api_made_is_not_there(region_servers: ServersEnvironment) -> None:
    network = await region_servers.make_network()
    like = await region_servers.store.get(SecurityGroup, await region_servers.make_group(network))
    labels = {ORGANIZATION: ORG, PROJECT_LABEL: PROJECT}
    await region_servers.store.create(SecurityGroup(metadata=Metadata(name=ABSENT, labels=labels), spec=like.spec))
    reply = await region_servers.servers.ask(TENANT).post(
        SERVERS, wanted(network, networking={"securityGroups": [ABSENT]})
    )
    assert rejection(reply) == NOT_FOUND


async def test_whoever_makes_a_server_may_read_its_network_and_all_that_it_names(
    region_servers: ServersEnvironment,
) -> None:
    network = await region_servers.make_network()
    group, authority = await region_servers.make_group(network), await region_servers.make_authority()
    spec = {"networking": {"securityGroups": [group]}, "sshCertificateAuthorityId": authority}
    parts = ["networks:v2 R", "servers C", "securitygroups:v2 R", "sshcertificateauthorities:v2 R"]
    for number, part in enumerate(parts):
        some = ", ".join(f"region:{each}" for each in parts if each != part)
        who = member(f"lacks{number}@example.com", ORG, some)
        verb = "create" if part == "servers C" else "read"
        reply = await region_servers.servers.ask(who).post(SERVERS, wanted(network, **spec))
        assert rejection(reply) == forbidden(verb, OUTSIDE, f"region:{part.split()[0]}")
    outsider = member("eve@example.com", OTHER_ORG, PERMISSIONS)
    assert rejection(await region_servers.servers.ask(outsider).post(SERVERS, wanted(network))) == NOT_FOUND
    assert rejection(await region_servers.servers.ask(TENANT).post(SERVERS, wanted(ABSENT))) == NOT_FOUND
    assert not (await region_servers.store.list(Server)).items


async def test_a_network_that_goes_takes_no_more_servers(region_servers: ServersEnvironment) -> None:
    network = await region_servers.make_network()
    await region_servers.networks.ask(TENANT).delete(f"{NETWORKS}/{network}")
    reply = await region_servers.servers.ask(TENANT).post(SERVERS, wanted(network))
    assert rejection(reply) == (400, "network is being deleted")


async def test_a_group_or_authority_that_goes_takes_no_more_servers(region_servers: ServersEnvironment) -> None:
    network = await region_servers.make_network()
    group, authority = await region_servers.make_group(network), await region_servers.make_authority()
    assert (await region_servers.groups.ask(TENANT).delete(f"{SECURITY_GROUPS}/{group}")).status == 202
    assert (await region_servers.authorities.ask(TENANT).delete(f"{AUTHORITIES}/{authority}")).status == 202
    client = region_servers.servers.ask(TENANT)
    replies = [
        await client.post(SERVERS, wanted(network, networking={"securityGroups": [group]})),
        await client.post(SERVERS, wanted(network, sshCertificateAuthorityId=authority)),
    ]
    assert [(reply.status, "being deleted" in rejection(reply)[1]) for reply in replies] == [(409, True)] * 2
    assert not (await region_servers.store.list(Server)).items
