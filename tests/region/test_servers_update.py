"""Servers over HTTP: what can be changed of one, and how it is replaced and given up."""

from typing import Any

import pytest

from remuda.kernel.tags import Tag
from remuda.region.servers.routes import SERVERS
from remuda.resources.conventions import PAYING_ORGANIZATION, PAYING_PROJECT
from tests.kit.region.network_requests import NOT_FOUND, forbidden
from tests.kit.region.networks import ABSENT
from tests.kit.region.resource_api import ORG, PROJECT, catalogues, member, rejection
from tests.kit.region.server_view import shown_of
from tests.kit.region.servers import (
    COMPUTE,
    DEBIAN,
    FOR_METAL,
    PERMISSIONS,
    SMALL,
    STANDARD,
    TENANT,
    UBUNTU,
    ServersEnvironment,
    encoded,
    update,
)

INSTANCE = {"name": "compute.unikorn-cloud.org/instance", "value": "i"}
CHANGER = member("cho@example.com", ORG, PERMISSIONS)
SCRIPT = encoded("#!/bin/sh\ntrue\n")


async def test_a_put_replaces_all_that_can_be_changed_and_says_who_did(region_servers: ServersEnvironment) -> None:
    network = await region_servers.make_network()
    group = await region_servers.make_group(network)
    networking = {"securityGroups": [group], "publicIP": True, "allowedSourceAddresses": ["10.0.0.0/8"]}
    server = await region_servers.make_server(network, networking=networking, userData=SCRIPT)
    made = await region_servers.read(server)
    await region_servers.world.clock.sleep(5)
    body = update(imageId=DEBIAN)
    body["metadata"] |= {"description": "new", "tags": [{"name": "a", "value": "1"}]}
    reply = await region_servers.servers.ask(CHANGER).put(f"{SERVERS}/{server}", body)
    assert reply.status == 202
    metadata = reply.json["metadata"]
    assert (metadata["createdBy"], metadata["modifiedBy"]) == ("ann@example.com", "cho@example.com")
    assert metadata["modifiedTime"] > metadata["creationTime"] == made["metadata"]["creationTime"]
    assert (metadata["description"], metadata["tags"]) == ("new", [{"name": "a", "value": "1"}])
    assert reply.json["spec"] == {"flavorId": STANDARD, "imageId": DEBIAN}, "what was left out is gone"
    assert shown_of(reply.json) == shown_of(made)
    assert reply.json["status"]["revision"] != made["status"]["revision"]
    labels = (await region_servers.stored(server)).metadata.labels
    assert (labels[PAYING_ORGANIZATION], labels[PAYING_PROJECT]) == (ORG, PROJECT)
    await region_servers.put(server, update())
    assert not {"description", "tags"} & (await region_servers.read(server))["metadata"].keys()


@pytest.mark.parametrize(
    ("body", "answer"),
    [
        (update("other", flavorId=SMALL), (422, "server names are immutable")),
        (update(flavorId=SMALL, userData=encoded("x")), (422, "server flavor is immutable")),
        (update(networking={"securityGroups": [ABSENT]}, imageId=ABSENT), NOT_FOUND),
        (update(imageId=ABSENT, networking={"allowedSourceAddresses": ["x"]}), NOT_FOUND),
        (update(imageId=FOR_METAL), (422, "image virtualization is not compatible with the flavor")),
        (
            update(networking={"allowedSourceAddresses": ["fe80::/10"]}),
            (422, "allowedSourceAddresses must contain valid CIDR prefixes, IPv6 is not supported"),
        ),
    ],
    ids=["name", "flavor", "group", "image", "machine image", "sources"],
)
async def test_m08_a_put_of_what_no_server_can_become_changes_nothing(
    region_servers: ServersEnvironment, body: dict[str, Any], answer: tuple[int, str]
) -> None:
    server = await region_servers.make_server(await region_servers.make_network())
    before = await region_servers.versions()
    assert rejection(await region_servers.servers.ask(TENANT).put(f"{SERVERS}/{server}", body)) == answer
    assert await region_servers.versions() == before


async def test_a_group_of_another_network_is_refused_in_a_put_too(region_servers: ServersEnvironment) -> None:
    server = await region_servers.make_server(await region_servers.make_network())
    group = await region_servers.make_group(await region_servers.make_network())
    reply = await region_servers.servers.ask(TENANT).put(
        f"{SERVERS}/{server}", update(networking={"securityGroups": [group]})
    )
    sentence = "a referenced security group must belong to the same network as the server"
    assert rejection(reply) == (422, sentence)


