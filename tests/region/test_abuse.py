"""What is sent to region by those who want to see it break: it is refused in the words of the API, and changes nothing.

Reserved tags belong here, too: a tag that names a service is that service's alone, on every kind, on create and update.
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from remuda.kernel.clock import SystemClock
from remuda.region.kinds import KINDS
from remuda.region.kinds.networks import Network
from tests.kit.asgi.client import Client
from tests.kit.environment import provided_by
from tests.kit.identity.environment import Carrying, expect
from tests.kit.identity.service_credentials import certified, principal
from tests.kit.region.environment import NORTH, STANDARD, UBUNTU, RegionEnvironment, run_region
from tests.kit.region.images import URI, Web

NETWORKS, GROUPS, SERVERS = "/api/v2/networks", "/api/v2/securitygroups", "/api/v2/servers"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDtqJ7zOtqQtYqOo0CpvDXNlMhV3HeJDpjrASKGLWdop"
LISTENERS = [{"name": "http", "protocol": "tcp", "port": 80, "pool": {"members": []}}]
RULE = {"direction": "ingress", "protocol": "tcp", "port": 22}
SYSTEM = {"kernel": "linux", "family": "debian", "distro": "debian", "version": "12"}
COMPUTE_TAG = {"name": "compute.unikorn-cloud.org/instance", "value": "1"}
OF_COMPUTE = (
    "compute.unikorn-cloud.org/instance",
    "compute.unikorn-cloud.org:instance",
    "Compute.Unikorn-Cloud.ORG/instance",
    "inner.compute.unikorn-cloud.org/instance",
)
"""Names of tags that are the compute service's, however they are written."""


@dataclass(frozen=True, kw_only=True)
class Taggable:
    """A kind whose things have tags: where they are made, of what, and what is sent to change one."""

    path: str
    new: Mapping[str, Any]
    change: Mapping[str, Any] | None = None
    success: int = 201


async def _kinds(environment: RegionEnvironment) -> dict[str, Taggable]:
    """Return every kind that can be made over the API."""
    where = {"organizationId": environment.organization, "projectId": environment.project}
    network = await environment.network("setup")
    classes = expect(await environment.root.get("/api/v2/filestorageclasses", {"regionID": NORTH}), 200)
    storage = {"sizeGiB": 1, "storageType": {"NFS": {"rootSquash": True}}}
    chosen = {"regionId": NORTH, "storageClassId": classes[0]["metadata"]["id"]}
    server = {"flavorId": STANDARD, "imageId": UBUNTU}
    image = {"uri": URI, "architecture": "x86_64", "virtualization": "any", "os": SYSTEM}
    prefix = {"regionId": NORTH, "prefix": "10.0.0.0/24"}
    return {
        "network": Taggable(
            path=NETWORKS, new={**where, **prefix, "dnsNameservers": []}, change={"dnsNameservers": []}
        ),
        "group": Taggable(path=GROUPS, new={"networkId": network, "rules": []}, change={"rules": []}),
        "authority": Taggable(path="/api/v2/sshcertificateauthorities", new={**where, "publicKey": KEY}),
        "balancer": Taggable(
            path="/api/v2/loadbalancers",
            new={"networkId": network, "listeners": LISTENERS},
            change={"listeners": LISTENERS},
        ),
        "storage": Taggable(path="/api/v2/filestorage", new={**where, **chosen, **storage}, change=storage),
        "server": Taggable(path=SERVERS, new={"networkId": network, **server}, change=server),
        "image": Taggable(
            path=f"/api/v1/organizations/{environment.organization}/regions/{NORTH}/images", new=image, success=200
        ),
    }


def _body(name: str, spec: Mapping[str, Any], *tags: Mapping[str, str]) -> Any:
    return {"metadata": {"name": name, "tags": tags}, "spec": spec}


def _through(environment: RegionEnvironment, service: str) -> Client:
    """Return the client of a platform administrator whose token a service carries."""
    headers = certified(service, {"actor": "ann@example.com", "type": "user"}, now=environment.clock.now())
    return Client(app=Carrying(environment.asgi, headers), token=environment.identity.root)


def _change_count(environment: RegionEnvironment) -> int:
    return environment.store.change_counter([kind.type for kind in KINDS])


