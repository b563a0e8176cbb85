"""SSH certificate authorities over HTTP: who may have them, what may be their key, and what keeps them."""

from typing import Any

import pytest

from remuda.access.principal import Principal
from remuda.quota.ports import ProjectRef
from remuda.region.authorities.routes import AUTHORITIES
from remuda.region.kinds.authorities import SSHCertificateAuthority, SSHCertificateAuthoritySpec
from remuda.region.kinds.servers import Server, ServerImage, ServerNetwork, ServerSpec
from remuda.resources.conventions import API_VERSION, CONTROLLER_FINALIZER, NAME, ORGANIZATION
from remuda.resources.conventions import PROJECT as PROJECT_LABEL
from remuda.store.objects import Metadata
from tests.kit.region.network_requests import KEY, NOT_FOUND, OUTSIDE, make_authority
from tests.kit.region.networks import ABSENT, HOME, OTHER_PROJECT, TENANT, NetworksEnvironment
from tests.kit.region.resource_api import ORG, OTHER_ORG, PROJECT, member, rejection

ENDPOINT = "region:sshcertificateauthorities:v2"
STRANGER = member("eve@example.com", OTHER_ORG, f"{ENDPOINT} CRD")
READER = member("bob@example.com", ORG, f"{ENDPOINT} R")
INSIDER = member("pat@example.com", ORG, "", a0000000_0000_4000_8000_00000000000a=f"{ENDPOINT} CRD")


def authority(**spec: Any) -> dict[str, Any]:
    fields = {"organizationId": ORG, "projectId": PROJECT, "publicKey": KEY} | spec
    return {"metadata": {"name": "ca"}, "spec": fields}


def forbidden(verb: str, why: str = OUTSIDE) -> tuple[int, str]:
    return 403, f"operation is not allowed by rbac: operation '{verb}' on endpoint '{ENDPOINT}'{why}"


async def nothing_was_made(region_networks: NetworksEnvironment) -> None:
    assert not (await region_networks.store.list(SSHCertificateAuthority)).items
    assert region_networks.identity.everything() == ({}, {}, frozenset())


async def test_a_new_authority_is_ready_at_once_and_keeps_its_project(region_networks: NetworksEnvironment) -> None:
    client = region_networks.authorities.ask(TENANT)
    reply = await client.post(AUTHORITIES, authority())
    assert reply.status == 201
    metadata = reply.json["metadata"]
    assert (metadata["provisioningStatus"], metadata["healthStatus"]) == ("provisioned", "healthy")
    assert (metadata["organizationId"], metadata["projectId"]) == (ORG, PROJECT)
    assert metadata["createdBy"] == "ann@example.com"
    assert reply.json.keys() == {"metadata", "spec"}
    assert reply.json["spec"] == {"publicKey": KEY}
    read = await client.get(f"{AUTHORITIES}/{metadata['id']}")
    assert (read.status, read.json) == (200, reply.json)
    stored = await region_networks.store.get(SSHCertificateAuthority, metadata["id"])
    assert CONTROLLER_FINALIZER in stored.metadata.finalizers
    assert not stored.metadata.owner_references
    assert stored.metadata.labels[API_VERSION] == "2"
    assert region_networks.identity.references[HOME] == {
        f"sshcertificateauthorities.region.unikorn-cloud.org/{metadata['id']}"
    }
    assert not region_networks.identity.held, "it costs nothing"


async def test_a_key_without_a_comment_is_stored_as_it_is_written_canonically(
    region_networks: NetworksEnvironment,
) -> None:
    for sent, stored in ((f"  {KEY}\n", KEY), (f" {KEY} ann at home \n", f"{KEY} ann at home")):
        name = await make_authority(region_networks, publicKey=sent)
        assert (await region_networks.store.get(SSHCertificateAuthority, name)).spec.public_key == stored


@pytest.mark.parametrize(
    ("key", "sentence"),
    [
        (" ", "public key must be specified"),
        ("pony", "public key must be a valid OpenSSH authorized key"),
        (f"{KEY}\n{KEY}", "public key must contain a single key"),
        (f"no-pty {KEY}", "public key options are not supported"),
    ],
    ids=["blank", "no key", "two keys", "options"],
)
async def test_what_no_key_can_be_is_refused_before_anything_is_begun(
    region_networks: NetworksEnvironment, key: str, sentence: str
) -> None:
    reply = await region_networks.authorities.ask(TENANT).post(AUTHORITIES, authority(publicKey=key))
    assert rejection(reply) == (422, sentence)
    await nothing_was_made(region_networks)
    assert region_networks.identity.asked == ["has_project"]