async def test_user_data_is_validated_when_it_is_another(region_servers: ServersEnvironment) -> None:
    network, authority = await region_servers.make_network(), await region_servers.make_authority()
    server = await region_servers.make_server(network, userData=SCRIPT, sshCertificateAuthorityId=authority)
    await region_servers.put(server, update(userData=SCRIPT))
    packed = "H4sIAAAAAAAC"  # the beginning of what gzip makes
    status, sentence = rejection(
        await region_servers.servers.ask(TENANT).put(f"{SERVERS}/{server}", update(userData=packed))
    )
    reason = "gzip userData cannot be combined with managed cloud-init augmentation"
    assert (status, sentence) == (422, f"userData must be a recognized cloud-init format: {reason}")
    assert (await region_servers.read(server))["spec"]["userData"] == SCRIPT
    await region_servers.put(server, update())
    assert "userData" not in (await region_servers.read(server))["spec"]


async def test_a_server_whose_flavor_is_no_longer_offered_can_still_be_changed(
    region_servers: ServersEnvironment,
) -> None:
    flavors = list(catalogues()["sim-north"].flavors)

    assert ABSENT not in {each.id for each in flavors}
    server = await region_servers.make_server(await region_servers.make_network())
    stored = await region_servers.stored(server)
    retired = type(stored.spec)(flavor_id=ABSENT, image=stored.spec.image, networks=stored.spec.networks)
    await region_servers.store.update(type(stored)(metadata=stored.metadata, spec=retired, status=stored.status))
    await region_servers.put(server, update(flavorId=ABSENT, imageId=FOR_METAL))
    body = {"flavorId": ABSENT, "imageId": UBUNTU}
    reply = await region_servers.servers.ask(COMPUTE).post(f"{SERVERS}/{server}/replace", body)
    assert rejection(reply) == (422, "flavor is no longer offered by the region")


async def test_a_service_keeps_its_tags_whoever_changes_the_server(region_servers: ServersEnvironment) -> None:
    server = await region_servers.make_server(await region_servers.make_network())
    path, body = f"{SERVERS}/{server}", update()
    body["metadata"]["tags"] = [INSTANCE]
    assert rejection(await region_servers.servers.ask(TENANT).put(path, body))[0] == 422
    assert (await region_servers.servers.ask(COMPUTE).put(path, body)).status == 202
    assert (await region_servers.servers.ask(TENANT).put(path, body)).status == 202, "it is sent back as it was read"
    body["metadata"]["tags"] = [INSTANCE | {"value": "j"}]
    assert rejection(await region_servers.servers.ask(TENANT).put(path, body))[0] == 422
    await region_servers.put(server, update())
    assert (await region_servers.stored(server)).spec.tags == (Tag(**INSTANCE),)


async def test_a_server_that_goes_says_so_and_cannot_be_changed(region_servers: ServersEnvironment) -> None:
    server = await region_servers.make_server(await region_servers.make_network())
    await region_servers.delete(server)
    metadata = (await region_servers.read(server))["metadata"]
    assert metadata["provisioningStatus"] == "deprovisioning"
    assert metadata["deletionTime"]
    before = await region_servers.versions()
    await region_servers.delete(server)
    path = f"{SERVERS}/{server}"
    reply = await region_servers.servers.ask(TENANT).put(path, update("other"))
    assert rejection(reply) == (400, "server is being deleted")
    body = {"flavorId": STANDARD, "imageId": UBUNTU}
    status, sentence = rejection(await region_servers.servers.ask(COMPUTE).post(f"{path}/replace", body))
    assert (status, "being deleted" in sentence) == (422, True)
    assert await region_servers.versions() == before


async def test_a_write_with_an_old_tag_is_refused_and_one_with_the_right_tag_goes_through(
    region_servers: ServersEnvironment,
) -> None:
    client, path = (
        region_servers.servers.ask(TENANT),
        f"{SERVERS}/{await region_servers.make_server(await region_servers.make_network())}",
    )
    old = (await client.get(path)).headers["etag"]
    assert (await client.put(path, update(userData=SCRIPT), if_match=old)).status == 202
    assert (await client.put(path, update(), if_match=old)).status == 412
    assert (await client.delete(path, if_match=old)).status == 412
    new = (await client.get(path)).headers["etag"]
    assert (await client.delete(path, if_match=new)).status == 202


