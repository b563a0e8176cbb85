"""What a plan tells is what comes of it, in the simulated cloud too: what is lost is gone, what survives is there."""

from dataclasses import dataclass
from typing import Any

import pytest

from tests.kit.compute.environment import INSTANCES, ComputeEnvironment
from tests.kit.compute.requests import GPUS, Tenant, at, encoded, held, made, make_authority, make_group, settle
from tests.kit.compute.updates import LARGE, ROCKY, kinds, named, plan, put, wanted

PUBLIC: dict[str, Any] = {"networking": {"publicIP": True}}
DATA = encoded("#cloud-config\npackages: [redis]\n")
CHANGES: dict[str, dict[str, Any]] = {
    "nothing": PUBLIC,
    "security-group": {"networking": {"publicIP": True, "securityGroups": ["GROUP"]}},
    "source-addresses": {"networking": {"publicIP": True, "allowedSourceAddresses": ["10.9.0.0/24"]}},
    "public-ip-goes": {},
    "protection": {**PUBLIC, "protection": {"deletion": True, "plan": True}},
    "user-data": {**PUBLIC, "userData": DATA},
    "image": {**PUBLIC, "imageId": ROCKY},
    "image-and-user-data": {**PUBLIC, "imageId": ROCKY, "userData": DATA},
    "flavor": {**PUBLIC, "flavorId": LARGE},
    "flavor-with-gpus-and-user-data": {**PUBLIC, "flavorId": GPUS, "userData": DATA},
    "ssh-authority": {**PUBLIC, "sshCertificateAuthorityId": "AUTHORITY"},
    "flavor-image-and-public-ip-goes": {"flavorId": LARGE, "imageId": ROCKY},
}


@dataclass(frozen=True)
class Seen:
    """An instance as everybody can see it, and its server as the cloud has it."""

    read: Any
    server: str
    console: str
    held: dict[str, int]

    @property
    def things(self) -> dict[str, str]:
        """What it has, by the words of a plan. What runs on it ends when it boots: so often it has begun to."""
        status, metadata = self.read["status"], self.read["metadata"]
        keys = self.console.partition("-----BEGIN SSH HOST KEY KEYS-----")[2].partition("-----END")[0]
        return {
            "id": metadata["id"],
            "name": metadata["name"],
            "privateIP": status["privateIP"],
            "macAddress": status["macAddress"],
            "publicIP": status.get("publicIP", ""),
            "rootDisk": keys,  # which are made when a disk is used first
            "sshHostKeys": keys,
            "memory": keys + str(self.console.count("Linux version")),
        }


async def _seen(compute: ComputeEnvironment, instance: str) -> Seen:
    read = await compute.until(instance, "provisioned")
    await compute.clock.sleep(30)
    servers = compute.region.north.provider.servers
    assert servers is not None
    (server,) = [await servers.find_server(each.handle) async for part in servers.server_versions() for each in part]
    assert server is not None
    console = (await compute.root.get(at(instance, "consoleoutput"))).json["contents"]
    (amounts,) = await held(compute)
    return Seen(read, server.id, console, amounts)


async def _spec(compute: ComputeEnvironment, tenant: Tenant, spec: dict[str, Any]) -> dict[str, Any]:
    """Return a change that names what there is."""
    found = dict(spec)
    if "sshCertificateAuthorityId" in found:
        found["sshCertificateAuthorityId"] = await make_authority(compute, tenant.project)
    if "securityGroups" in found.get("networking", {}):
        group = await make_group(compute, tenant.network)
        found["networking"] = {**found["networking"], "securityGroups": [group]}
    return found


@pytest.mark.parametrize("change", CHANGES)
async def test_b02_c10_what_a_plan_tells_is_what_comes_of_it(compute: ComputeEnvironment, change: str) -> None:
    tenant = await settle(compute)
    instance = made(await tenant.client.post(INSTANCES, tenant.wanted(compute, **PUBLIC)))
    before = await _seen(compute, instance)
    body = wanted(tenant, compute, **await _spec(compute, tenant, CHANGES[change]))
    told = await plan(tenant.client, instance, body)
    assert (await put(tenant.client, instance, body, plan=told["hash"])).status == 202
    after = await _seen(compute, instance)
    for thing in named(told["preserved"]):
        assert after.things[thing] == before.things[thing], f"{thing} survives"
    for thing in named(told["destroyed"]):
        assert after.things[thing] != before.things[thing], f"{thing} is lost"
    for thing, value in (named(told["destroyed"]) | named(told["preserved"])).items():
        assert not value or value == before.things[thing], f"{thing} is told as it is"
    assert (after.server == before.server) == ("replace" not in kinds(told))
    deltas = {each["kind"]: each["delta"] for each in told["quota"]}
    assert deltas == {kind: after.held.get(kind, 0) - before.held.get(kind, 0) for kind in deltas}
    if "userData" in CHANGES[change]:
        assert ("redis" in after.console) == ("deferred" not in kinds(told))