@pytest.mark.parametrize("field", ["organizationId", "projectId"])
async def test_what_is_no_id_is_refused_with_the_field(region_networks: NetworksEnvironment, field: str) -> None:
    status, sentence = rejection(
        await region_networks.authorities.ask(TENANT).post(AUTHORITIES, authority(**{field: "acme"}))
    )
    assert status == 400
    assert field in sentence
    await nothing_was_made(region_networks)


async def test_permissions_come_first_then_the_project_then_the_key(region_networks: NetworksEnvironment) -> None:
    reply = await region_networks.authorities.ask(READER).post(AUTHORITIES, authority(projectId=ABSENT, publicKey="x"))
    assert rejection(reply) == forbidden("create")
    reply = await region_networks.authorities.ask(STRANGER).post(AUTHORITIES, authority(publicKey="x"))
    assert rejection(reply) == forbidden("create", " — organization is not in this principal's accessible set")
    reply = await region_networks.authorities.ask(TENANT).post(AUTHORITIES, authority(projectId=ABSENT, publicKey="x"))
    assert rejection(reply) == NOT_FOUND
    await nothing_was_made(region_networks)


async def test_a_project_that_only_the_access_list_knows_or_that_goes_gets_no_authority(
    region_networks: NetworksEnvironment,
) -> None:
    client = region_networks.authorities.ask(INSIDER)
    region_networks.identity.references[HOME].add("servers.example/keeps-it")
    region_networks.identity.mark(HOME)
    reply = await client.post(AUTHORITIES, authority())
    assert rejection(reply) == (400, "unable to add reference, resource is being deleted")
    await region_networks.identity.remove_reference(HOME, "servers.example/keeps-it")
    assert rejection(await client.post(AUTHORITIES, authority())) == NOT_FOUND
    await nothing_was_made(region_networks)