# Replacement.


async def test_only_a_service_replaces_a_server_and_is_named_for_it(region_servers: ServersEnvironment) -> None:
    server = await region_servers.make_server(await region_servers.make_network(), userData=SCRIPT)
    path, body = f"{SERVERS}/{server}/replace", {"flavorId": SMALL, "imageId": DEBIAN}
    reply = await region_servers.servers.ask(TENANT).post(path, body)
    assert rejection(reply) == (
        403,
        "only a service may replace a server: update the instance that it belongs to",
    )
    reply = await region_servers.servers.ask(COMPUTE).post(path, body)
    assert reply.status == 202
    assert reply.json["spec"] == body, "user data and all else is new"
    metadata = reply.json["metadata"]
    assert (metadata["createdBy"], metadata["modifiedBy"]) == ("ann@example.com", "unikorn-compute")
    assert (await region_servers.stored(server)).spec.replacement == 1


async def test_the_same_request_replaces_once(region_servers: ServersEnvironment) -> None:
    server = await region_servers.make_server(await region_servers.make_network())
    path, body = f"{SERVERS}/{server}/replace", {"flavorId": SMALL, "imageId": DEBIAN}
    for key, number in (("a", 1), ("a", 1), ("b", 2)):
        assert (await region_servers.servers.ask(COMPUTE).post(path, body, idempotency_key=key)).status == 202
        assert (await region_servers.stored(server)).spec.replacement == number


async def test_a_service_replaces_only_what_it_may_change(region_servers: ServersEnvironment) -> None:
    server = await region_servers.make_server(await region_servers.make_network())
    reader = type(COMPUTE)(subject="unikorn-reader", type="system", access=member("x", ORG, "region:servers R").access)
    body = {"flavorId": SMALL, "imageId": DEBIAN}
    reply = await region_servers.servers.ask(reader).post(f"{SERVERS}/{server}/replace", body)
    assert rejection(reply)[0] == forbidden("update", "")[0]
    assert rejection(await region_servers.servers.ask(COMPUTE).post(f"{SERVERS}/{ABSENT}/replace", body)) == NOT_FOUND


@pytest.mark.parametrize(
    ("spec", "answer"),
    [
        ({"imageId": ABSENT}, NOT_FOUND),
        ({"flavorId": ABSENT}, (422, "flavor is no longer offered by the region")),
        ({"imageId": FOR_METAL}, (422, "image virtualization is not compatible with the flavor")),
        ({"sshCertificateAuthorityId": ABSENT}, NOT_FOUND),
    ],
    ids=["image", "flavor", "machine image", "authority"],
)
async def test_a_replacement_that_cannot_be_changes_nothing(
    region_servers: ServersEnvironment, spec: dict[str, Any], answer: tuple[int, str]
) -> None:
    server = await region_servers.make_server(await region_servers.make_network())
    before = await region_servers.versions()
    body = {"flavorId": STANDARD, "imageId": UBUNTU} | spec
    assert rejection(await region_servers.servers.ask(COMPUTE).post(f"{SERVERS}/{server}/replace", body)) == answer
    assert await region_servers.versions() == before


async def test_an_authority_that_comes_or_goes_with_a_replacement_changes_who_can_log_in(
    region_servers: ServersEnvironment,
) -> None:
    network, authority = await region_servers.make_network(), await region_servers.make_authority()
    server = await region_servers.make_server(network)
    await region_servers.replace(server, sshCertificateAuthorityId=authority)
    status = (await region_servers.read(server))["status"]
    assert (status["sshInjection"], status["sshCertificateAuthorityId"]) == ("ca", authority)
    await region_servers.replace(server)
    status = (await region_servers.read(server))["status"]
    assert (status["sshInjection"], status.get("sshCertificateAuthorityId")) == ("identityKeypair", None)
    pinned = await region_servers.make_server(
        network, "pin", sshCertificateAuthorityId=authority, infrastructureRef="r"
    )
    await region_servers.replace(pinned)
    assert (await region_servers.read(pinned))["status"]["sshInjection"] == "none", "a key pair goes with no machine"
    closed = await region_servers.make_server(network, "closed", sshInjection="none")
    await region_servers.replace(closed)
    assert (await region_servers.read(closed))["status"]["sshInjection"] == "none"
