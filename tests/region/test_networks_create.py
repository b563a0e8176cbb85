"""Networks over HTTP: what a new one may be, in which order that is validated, and how it is told."""

from typing import Any

import pytest

from remuda.access.principal import Principal
from remuda.providers.contract.provider import Provider
from remuda.quota.ports import ChargeAmount, ProjectRef
from remuda.region.kinds.networks import Identity, Network
from remuda.region.networks.routes import NETWORKS
from remuda.resources.conventions import (
    API_VERSION,
    CONTROLLER_FINALIZER,
    IDENTITY,
    ORGANIZATION,
    PAYING_ORGANIZATION,
    PAYING_PROJECT,
)
from remuda.resources.conventions import PROJECT as PROJECT_LABEL
from remuda.resources.conventions import REGION as REGION_LABEL
from tests.kit.environment import options
from tests.kit.region.network_requests import INSIDER, NOT_FOUND, OUTSIDE, READER, STRANGER, forbidden, nothing_was_made
from tests.kit.region.networks import ABSENT, HOME, OTHER_PROJECT, TENANT, NetworksEnvironment, network
from tests.kit.region.resource_api import ORG, OTHER_ORG, OTHER_REGION, PROJECT, REGION, rejection


async def test_m21_a_new_network_is_pending_and_has_a_hidden_identity_that_owns_it(
    region_networks: NetworksEnvironment,
) -> None:
    client = region_networks.networks.ask(TENANT)
    reply = await client.post(
        NETWORKS, network(prefix="10.0.0.5/16", routes=[{"prefix": "1.2.3.4/8", "nexthop": "10.0.0.9"}])
    )
    assert reply.status == 201
    metadata = reply.json["metadata"]
    assert (metadata["provisioningStatus"], metadata["healthStatus"]) == ("pending", "unknown")
    assert (metadata["organizationId"], metadata["projectId"]) == (ORG, PROJECT)
    assert metadata["createdBy"] == "ann@example.com"
    assert "modifiedBy" not in metadata
    assert reply.json["spec"] == {
        "dnsNameservers": ["8.8.8.8"],
        "routes": [{"prefix": "1.0.0.0/8", "nexthop": "10.0.0.9"}],
    }
    assert reply.json["status"] == {
        "regionId": REGION,
        "prefix": "10.0.0.0/16",
        "reservations": {"prefixLength": 25, "providerReservedPrefixLength": 28},
    }
    read = await client.get(f"{NETWORKS}/{metadata['id']}")
    assert (read.status, read.json) == (200, reply.json)
    stored = await region_networks.store.get(Network, metadata["id"])
    (owner,) = stored.metadata.owner_references
    hidden = await region_networks.store.get(Identity, owner.name)
    assert stored.metadata.labels[IDENTITY] == hidden.name
    assert hidden.metadata.labels["unikorn-cloud.org/name"] == "networkv2-service-principal"
    for each in (stored, hidden):
        assert CONTROLLER_FINALIZER in each.metadata.finalizers
        labels = each.metadata.labels
        assert (labels[ORGANIZATION], labels[PROJECT_LABEL]) == (ORG, PROJECT)
        assert (labels[REGION_LABEL], labels[API_VERSION]) == (REGION, "2")
    assert stored.spec.reservations is None, "the default is worked out, not stored"


async def test_m21_a_network_holds_its_project_and_what_it_costs(region_networks: NetworksEnvironment) -> None:
    name = await region_networks.make_network()
    stored = await region_networks.store.get(Network, name)
    hidden = stored.metadata.labels[IDENTITY]
    assert region_networks.identity.references[HOME] == {f"identities.region.unikorn-cloud.org/{hidden}"}
    (charge,) = region_networks.identity.held.values()
    assert (charge.payer, charge.kind, charge.id) == (HOME, "networks.region.unikorn-cloud.org", name)
    assert charge.amounts == (ChargeAmount("networks", 1),)
    assert not region_networks.identity.confirmed, "its controller does that"
    (payer,) = region_networks.identity.payers
    assert payer is not None
    assert payer.subject == "ann@example.com"


