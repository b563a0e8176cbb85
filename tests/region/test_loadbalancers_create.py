"""Load balancers over HTTP: what may be asked for, in which order that is validated, and how it is told."""

from typing import Any

import pytest

from remuda.quota.ports import ChargeAmount
from remuda.region.kinds.loadbalancers import LoadBalancer
from remuda.region.kinds.networks import Network
from remuda.region.loadbalancers.routes import LOAD_BALANCERS
from remuda.region.networks.routes import NETWORKS
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
from remuda.store.objects import Metadata
from tests.kit.environment import options
from tests.kit.region.loadbalancer_requests import (
    ALL,
    INSIDER,
    NO_PREFIX,
    NOBODY,
    NOBODYS,
    PAYER,
    READER,
    RESERVED,
    STRANGER,
    forbidden,
    listener,
    nothing_was_made,
    pool,
    wanted,
)
from tests.kit.region.resource_api import ORG, PROJECT, REGION, member, rejection
from tests.kit.region.storage import ABSENT, HOME, TENANT, StorageEnvironment


@options(at_work=False)
async def test_a_new_load_balancer_is_pending_and_belongs_to_its_network(region_storage: StorageEnvironment) -> None:
    network = await region_storage.make_network()
    client = region_storage.balancers.ask(TENANT)
    member_ = {"address": "192.0.2.1", "port": 8080}
    web = listener(
        allowedCidrs=["10.1.2.3/8"],
        pool=pool(members=[member_], proxyProtocolV2=True, healthCheck={"intervalSeconds": 7}),
    )
    dns = listener("dns", protocol="udp", port=80)
    reply = await client.post(LOAD_BALANCERS, wanted(network, web, dns))
    assert reply.status == 201
    metadata = reply.json["metadata"]
    assert (metadata["provisioningStatus"], metadata["healthStatus"]) == ("pending", "unknown")
    assert (metadata["organizationId"], metadata["projectId"]) == (ORG, PROJECT)
    check = {"intervalSeconds": 7, "timeoutSeconds": 5, "healthyThreshold": 2, "unhealthyThreshold": 2}
    assert reply.json["spec"] == {
        "publicIP": False,
        "listeners": [
            {
                "name": "web",
                "protocol": "tcp",
                "port": 80,
                "allowedCidrs": ["10.0.0.0/8"],
                "idleTimeoutSeconds": 60,
                "pool": {"members": [member_], "proxyProtocolV2": True, "healthCheck": check},
            },
            {
                "name": "dns",
                "protocol": "udp",
                "port": 80,
                "pool": {"members": [], "proxyProtocolV2": False},
            },
        ],
    }
    assert reply.json["status"] == {"regionId": REGION, "networkId": network}
    read = await client.get(f"{LOAD_BALANCERS}/{metadata['id']}")
    assert (read.status, read.json) == (200, reply.json)
    stored = await region_storage.store.get(LoadBalancer, metadata["id"])
    (owner,) = stored.metadata.owner_references
    assert owner.name == network
    assert CONTROLLER_FINALIZER in stored.metadata.finalizers
    labels, home = stored.metadata.labels, (await region_storage.store.get(Network, network)).metadata.labels
    assert (labels[ORGANIZATION], labels[PROJECT_LABEL]) == (ORG, PROJECT)
    assert (labels[REGION_LABEL], labels[NETWORK], labels[API_VERSION]) == (REGION, network, "2")
    assert labels[IDENTITY] == home[IDENTITY]
    assert ("POST", "loadbalancers", metadata["id"], 201) in await region_storage.audited()


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        ({"vipAddress": "10.0.0.x"}, 400, "vipAddress must be a valid IPv4 address"),
        ({"vipAddress": "10.0.1.1"}, 422, "vipAddress must be within the selected network CIDR"),
        (
            {"vipAddress": "10.0.0.1"},
            422,
            f"spec.vipAddress {NOBODYS}: choose another, or leave it out to get a free one.",
        ),
        ({"listeners": [listener(), listener(port=81)]}, 422, "listener names must be unique"),
        (
            {"listeners": [listener(), listener("other")]},
            422,
            "listener protocol and port combinations must be unique",
        ),
        (
            {"listeners": [listener(pool=pool(members=[{"address": "10.0.0.9", "port": 1}] * 2))]},
            422,
            "pool members must be unique by address and port",
        ),
        (
            {"listeners": [listener(protocol="udp", idleTimeoutSeconds=60)]},
            422,
            "idleTimeoutSeconds is only supported for TCP listeners",
        ),
        (
            {"listeners": [listener(protocol="udp", pool=pool(proxyProtocolV2=True))]},
            422,
            "proxyProtocolV2 is only supported for TCP listeners",
        ),
        (
            {"listeners": [listener(pool=pool(members=[{"address": "::1", "port": 1}]))]},
            400,
            "member address must be a valid IPv4 address, IPv6 is not supported",
        ),
        (
            {"listeners": [listener(pool=pool(members=[{"address": "10.0.0", "port": 1}]))]},
            400,
            "member address must be a valid IPv4 address",
        ),
        (
            {"vipAddress": "10.0.0.16"},
            422,
            f"spec.vipAddress {RESERVED}: choose one from 10.0.0.128 to 10.0.0.254, or leave it out to get a free one.",
        ),
        ({"vipAddress": "::1"}, 400, "vipAddress must be a valid IPv4 address, IPv6 is not supported"),
        (
            {"listeners": [listener(allowedCidrs=["::/0"])]},
            400,
            f'the request body is not valid: "/spec/listeners/0/allowedCidrs/0" {NO_PREFIX}',
        ),
        (
            {"listeners": [listener(allowedCidrs=["010.0.0.0/8"])]},
            400,
            "allowedCidrs must contain valid IPv4 CIDR prefixes",
        ),
        (
            {"listeners": [listener(pool=pool(healthCheck={"timeoutSeconds": 10}))]},
            422,
            "timeoutSeconds must be less than intervalSeconds",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@options(at_work=False)
async def test_what_no_load_balancer_can_be_is_refused_and_makes_nothing(
    region_storage: StorageEnvironment, body: dict[str, Any], status: int, sentence: str
) -> None:
    network = await region_storage.make_network()
    reply = await region_storage.balancers.ask(TENANT).post(LOAD_BALANCERS, wanted(network, **body))
    assert rejection(reply) == (status, sentence)
    await nothing_was_made(region_storage)


@pytest.mark.parametrize(
    ("body", "place"),
    [
        (listener("Web"), "/spec/listeners/0/name"),
        (listener("9web"), "/spec/listeners/0/name"),
        (listener("a" * 64), "/spec/listeners/0/name"),
        (listener("web\n"), "/spec/listeners/0/name"),
        (listener(protocol="sctp"), "/spec/listeners/0/protocol"),
        (listener(port=0), "/spec/listeners/0/port"),
        (listener(port=65536), "/spec/listeners/0/port"),
        (listener(idleTimeoutSeconds=0), "/spec/listeners/0/idleTimeoutSeconds"),
        (listener(idleTimeoutSeconds=86401), "/spec/listeners/0/idleTimeoutSeconds"),
        (listener(allowedCidrs=["10.0.0.0/33"]), "/spec/listeners/0/allowedCidrs/0"),
        (listener(allowedCidrs=["::/0"]), "/spec/listeners/0/allowedCidrs/0"),
        (listener(pool={}), "/spec/listeners/0/pool"),
        (listener(pool=pool(members=[{"address": "10.0.0.1"}])), "/spec/listeners/0/pool/members/0"),
        (listener(pool=pool(members=[{"address": "10.0.0.1", "port": 0}])), "/spec/listeners/0/pool/members/0/port"),
        (listener(pool=pool(healthCheck={"intervalSeconds": 301})), "/spec/listeners/0/pool/healthCheck"),
        (listener(pool=pool(healthCheck={"healthyThreshold": 11})), "/spec/listeners/0/pool/healthCheck"),
    ],
)
@options(at_work=False)
async def test_a_listener_that_does_not_fit_the_schema_is_told_where(
    region_storage: StorageEnvironment, body: dict[str, Any], place: str
) -> None:
    network = await region_storage.make_network()
    status, sentence = rejection(await region_storage.balancers.ask(TENANT).post(LOAD_BALANCERS, wanted(network, body)))
    assert status == 400
    assert place in sentence
    await nothing_was_made(region_storage)


@options(at_work=False)
async def test_one_without_listeners_or_with_a_tag_twice_or_of_another_service_is_refused(
    region_storage: StorageEnvironment,
) -> None:
    client, network = region_storage.balancers.ask(TENANT), await region_storage.make_network()
    body = {"metadata": {"name": "lb"}, "spec": {"networkId": network, "listeners": []}}
    assert (await client.post(LOAD_BALANCERS, body)).status == 400
    asked = len(region_storage.identity.asked)
    for tags in ([{"name": "a", "value": "1"}] * 2, [{"name": "compute.unikorn-cloud.org/x", "value": "1"}]):
        reply = await client.post(LOAD_BALANCERS, wanted(network) | {"metadata": {"name": "lb", "tags": tags}})
        assert reply.status == 422
        assert "metadata.tags" in reply.json["error_description"]
    assert len(region_storage.identity.asked) == asked, "nothing is held for what is refused"
    await nothing_was_made(region_storage)


@options(at_work=False)
async def test_the_network_comes_first_then_the_right_then_the_address_then_the_listeners(
    region_storage: StorageEnvironment,
) -> None:
    network = await region_storage.make_network()
    bad = wanted(network, listener(), listener(), vipAddress="x")
    unknown = wanted(ABSENT, listener(), listener(), vipAddress="x")
    assert (await region_storage.balancers.ask(TENANT).post(LOAD_BALANCERS, unknown)).status == 404
    assert (await region_storage.balancers.ask(STRANGER).post(LOAD_BALANCERS, bad)).status == 404
    reply = await region_storage.balancers.ask(NOBODY).post(LOAD_BALANCERS, bad)
    assert rejection(reply) == forbidden("read", " — project is not in this principal's accessible set", "networks:v2")
    reply = await region_storage.balancers.ask(READER).post(LOAD_BALANCERS, bad)
    assert rejection(reply) == forbidden("create", " — project is not in this principal's accessible set")
    reply = await region_storage.balancers.ask(TENANT).post(LOAD_BALANCERS, bad)
    assert rejection(reply) == (400, "vipAddress must be a valid IPv4 address")
    reply = await region_storage.balancers.ask(INSIDER).post(LOAD_BALANCERS, wanted(network))
    assert reply.status == 201


@options(at_work=False)
async def test_a_network_of_the_first_generation_is_not_there(region_storage: StorageEnvironment) -> None:
    labels = {ORGANIZATION: ORG, PROJECT_LABEL: PROJECT, REGION_LABEL: REGION, IDENTITY: ABSENT}
    found = await region_storage.store.get(Network, await region_storage.make_network())
    await region_storage.store.create(Network(metadata=Metadata(name=ABSENT, labels=labels), spec=found.spec))
    assert (await region_storage.balancers.ask(TENANT).post(LOAD_BALANCERS, wanted(ABSENT))).status == 404


@options(at_work=False)
async def test_on_a_network_that_goes_nothing_new_is_made(region_storage: StorageEnvironment) -> None:
    network = await region_storage.make_network()
    assert (await region_storage.networks.ask(TENANT).delete(f"{NETWORKS}/{network}")).status == 202
    reply = await region_storage.balancers.ask(TENANT).post(LOAD_BALANCERS, wanted(network))
    assert reply.status == 409
    await nothing_was_made(region_storage)


@options(at_work=False, limits={"loadbalancers": 1, "publicips": 1})
async def test_quota_is_held_for_whoever_pays_and_refused_in_words(region_storage: StorageEnvironment) -> None:
    network = await region_storage.make_network()
    region_storage.identity.add(PAYER)
    service = member("unikorn-thing", ORG, ALL).with_payer(PAYER.organization, PAYER.project)
    paid = await region_storage.make_balancer(wanted(network, publicIP=True), service)
    stored = await region_storage.store.get(LoadBalancer, paid)
    labels = stored.metadata.labels
    assert (labels[PAYING_ORGANIZATION], labels[PAYING_PROJECT]) == (PAYER.organization, PAYER.project)
    (held,) = [each for each in region_storage.identity.held.values() if each.id == paid]
    assert (held.payer, held.operation) == (PAYER, stored.spec.operation)
    assert held.kind == "loadbalancers.region.unikorn-cloud.org"
    assert held.amounts == (ChargeAmount("loadbalancers", 1), ChargeAmount("publicips", 1))
    client = region_storage.balancers.ask(TENANT)
    assert (await client.post(LOAD_BALANCERS, wanted(network))).status == 201
    reply = await client.post(LOAD_BALANCERS, wanted(network))
    assert rejection(reply) == (403, "total loadbalancers allocation of 2 would exceed quota limit of 1")
    assert len((await region_storage.store.list(LoadBalancer)).items) == 2
    assert region_storage.identity.total("loadbalancers", HOME) == 1


@options(at_work=False)
async def test_a_request_that_comes_again_under_its_key_makes_one(region_storage: StorageEnvironment) -> None:
    client, network = region_storage.balancers.ask(TENANT), await region_storage.make_network()
    first = await client.post(LOAD_BALANCERS, wanted(network), idempotency_key="once")
    again = await client.post(LOAD_BALANCERS, wanted(network), idempotency_key="once")
    assert first.json == again.json
    assert len((await region_storage.store.list(LoadBalancer)).items) == 1
    region_storage.identity.fail("allocate", after=True)
    assert (await client.post(LOAD_BALANCERS, wanted(network), idempotency_key="twice")).status == 503
    assert region_storage.identity.total("loadbalancers", HOME) == 1
    assert (await client.post(LOAD_BALANCERS, wanted(network), idempotency_key="twice")).status == 201
    assert region_storage.identity.total("loadbalancers", HOME) == 2