def _in_a_region(scenario: Any) -> None:
    run_region(scenario, is_instant=True, web=Web(SystemClock()))


region = provided_by(_in_a_region)


async def test_a_tag_that_names_a_service_is_refused_from_everybody_else_on_every_kind(
    region: RegionEnvironment,
) -> None:
    for label, kind in (await _kinds(region)).items():
        await region.clock.sleep(60)
        made = await region.root.post(kind.path, _body("untagged", kind.new))
        path = f"{kind.path}/{expect(made, kind.success)['metadata']['id']}"
        await region.clock.sleep(90)  # an image that has arrived is forgotten after a minute
        before = _change_count(region)
        for name in OF_COMPUTE:
            for client in (region.root, _through(region, "uni-storage")):
                tag = {"name": name, "value": "1"}
                sent = [await client.post(kind.path, _body("tagged", kind.new, tag))]
                if kind.change is not None:
                    sent.append(await client.put(path, _body("untagged", kind.change, tag)))
                for reply in sent:
                    assert reply.status == 422, (label, name, reply)
                    assert "only a service may set" in reply.json["error_description"], (label, name)
        assert _change_count(region) == before, label


async def test_a_service_may_set_its_own_tags_and_nobody_takes_them_away(region: RegionEnvironment) -> None:
    compute = _through(region, "unikorn-compute")
    for label, kind in (await _kinds(region)).items():
        made = expect(await compute.post(kind.path, _body("tagged", kind.new, COMPUTE_TAG)), kind.success)
        assert COMPUTE_TAG in made["metadata"]["tags"], label
        await region.clock.sleep(60)
        if kind.change is None:
            continue
        path = f"{kind.path}/{made['metadata']['id']}"
        mine = {"name": "mine", "value": "2"}
        for sent in ((), (mine,), (mine, COMPUTE_TAG)):
            changed = expect(await region.root.put(path, _body("tagged", kind.change, *sent)), 202)
            tags = changed["metadata"]["tags"]
            assert COMPUTE_TAG in tags, label
            assert len(tags) == len({*(tag["name"] for tag in sent), COMPUTE_TAG["name"]}), label
            await region.clock.sleep(60)
        other = {**COMPUTE_TAG, "value": "another"}
        assert (await region.root.put(path, _body("tagged", kind.change, other))).status == 422, label
        expect(await compute.put(path, _body("tagged", kind.change, other)), 202)
        await region.clock.sleep(60)
        changed = expect(await compute.put(path, _body("tagged", kind.change)), 202)
        assert "tags" not in changed["metadata"], label


async def test_a_tag_that_is_given_twice_is_refused_on_every_kind(region: RegionEnvironment) -> None:
    for label, kind in (await _kinds(region)).items():
        made = expect(await region.root.post(kind.path, _body("untagged", kind.new)), kind.success)
        twice = ({"name": "mine", "value": "1"}, {"name": "mine", "value": "2"})
        sent = [await region.root.post(kind.path, _body("tagged", kind.new, *twice))]
        if kind.change is not None:
            path = f"{kind.path}/{made['metadata']['id']}"
            sent.append(await region.root.put(path, _body("untagged", kind.change, *twice)))
        for reply in sent:
            assert reply.status == 422, (label, reply)
            assert "mine" in reply.json["error_description"], label


async def test_user_data_that_is_too_long_is_refused(region: RegionEnvironment) -> None:
    spec = {"networkId": await region.network(), "flavorId": STANDARD, "imageId": UBUNTU}
    for length, status in ((64 * 1024, 201), (64 * 1024 + 1, 422), (4 << 20, 413)):
        data = base64.b64encode(b"#!/bin/sh\n".ljust(length, b"#")).decode()
        reply = await region.root.post(SERVERS, _body(f"server-{length}", {**spec, "userData": data}))
        assert reply.status == status, (length, reply.status, reply.body[:300])
    assert len(expect(await region.root.get(SERVERS), 200)) == 1


async def test_ten_thousand_rules_are_refused(region: RegionEnvironment) -> None:
    network = await region.network()
    reply = await region.root.post(GROUPS, _body("group", {"networkId": network, "rules": [RULE] * 10_000}))
    assert reply.status in {400, 413}
    assert expect(await region.root.get(GROUPS), 200) == []