@pytest.mark.parametrize(
    ("claimed", "payer"),
    [
        ((OTHER_ORG, OTHER_PROJECT), ProjectRef(OTHER_ORG, OTHER_PROJECT)),
        ((OTHER_ORG, None), HOME),
        ((None, None), HOME),
        (("00000000-0000-4000-8000-000000000001", OTHER_PROJECT), HOME),
        (("acme", "prod"), HOME),
    ],
    ids=["another project", "no project", "nobody", "what fits no label", "no ids"],
)
async def test_m20_m21_whoever_is_charged_is_whom_the_labels_name(
    region_networks: NetworksEnvironment, claimed: tuple[str | None, str | None], payer: ProjectRef
) -> None:
    service = Principal(subject="unikorn-kubernetes", type="system", access=TENANT.access).with_payer(*claimed)
    name = await region_networks.make_network(service)
    labels = (await region_networks.store.get(Network, name)).metadata.labels
    assert ProjectRef(labels[PAYING_ORGANIZATION], labels[PAYING_PROJECT]) == payer
    assert [place for place, _ in region_networks.identity.held] == [payer]
    assert region_networks.identity.references[HOME], "it is in the project all the same"


async def test_the_same_request_under_its_key_makes_one_network(region_networks: NetworksEnvironment) -> None:
    client = region_networks.networks.ask(TENANT)
    replies = [await client.post(NETWORKS, network(), idempotency_key="once") for _ in range(2)]
    assert [reply.status for reply in replies] == [201, 201]
    assert replies[0].json == replies[1].json
    assert len((await region_networks.store.list(Network)).items) == 1
    assert len(region_networks.identity.held) == 1


async def test_a_request_that_failed_can_be_sent_again_under_its_key(region_networks: NetworksEnvironment) -> None:
    client = region_networks.networks.ask(TENANT)
    region_networks.identity.fail("allocate", after=True)
    assert (await client.post(NETWORKS, network(), idempotency_key="once")).status == 503
    await region_networks.rest()
    await nothing_was_made(region_networks)
    assert (await client.post(NETWORKS, network(), idempotency_key="once")).status == 201
    assert len((await region_networks.store.list(Network)).items) == 1
    assert [len(each) for each in (region_networks.identity.held, region_networks.identity.references[HOME])] == [1, 1]


# What no network can be.

REFUSED: list[tuple[str, dict[str, Any], int, str]] = [
    ("no prefix at all", {"prefix": "pony"}, 400, "unable to parse IPv4 prefix"),
    ("no mask", {"prefix": "10.0.0.0"}, 400, "unable to parse IPv4 prefix"),
    ("a small network", {"prefix": "10.0.0.0/25"}, 400, "minimum network prefix size is /24"),
    ("IPv6", {"prefix": "fd00::/8"}, 400, "unable to parse IPv4 prefix, IPv6 is not supported"),
    (
        "a reservation as long as the mask",
        {"reservations": {"prefixLength": 24}},
        422,
        "the address reservation prefix length must be greater than the network prefix length",
    ),
    (
        "a reservation of all and more",
        {"prefix": "10.0.0.0/16", "reservations": {"prefixLength": 8}},
        422,
        "the address reservation prefix length must be greater than the network prefix length",
    ),
    (
        "more for the provider than is reserved",
        {"reservations": {"prefixLength": 26, "providerReservedPrefixLength": 25}},
        422,
        "the provider reserved prefix length must be greater than or equal to the reservation prefix length",
    ),
    ("a name server that is a name", {"dnsNameservers": ["8.8.8.8", "dns"]}, 400, "unable to parse IPv4 address"),
    (
        "a name server of IPv6",
        {"dnsNameservers": ["2001:4860:4860::8888"]},
        400,
        "unable to parse IPv4 address, IPv6 is not supported",
    ),
    ("a route to nowhere", {"routes": [{"prefix": "x", "nexthop": "10.0.0.1"}]}, 400, "failed to parse route prefix"),
    (
        "a route by nobody",
        {"routes": [{"prefix": "10.0.0.0/8", "nexthop": "x"}]},
        400,
        "failed to parse route next-hop",
    ),
]


@pytest.mark.parametrize(("spec", "status", "sentence"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
async def test_what_no_network_can_be_is_refused_and_nothing_is_made(
    region_networks: NetworksEnvironment, spec: dict[str, Any], status: int, sentence: str
) -> None:
    reply = await region_networks.networks.ask(TENANT).post(NETWORKS, network(**spec))
    assert rejection(reply) == (status, sentence)
    await nothing_was_made(region_networks)
    assert region_networks.identity.asked == ["has_project"], "it is validated before anything is begun"


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"organizationId": "acme"}, "organizationId"),
        ({"projectId": "prod"}, "projectId"),
        ({"regionId": "north"}, "regionId"),
        ({"reservations": {"prefixLength": 31}}, "prefixLength"),
        ({"reservations": {}}, "prefixLength"),
        ({"dnsNameservers": None}, "dnsNameservers"),
        ({"prefix": None}, "prefix"),
    ],
    ids=["organization", "project", "region", "too long", "no length", "no name servers", "no prefix"],
)
async def test_what_does_not_fit_the_schema_is_refused_with_the_field_that_does_not(
    region_networks: NetworksEnvironment, spec: dict[str, Any], field: str
) -> None:
    status, sentence = rejection(await region_networks.networks.ask(TENANT).post(NETWORKS, network(**spec)))
    assert status == 400
    assert field in sentence
    await nothing_was_made(region_networks)