async def test_a_project_whose_deletion_begins_while_an_authority_is_created_keeps_nothing_of_it(
    region_networks: NetworksEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cascade of the deletion has listed the project before the authority is stored, and will not list it again."""
    identity = region_networks.identity
    add_reference = identity.add_reference

    async def add_reference_before_deletion(payer: ProjectRef, reference: str) -> None:
        await add_reference(payer, reference)
        identity.mark(payer)

    monkeypatch.setattr(identity, "add_reference", add_reference_before_deletion)
    reply = await region_networks.authorities.ask(TENANT).post(AUTHORITIES, authority())
    assert rejection(reply) == (400, "unable to add reference, resource is being deleted")
    await nothing_was_made(region_networks)
    assert HOME not in identity.places, "nothing keeps the project"


async def test_a_request_that_failed_can_be_sent_again_under_its_key_and_leaves_one_reference(
    region_networks: NetworksEnvironment,
) -> None:
    client = region_networks.authorities.ask(TENANT)
    region_networks.identity.fail("add_reference", after=True)
    assert (await client.post(AUTHORITIES, authority(), idempotency_key="once")).status == 503
    await region_networks.rest()
    await nothing_was_made(region_networks)
    replies = [await client.post(AUTHORITIES, authority(), idempotency_key="once") for _ in range(2)]
    assert [reply.status for reply in replies] == [201, 201]
    assert replies[0].json == replies[1].json
    assert len(region_networks.identity.references[HOME]) == 1


async def test_tags_of_a_service_are_its_own_to_give(region_networks: NetworksEnvironment) -> None:
    wanted = authority()
    wanted["metadata"]["tags"] = [{"name": "compute.unikorn-cloud.org/cluster", "value": "x"}]
    status, sentence = rejection(await region_networks.authorities.ask(TENANT).post(AUTHORITIES, wanted))
    assert status == 422
    assert "metadata.tags" in sentence
    await nothing_was_made(region_networks)
    service = Principal(subject="ann@example.com", type="user", service="unikorn-compute", access=TENANT.access)
    reply = await region_networks.authorities.ask(service).post(AUTHORITIES, wanted)
    assert reply.json["metadata"]["tags"] == wanted["metadata"]["tags"]


# Who sees one.


async def test_strangers_find_nothing_and_members_are_told_what_they_lack(region_networks: NetworksEnvironment) -> None:
    path = f"{AUTHORITIES}/{await make_authority(region_networks)}"
    stranger, reader = region_networks.authorities.ask(STRANGER), region_networks.authorities.ask(READER)
    assert rejection(await stranger.get(path)) == NOT_FOUND
    assert rejection(await stranger.delete(path)) == NOT_FOUND
    assert (await reader.get(path)).status == 200
    assert rejection(await reader.delete(path)) == forbidden("delete")
    assert rejection(await reader.get(f"{AUTHORITIES}/{ABSENT}")) == NOT_FOUND


async def test_what_another_api_made_is_there_as_well(region_networks: NetworksEnvironment) -> None:
    labels = {NAME: "old", ORGANIZATION: ORG, PROJECT_LABEL: PROJECT}
    old = SSHCertificateAuthority(
        metadata=Metadata(name=ABSENT, labels=labels), spec=SSHCertificateAuthoritySpec(public_key=KEY)
    )
    await region_networks.store.create(old)
    client = region_networks.authorities.ask(TENANT)
    assert [each["metadata"]["name"] for each in (await client.get(AUTHORITIES)).json] == ["old"]
    assert (await client.get(f"{AUTHORITIES}/{ABSENT}")).status == 200
    assert (await client.delete(f"{AUTHORITIES}/{ABSENT}")).status == 202


async def test_a_list_has_what_was_asked_for_and_may_be_seen(region_networks: NetworksEnvironment) -> None:
    mine, beside = await make_authority(region_networks), await make_authority(region_networks, projectId=OTHER_PROJECT)

    async def seen(who: Principal, *query: tuple[str, str]) -> list[str]:
        reply = await region_networks.authorities.ask(who).get(AUTHORITIES, query)
        assert reply.status == 200, reply
        return [each["metadata"]["id"] for each in reply.json]

    assert await seen(TENANT) == sorted([mine, beside])
    assert await seen(INSIDER) == [mine]
    assert await seen(STRANGER) == []
    assert await seen(TENANT, ("projectID", OTHER_PROJECT)) == [beside]
    assert await seen(TENANT, ("organizationID", ORG), ("tag", "a=b")) == []
    assert await seen(TENANT, ("organizationID", OTHER_ORG)) == []


# The end.


async def test_an_authority_goes_once_and_only_as_its_caller_has_seen_it(region_networks: NetworksEnvironment) -> None:
    client, path = region_networks.authorities.ask(TENANT), f"{AUTHORITIES}/{await make_authority(region_networks)}"
    other = (await client.get(f"{AUTHORITIES}/{await make_authority(region_networks)}")).headers["etag"]
    assert (await client.delete(path, if_match=other)).status == 412
    reply = await client.delete(path, if_match=(await client.get(path)).headers["etag"])
    assert (reply.status, reply.body) == (202, b"")
    metadata = (await client.get(path)).json["metadata"]
    assert (metadata["provisioningStatus"], metadata["healthStatus"]) == ("deprovisioning", "healthy")
    before = await region_networks.versions()
    assert (await client.delete(path)).status == 202
    assert await region_networks.versions() == before


async def test_a_server_keeps_the_authority_it_was_made_with(region_networks: NetworksEnvironment) -> None:
    name, client = await make_authority(region_networks), region_networks.authorities.ask(TENANT)
    spec = ServerSpec(
        flavor_id="flavor",
        image=ServerImage(id="image"),
        networks=(ServerNetwork(id=await region_networks.make_network()),),
        ssh_certificate_authority_id=name,
    )
    server = await region_networks.store.create(Server(metadata=Metadata(name="server"), spec=spec))
    reply = await client.delete(f"{AUTHORITIES}/{name}")
    assert rejection(reply) == (403, "SSH certificate authority is in use and cannot be deleted")
    assert not (await region_networks.store.get(SSHCertificateAuthority, name)).is_deleting
    other = f"{AUTHORITIES}/{await make_authority(region_networks)}"
    outdated = (await client.get(other)).headers["etag"]
    reply = await client.delete(f"{AUTHORITIES}/{name}", if_match=outdated)
    assert reply.status == 412, "If-Match is compared before the authority is found to be in use"
    await region_networks.store.delete(Server, server.name, uid=server.uid)
    assert (await client.delete(f"{AUTHORITIES}/{name}")).status == 202


async def test_every_change_is_audited_in_its_organization(region_networks: NetworksEnvironment) -> None:
    name = await make_authority(region_networks)
    await region_networks.authorities.ask(TENANT).delete(f"{AUTHORITIES}/{name}")
    assert await region_networks.audited() == [
        ("POST", "sshcertificateauthorities", name, 201),
        ("DELETE", "sshcertificateauthorities", name, 202),
    ]
