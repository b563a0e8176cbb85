"""Networks, security groups and SSH authorities, as the Terraform provider has them."""

import pytest

from tests.kit.compatibility.environment import CompatibilityEnvironment
from tests.kit.compatibility.provider import DiagnosticError
from tests.kit.compatibility.resources import INSTANCE, NETWORK, SECURITY_GROUP, SSH_AUTHORITY
from tests.kit.compute.requests import DEBIAN, KEY
from tests.kit.region.environment import NORTH, STANDARD

RULES = [
    {"type": "ingress", "protocol": "tcp", "from_port": 443, "to_port": 444, "cidr_block": "192.0.2.0/24"},
    {"type": "ingress", "protocol": "tcp", "from_port": 22},
    {"type": "ingress", "protocol": "icmp"},
    {"type": "ingress", "protocol": "vrrp", "cidr_block": "10.1.0.0/24"},
    {"type": "egress", "protocol": "udp", "from_port": 53, "cidr_block": "192.0.2.53/32"},
    {"type": "egress", "protocol": "any", "cidr_block": "0.0.0.0/0"},
]


async def test_a_network_is_made_read_changed_imported_and_destroyed(environment: CompatibilityEnvironment) -> None:
    terraform = environment.provider
    config = environment.net
    nothing_more = {"description": None, "routes": None, "dns_nameservers": None, "tags": None}
    made = await terraform.create(NETWORK, {**config, **nothing_more})
    assert await terraform.refresh(NETWORK, made["id"]) == made
    more = {
        "description": "of mine",
        "routes": [("192.168.0.0/16", "10.1.0.1"), ("172.16.0.0/12", "10.1.0.2")],
        "dns_nameservers": ["192.0.2.54", "192.0.2.53", "192.0.2.55"],
        "tags": {"team": "a", "example.com/owner": "ann+bob:1"},
    }
    changed = await terraform.update(NETWORK, made, {**config, **more})
    assert await terraform.refresh(NETWORK, made["id"]) == changed
    await terraform.update(NETWORK, changed, {**config, **nothing_more})
    await terraform.destroy(NETWORK, made["id"])
    assert await terraform.refresh(NETWORK, made["id"]) is None
    await terraform.destroy(NETWORK, made["id"])


async def test_only_the_last_operation_is_among_the_tags(environment: CompatibilityEnvironment) -> None:
    terraform = environment.provider
    config = {**environment.net, "tags": {"a": "b"}}
    state = await terraform.create(NETWORK, config)
    for _ in range(3):
        state = await terraform.update(NETWORK, state, config)
    read = (await terraform.clients["region"].get(f"/api/v2/networks/{state['id']}")).json
    assert len(read["metadata"]["tags"]) == 2


async def test_the_rules_of_a_security_group_come_back_as_they_were_sent(environment: CompatibilityEnvironment) -> None:
    terraform = environment.provider
    config = {"name": "web", "network_id": await environment.network(), "rules": RULES, "description": None}
    made = await terraform.create(SECURITY_GROUP, config)
    assert (made["region_id"], made["project_id"]) == (NORTH, environment.project)
    assert await terraform.refresh(SECURITY_GROUP, made["id"]) == made
    changed = await terraform.update(SECURITY_GROUP, made, {**config, "rules": [*reversed(RULES)], "tags": {"a": "b"}})
    await terraform.update(SECURITY_GROUP, changed, {**config, "rules": []})
    await terraform.destroy(SECURITY_GROUP, made["id"])
    assert await terraform.refresh(SECURITY_GROUP, made["id"]) is None


@pytest.mark.parametrize("rule", [{"protocol": "icmp", "from_port": 1}, {"from_port": 20, "to_port": 10}])
async def test_a_rule_that_cannot_be_is_an_error_of_the_apply(
    environment: CompatibilityEnvironment, rule: dict[str, object]
) -> None:
    wrong = {"type": "ingress", "protocol": "tcp", **rule}
    config = {"name": "web", "network_id": await environment.network(), "rules": [wrong]}
    with pytest.raises(DiagnosticError, match="server returned status code 400, code: invalid_request, message: "):
        await environment.provider.create(SECURITY_GROUP, config)


async def test_a_security_group_in_use_is_tried_again_until_its_instance_is_gone_and_a_network_is_not(
    environment: CompatibilityEnvironment,
) -> None:
    terraform, network = environment.provider, await environment.network()
    group = await terraform.create(SECURITY_GROUP, {"name": "web", "network_id": network, "rules": []})
    instance = await terraform.create(
        INSTANCE,
        {
            "name": "web",
            **environment.where,
            "network_id": network,
            "flavor_id": STANDARD,
            "image_id": DEBIAN,
            "security_group_ids": [group["id"]],
        },
    )
    with pytest.raises(DiagnosticError, match="status code 403, code: forbidden, message: network is in use"):
        await terraform.destroy(NETWORK, network)
    reply = await terraform.clients["region"].delete(f"/api/v2/securitygroups/{group['id']}")
    assert (reply.status, reply.json["error"]) == (403, "forbidden")
    assert reply.json["error_description"] == "security group is in use and cannot be deleted"
    assert (await terraform.clients["compute"].delete(f"/api/v2/instances/{instance['id']}")).status == 202
    await terraform.destroy(SECURITY_GROUP, group["id"])
    assert await terraform.refresh(INSTANCE, instance["id"]) is None
    await terraform.destroy(NETWORK, network)


async def test_an_ssh_authority_is_made_imported_and_destroyed(environment: CompatibilityEnvironment) -> None:
    terraform = environment.provider
    config = {"name": "ca", **environment.where, "public_key": KEY, "description": None}
    made = await terraform.create(SSH_AUTHORITY, {**config, "public_key": KEY})
    assert made["public_key"].endswith(" ca@example.com")
    assert await terraform.refresh(SSH_AUTHORITY, made["id"]) == made
    await terraform.destroy(SSH_AUTHORITY, made["id"])
    assert await terraform.refresh(SSH_AUTHORITY, made["id"]) is None
    with pytest.raises(DiagnosticError, match="status code 422"):
        await terraform.create(SSH_AUTHORITY, {**config, "public_key": "no key"})