async def test_tags_that_are_not_the_callers_to_give_are_refused_before_anything_is_begun(
    region_networks: NetworksEnvironment,
) -> None:
    client = region_networks.networks.ask(TENANT)
    for tags in ([("compute.unikorn-cloud.org/cluster", "x")], [("a", "1"), ("a", "2")]):
        wanted = network()
        wanted["metadata"]["tags"] = [{"name": name, "value": value} for name, value in tags]
        status, sentence = rejection(await client.post(NETWORKS, wanted))
        assert status == 422
        assert "metadata.tags" in sentence
    await nothing_was_made(region_networks)
    assert set(region_networks.identity.asked) == {"has_project"}


async def test_a_service_can_give_its_own_tags_whoever_it_acts_for(region_networks: NetworksEnvironment) -> None:
    service = Principal(subject="ann@example.com", type="user", service="unikorn-compute", access=TENANT.access)
    wanted = network()
    wanted["metadata"]["tags"] = [{"name": "compute.unikorn-cloud.org/cluster", "value": "x"}]
    reply = await region_networks.networks.ask(service).post(NETWORKS, wanted)
    assert reply.status == 201
    assert reply.json["metadata"]["tags"] == wanted["metadata"]["tags"]


@options(limits={"networks": 1})
async def test_a_quota_that_is_used_up_is_told_in_the_words_of_identity_and_nothing_is_left(
    region_networks: NetworksEnvironment,
) -> None:
    await region_networks.make_network()
    before = region_networks.identity.everything()
    reply = await region_networks.networks.ask(TENANT).post(NETWORKS, network())
    assert rejection(reply) == (403, "total networks allocation of 2 would exceed quota limit of 1")
    assert len((await region_networks.store.list(Network)).items) == 1
    assert len((await region_networks.store.list(Identity)).items) == 1
    assert region_networks.identity.everything() == before


# Who may make one, and in which order that is validated.


async def test_permissions_come_first_then_the_project_then_the_region_then_what_is_wanted(
    region_networks: NetworksEnvironment,
) -> None:
    bad: dict[str, Any] = {"regionId": ABSENT, "prefix": "pony"}
    reply = await region_networks.networks.ask(READER).post(NETWORKS, network(projectId=ABSENT, **bad))
    assert rejection(reply) == forbidden("create", OUTSIDE)
    reply = await region_networks.networks.ask(STRANGER).post(NETWORKS, network(**bad))
    assert rejection(reply) == forbidden("create", " — organization is not in this principal's accessible set")
    client = region_networks.networks.ask(TENANT)
    assert rejection(await client.post(NETWORKS, network(projectId=ABSENT, **bad))) == NOT_FOUND
    region_networks.identity.asked.clear()
    for region in (ABSENT, OTHER_REGION):
        reply = await client.post(NETWORKS, network(regionId=region, prefix="pony"))
        assert rejection(reply) == NOT_FOUND
    reply = await client.post(NETWORKS, network(prefix="pony"))
    assert rejection(reply) == (400, "unable to parse IPv4 prefix")
    await nothing_was_made(region_networks)


@pytest.mark.parametrize(
    ("fate", "status", "sentence"),
    [("gone", 404, "resource not found"), ("going", 400, "unable to add reference, resource is being deleted")],
)
async def test_a_project_that_only_the_access_list_knows_or_that_goes_gets_no_network(
    region_networks: NetworksEnvironment, fate: str, status: int, sentence: str
) -> None:
    if fate == "going":
        region_networks.identity.references[HOME].add("servers.example/keeps-it")
        region_networks.identity.mark(HOME)
    else:
        region_networks.identity.places.clear()
    reply = await region_networks.networks.ask(INSIDER).post(NETWORKS, network())
    assert rejection(reply) == (status, sentence)
    assert not (await region_networks.store.list(Identity)).items
    assert not region_networks.identity.held


async def test_a_region_without_networks_is_not_valid_here(region_networks: NetworksEnvironment) -> None:
    region_networks.providers[REGION] = Provider(type="kubernetes", catalogue=region_networks.provider.catalogue)
    reply = await region_networks.networks.ask(TENANT).post(NETWORKS, network())
    assert rejection(reply) == (400, "region is not valid for this endpoint")
    await nothing_was_made(region_networks)