@pytest.mark.parametrize(
    "nested",
    [
        b"[" * 100_000 + b"]" * 100_000,
        b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
        b'{"spec":' * 2000 + b"{}" + b"}" * 2000,
    ],
    ids=["lists", "objects", "specs"],
)
async def test_deep_json_is_refused(region: RegionEnvironment, nested: bytes) -> None:
    for path in (NETWORKS, GROUPS, SERVERS, "/api/v2/loadbalancers", "/api/v2/filestorage"):
        assert (await region.root.post(path, nested)).status in {400, 413}, path


REFERENCES = {
    "things.example.org%252F1": 201,
    "things.example.org%2F1": 201,
    "things.example.org/1": 404,
    "things.example.org%252F1%252F2": 422,
    "%252Fthings.example.org": 422,
    "things.example.org%252F": 422,
    "..%252F..%252Fnetworks": 422,
    "%252E%252E%252F1": 422,
    "unikorn": 422,
    "foregroundDeletion": 422,
    "things.example.org%252F1%2500": 400,
    "things.example.org%252F1%250A2": 400,
    "things.example.org%252F%25C3%25A9": 422,
    "things.example.org%25252F1": 422,
    "a" * 254: 400,
}
"""References in a path, and what becomes of them."""


@pytest.mark.parametrize(("reference", "status"), REFERENCES.items(), ids=range(len(REFERENCES)))
async def test_a_reference_is_what_clients_write_and_nothing_else(
    region: RegionEnvironment, reference: str, status: int
) -> None:
    network = await region.network()
    await region.until(f"{NETWORKS}/{network}", "provisioned")
    before = (await region.store.get(Network, network)).metadata.finalizers
    path = f"{NETWORKS}/{network}/references/{reference}"
    assert (await region.root.put(path)).status == status
    after = (await region.store.get(Network, network)).metadata.finalizers
    assert set(after) - set(before) == ({"things.example.org/1"} if status == 201 else set())
    assert (await region.root.delete(path)).status in {204, status} - {201}
    assert set((await region.store.get(Network, network)).metadata.finalizers) == set(before)


async def test_a_tenant_who_claims_to_act_for_somebody_else_acts_for_itself(region: RegionEnvironment) -> None:
    other = await region.identity.organization("other")
    project = await region.identity.project(other)
    token = await region.identity.member("ann@example.com", region.organization, "administrator")
    claim = {"actor": "bob@example.com", "type": "user", "organizationId": other, "projectId": project}
    forged = {
        "x-principal": principal(claim),
        "x-impersonate": "true",
        "ssl-client-verify": "SUCCESS",
        "ssl-client-cert": "nonsense",
    }
    where = {"organizationId": region.organization, "projectId": region.project, "regionId": NORTH}
    body = _body("net", {**where, "prefix": "10.0.0.0/24", "dnsNameservers": []})
    for names in (("x-principal",), ("x-principal", "x-impersonate")):
        headers = {name: forged[name] for name in names}
        ann = Client(app=Carrying(region.asgi, headers), token=token)
        made = expect(await ann.post(NETWORKS, body), 201)
        assert made["metadata"]["createdBy"] == "ann@example.com"
        labels = (await region.store.get(Network, made["metadata"]["id"])).metadata.labels
        assert other not in labels.values()
        assert project not in labels.values()
        theirs = {**where, "organizationId": other, "projectId": project}
        elsewhere = _body("net", {**theirs, "prefix": "10.0.0.0/24", "dnsNameservers": []})
        assert (await ann.post(NETWORKS, elsewhere)).status == 403
    before = _change_count(region)
    for peer, status in ((("192.0.2.1", 4711), 401), (("127.0.0.1", 4711), 400)):
        stranger = Client(app=Carrying(region.asgi, forged), peer=peer)
        assert (await stranger.post(NETWORKS, body)).status == status
    vouched = certified("unikorn-compute", claim, now=region.clock.now())
    stranger = Client(app=Carrying(region.asgi, vouched), peer=("192.0.2.1", 4711))
    assert (await stranger.get(SERVERS)).status == 401
    assert _change_count(region) == before
