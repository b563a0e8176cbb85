"""Servers over HTTP: what may be asked for, in which order that is validated, and what is stored of it."""

from hashlib import sha1
from uuid import UUID

import pytest

from remuda.access.principal import AccessList, Principal
from remuda.region.kinds.networks import Network
from remuda.region.kinds.servers import Server
from remuda.region.networks.routes import NETWORKS
from remuda.region.servers.routes import SERVERS
from remuda.resources.conventions import (
    API_VERSION,
    CONTROLLER_FINALIZER,
    IDENTITY,
    NETWORK,
    ORGANIZATION,
    PAYING_ORGANIZATION,
    PAYING_PROJECT,
)
from remuda.resources.conventions import PROJECT as PROJECT_LABEL
from remuda.resources.conventions import REGION as REGION_LABEL
from tests.kit.region.resource_api import ORG, OTHER_ORG, PROJECT, REGION, permission_set, rejection
from tests.kit.region.server_view import shown_of
from tests.kit.region.servers import COMPUTE, PERMISSIONS, TENANT, UBUNTU, ServersEnvironment, encoded, wanted


async def test_a_new_server_is_pending_and_belongs_to_its_network(region_servers: ServersEnvironment) -> None:
    network = await region_servers.make_network()
    client = region_servers.servers.ask(TENANT)
    reply = await client.post(SERVERS, wanted(network))
    assert reply.status == 201
    metadata = reply.json["metadata"]
    assert (metadata["provisioningStatus"], metadata["healthStatus"]) == ("pending", "unknown")
    assert (metadata["organizationId"], metadata["projectId"]) == (ORG, PROJECT)
    assert metadata["createdBy"] == "ann@example.com"
    assert reply.json["spec"] == {"flavorId": wanted(network)["spec"]["flavorId"], "imageId": UBUNTU}
    expected = {"regionId": REGION, "networkId": network, "sshInjection": "identityKeypair"}
    assert shown_of(reply.json) == expected
    assert (await region_servers.read(metadata["id"])) == reply.json
    stored = await region_servers.stored(metadata["id"])
    (owner,) = stored.metadata.owner_references
    assert owner.name == network
    assert CONTROLLER_FINALIZER in stored.metadata.finalizers
    labels, home = stored.metadata.labels, (await region_servers.store.get(Network, network)).metadata.labels
    assert (labels[ORGANIZATION], labels[PROJECT_LABEL]) == (ORG, PROJECT)
    assert (labels[PAYING_ORGANIZATION], labels[PAYING_PROJECT]) == (ORG, PROJECT)
    assert (labels[REGION_LABEL], labels[NETWORK], labels[API_VERSION]) == (REGION, network, "2")
    assert labels[IDENTITY] == home[IDENTITY]
    assert rejection(await region_servers.networks.ask(TENANT).delete(f"{NETWORKS}/{network}")) == (
        403,
        "network is in use and cannot be deleted",
    )


async def test_what_was_sent_is_what_is_read_and_duplicates_count_once(region_servers: ServersEnvironment) -> None:
    network = await region_servers.make_network()
    group, authority = await region_servers.make_group(network), await region_servers.make_authority()
    user_data = encoded("#cloud-config\nhostname: web\n")
    networking = {
        "securityGroups": [group, group],
        "publicIP": True,
        "allowedSourceAddresses": ["10.9.8.7/8", "192.0.2.1/32", "192.0.2.1/32"],
    }
    server = await region_servers.make_server(
        network,
        networking=networking,
        userData=user_data,
        sshCertificateAuthorityId=authority,
        infrastructureRef="rack-1",
    )
    read = await region_servers.read(server)
    assert read["spec"]["userData"] == user_data
    assert read["spec"]["networking"] == {
        "securityGroups": [group],
        "publicIP": True,
        "allowedSourceAddresses": ["10.0.0.0/8", "192.0.2.1/32"],
    }
    assert read["status"]["sshInjection"] == "ca"
    assert read["status"]["sshCertificateAuthorityId"] == authority
    assert read["status"]["infrastructureRef"] == "rack-1"


async def test_what_is_not_set_is_not_shown(region_servers: ServersEnvironment) -> None:
    network = await region_servers.make_network()
    group = await region_servers.make_group(network)
    empty = await region_servers.make_server(network, "empty", networking={"publicIP": False, "securityGroups": []})
    assert not {"networking", "userData"} & (await region_servers.read(empty))["spec"].keys()
    inside = await region_servers.make_server(
        network, "inside", networking={"publicIP": False, "securityGroups": [group]}
    )
    assert (await region_servers.read(inside))["spec"]["networking"] == {"securityGroups": [group]}


@pytest.mark.parametrize(
    ("sent", "has_authority", "read"),
    [(None, False, "identityKeypair"), (None, True, "ca"), ("none", False, "none"), ("ca", True, "ca")],
)
async def test_who_can_log_in_follows_from_the_authority_unless_it_is_said(
    region_servers: ServersEnvironment, sent: str | None, read: str, *, has_authority: bool
) -> None:
    authority = await region_servers.make_authority() if has_authority else None
    server = await region_servers.make_server(
        await region_servers.make_network(), sshInjection=sent, sshCertificateAuthorityId=authority
    )
    status = (await region_servers.read(server))["status"]
    assert status["sshInjection"] == read
    assert status.get("sshCertificateAuthorityId") == authority


async def test_the_id_of_a_server_follows_from_its_network_and_its_name(region_servers: ServersEnvironment) -> None:
    network, other = await region_servers.make_network(), await region_servers.make_network()
    for name in ("web", "db", "a.b_c-d", "x" * 63):
        server = await region_servers.make_server(network, name)
        expected = _hashed(network, name.encode())
        while not str(expected)[0].isalpha():
            expected = _hashed(network, expected.bytes)
        assert server == str(expected)
    assert await region_servers.make_server(other, "web") != await _id(region_servers, network, "web")


def _hashed(network: str, name: bytes) -> UUID:
    """Return a UUID of version 5, whose names may be bytes, unlike those of the standard library."""
    return UUID(bytes=sha1(UUID(network).bytes + name, usedforsecurity=False).digest()[:16], version=5)


async def _id(region_servers: ServersEnvironment, network: str, name: str) -> str:
    servers = (await region_servers.servers.ask(TENANT).get(SERVERS, [("networkID", network)])).json
    return next(str(each["metadata"]["id"]) for each in servers if each["metadata"]["name"] == name)


async def test_there_is_one_server_of_a_name_on_a_network_and_the_same_request_is_made_once(
    region_servers: ServersEnvironment,
) -> None:
    network = await region_servers.make_network()
    client = region_servers.servers.ask(TENANT)
    first = await client.post(SERVERS, wanted(network), idempotency_key="once")
    again = await client.post(SERVERS, wanted(network), idempotency_key="once")
    assert (first.status, again.status) == (201, 201)
    assert again.json == first.json
    reply = await client.post(SERVERS, wanted(network), idempotency_key="twice")
    assert rejection(reply) == (409, "the requested resource already exists")
    assert len((await region_servers.store.list(Server)).items) == 1


async def test_m20_who_pays_is_whom_the_credentials_name_or_else_the_networks_project(
    region_servers: ServersEnvironment,
) -> None:
    payer = Principal(
        subject="unikorn-compute",
        type="system",
        access=AccessList(everywhere=permission_set(PERMISSIONS)),
        organization=OTHER_ORG,
        project="b0000000-0000-4000-8000-00000000000b",
    )
    network = await region_servers.make_network()
    reply = await region_servers.servers.ask(payer).post(SERVERS, wanted(network))
    labels = (await region_servers.stored(reply.json["metadata"]["id"])).metadata.labels
    assert (labels[PAYING_ORGANIZATION], labels[PAYING_PROJECT]) == (OTHER_ORG, payer.project)
    assert (labels[ORGANIZATION], labels[PROJECT_LABEL]) == (ORG, PROJECT)


async def test_a_reserved_tag_is_written_by_its_service_alone(region_servers: ServersEnvironment) -> None:
    network = await region_servers.make_network()
    body = wanted(network)
    for mark in "/:":
        body["metadata"]["tags"] = [{"name": f"compute.unikorn-cloud.org{mark}instance", "value": "i"}]
        status, sentence = rejection(await region_servers.servers.ask(TENANT).post(SERVERS, body))
        assert (status, "metadata.tags" in sentence) == (422, True)
    acting = Principal(subject="ann@example.com", type="user", access=TENANT.access, service="unikorn-identity")
    assert rejection(await region_servers.servers.ask(acting).post(SERVERS, body))[0] == 422
    reply = await region_servers.servers.ask(COMPUTE).post(SERVERS, body)
    assert reply.status == 201
    assert reply.json["metadata"]["tags"] == body["metadata"]["tags"]
