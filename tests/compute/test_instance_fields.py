"""No field of an instance is forgotten on its way: request, stored instance, server, stored server, provider and back.

A new field makes these tests fail until it is set in `FULL`, and until every type has it or a list below says why not.
"""

from dataclasses import fields
from datetime import UTC, datetime
from typing import Any, get_type_hints

import msgspec
import pytest
from msgspec.structs import replace

from remuda.access.principal import Principal
from remuda.compute.instances.convergence import replacement_id, server_update
from remuda.compute.instances.rules import (
    changed_instance,
    desired_server,
    last_requested,
    needs_rebuild,
    new_instance,
    read_instance,
    writable_instance,
)
from remuda.compute.instances.schema import (
    InstanceCreate,
    InstanceCreateSpec,
    InstanceNetworkingWire,
    InstanceSpecWire,
    ProtectionWire,
)
from remuda.compute.instances.status import rebuild_kind
from remuda.compute.kinds import AppliedSpec, ComputeInstance, InstanceSpec
from remuda.compute.plans.diff import changed_fields, with_fields
from remuda.compute.plans.fields import FIELDS
from remuda.kernel.errors import Invalid
from remuda.kernel.ids import derived_id
from remuda.providers.contract.servers import CloudServerSpec
from remuda.region.kinds.networks import Network, NetworkSpec
from remuda.region.kinds.servers import LastAppliedSpec, Server, ServerSpec
from remuda.region.servers.rules import (
    check_update,
    last_applied_spec,
    new_server,
    read_server,
    replaced_server,
    updated_server,
)
from remuda.region.servers.schema import (
    ReplaceWrite,
    ServerCreate,
    ServerCreateSpec,
    ServerSpecWire,
    ServerStatusRead,
)
from remuda.resources.conventions import IDENTITY, ORGANIZATION
from remuda.resources.conventions import PROJECT as PROJECT_LABEL
from remuda.resources.conventions import REGION as REGION_LABEL
from remuda.resources.schema import MetadataWrite
from remuda.store.objects import Metadata, ResourceT
from tests.kit.compute.instance_values import ANN, GROUP, NETWORK, ORG, PROJECT, REGION, USER_DATA

SERVICE = Principal(subject="unikorn-compute", type="system").with_payer(ORG, PROJECT)
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
FULL = InstanceSpecWire(
    flavor_id="11111111-1111-1111-1111-111111111111",
    image_id="33333333-3333-3333-3333-333333333333",
    networking=InstanceNetworkingWire(
        security_groups=(GROUP,), public_ip=True, allowed_source_addresses=("10.1.2.0/24",)
    ),
    ssh_certificate_authority_id=GROUP,
    user_data=USER_DATA,
    protection=ProtectionWire(deletion=True, plan=True),
)
"""Every field that a client can set, with another value than its default."""
LEAST = InstanceSpecWire(flavor_id=GROUP, image_id=GROUP)

OF_THE_INSTANCE = {"protection"}
"""Fields that the server does not have."""
OF_THE_STORED_INSTANCE = {
    *("server_id", "gpus", "operation", "pause", "tags", "replicas", "disk_size"),
    *("rebuilds", "rebuilding_operation"),
}
"""Stored fields that no client writes in the spec."""
OF_THE_SERVER = {"network_id", "ssh_injection", "infrastructure_ref", "rebuilds"}
"""Fields of a new server that no client writes in the spec of an instance."""
STORED_ELSEWHERE = {
    "network_id": "networks",
    "image_id": "image",
    "networking": "security_groups",
}
"""Fields of a new server that are stored under another name."""
OF_THE_STORED_SERVER = {
    *("public_ip_allocation", "volumes", "provider", "replacement", "last_applied", "replacing_operation"),
    *("operation", "adopted", "pause", "tags"),
}
"""Stored fields that no client writes in the spec of a server under that name."""
OF_THE_PORT = {"networks", "security_groups", "public_ip_allocation"}
"""Stored fields that the provider gets with the port."""
KNOWN_TO_THE_PROVIDER = {
    "flavor_id": "flavor",
    "image": "image",
    "rebuilds": "rebuilds",
    "user_data": "user_data",
    "ssh_certificate_authority_id": "user_data",
    "ssh_injection": "has_tenancy_key",
    "infrastructure_ref": "host",
}
"""The attribute of the provider's spec for each stored field; a field that is missing here never reaches a provider."""
LOST_ON_ADOPTION = {"user_data", "ssh_certificate_authority_id", "infrastructure_ref"}
"""Fields of a server that no provider reports, so an adopted server does not have them; the others it has."""
KEPT_ON_ADOPTION = {"flavor_id", "image_id", "rebuilds", "networking", "network_id", "ssh_injection"}


DISRUPTIVE = {"rebuild": "Rebuilding", "replace": "Replacing"}
"""What the instance reports for each step that starts its server from a new disk."""


def names(struct: type[Any]) -> set[str]:
    return set(struct.__struct_fields__)


def defaults(struct: type[Any]) -> dict[str, Any]:
    return {each.name: each.default for each in msgspec.structs.fields(struct)}


def stored(resource: ResourceT) -> ResourceT:
    metadata = replace(resource.metadata, uid=derived_id(NETWORK, resource.name), creation_timestamp=NOW, generation=1)
    return replace(resource, metadata=metadata)


def instance_of(spec: InstanceSpecWire) -> ComputeInstance:
    place: dict[str, Any] = {"organization_id": ORG, "project_id": PROJECT, "network_id": NETWORK}
    wanted = InstanceCreateSpec(**place, **{name: getattr(spec, name) for name in spec.__struct_fields__})
    body = InstanceCreate(metadata=MetadataWrite(name="web", description="The shop."), spec=wanted)
    return stored(new_instance(body, REGION, ANN, operation="op", gpus=0))


def server_of(desired: ServerCreate) -> Server:
    home = {ORGANIZATION: ORG, PROJECT_LABEL: PROJECT, REGION_LABEL: REGION, IDENTITY: GROUP}
    network = Network(metadata=Metadata(name=NETWORK, uid="uid", labels=home), spec=NetworkSpec(prefix="10.0.0.0/24"))
    return stored(new_server(desired, network, SERVICE, operation="op"))


def test_the_example_sets_every_field() -> None:
    for name, default in defaults(InstanceSpecWire).items():
        assert getattr(FULL, name) != default, f"give FULL another {name} than its default"
    for nested in (FULL.networking, FULL.protection):
        assert nested is not None
        assert all(getattr(nested, name) != default for name, default in defaults(type(nested)).items())


def test_every_type_has_every_field_or_a_list_says_why_not() -> None:
    assert names(InstanceSpec) == names(InstanceSpecWire) | OF_THE_STORED_INSTANCE
    assert names(ServerCreateSpec) == names(InstanceSpecWire) - OF_THE_INSTANCE | OF_THE_SERVER
    assert names(ServerCreateSpec) <= names(ServerSpecWire) | names(ServerStatusRead), "what was requested is readable"
    stored_as = {STORED_ELSEWHERE.get(name, name) for name in names(ServerCreateSpec)}
    assert names(ServerSpec) == stored_as | OF_THE_STORED_SERVER
    assert names(ServerSpec) == set(KNOWN_TO_THE_PROVIDER) | OF_THE_PORT | OF_THE_STORED_SERVER
    assert set(KNOWN_TO_THE_PROVIDER.values()) <= {each.name for each in fields(CloudServerSpec)}
    assert names(ServerCreateSpec) == LOST_ON_ADOPTION | KEPT_ON_ADOPTION


@pytest.mark.parametrize(("field", "row"), FIELDS.items())
def test_a_replacement_carries_every_field_that_needs_one(field: str, row: Any) -> None:
    prefix, _, name = row.attribute.partition(".")
    if row.step == "in-place":
        return
    assert prefix == "spec", field
    assert name in names(ReplaceWrite), "a replacement applies the new value"
    if row.step != "deferred":
        assert name in names(AppliedSpec), "the instance knows which value its server has"
        assert name in names(LastAppliedSpec), "setting the old value again cancels the replacement"


@pytest.mark.parametrize(("field", "row"), [(field, row) for field, row in FIELDS.items() if row.step in DISRUPTIVE])
def test_a_change_of_a_field_is_reported_as_its_step(field: str, row: Any) -> None:
    name = row.attribute.removeprefix("spec.")
    spec = instance_of(FULL).spec
    applied = AppliedSpec(**{each: getattr(spec, each) for each in names(AppliedSpec)} | {name: "another"})
    instance = instance_of(FULL)
    assert needs_rebuild(replace(instance, status=replace(instance.status, applied=applied))), field
    changed = replace(instance, status=replace(instance.status, applied=applied))
    assert rebuild_kind(changed) == DISRUPTIVE[row.step], field


@pytest.mark.parametrize("name", sorted(names(AppliedSpec) - {"gpus"}))
def test_a_replacement_from_another_value_is_another_request(name: str) -> None:
    instance = instance_of(FULL)
    server = read_server(server_of(desired_server(instance)))
    part = "spec" if name in names(ServerSpecWire) else "status"
    other = replace(server, **{part: replace(getattr(server, part), **{name: "another"})})
    assert replacement_id(instance, server, 0) == replacement_id(instance, server, 0)
    assert replacement_id(instance, server, 0) != replacement_id(instance, other, 0)


@pytest.mark.parametrize(("field", "row"), FIELDS.items())
def test_region_updates_no_field_that_needs_a_replacement(field: str, row: Any) -> None:
    server, body = server_of(desired_server(instance_of(FULL))), server_update(desired_server(instance_of(FULL)))
    check_update(server, body)
    name = row.attribute.removeprefix("spec.")
    if row.step == "replace" and name in names(ServerSpecWire):
        with pytest.raises(Invalid) as rejected:
            check_update(server, replace(body, spec=replace(body.spec, **{name: "another"})))
        assert rejected.value.field == field


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (InstanceSpecWire, InstanceSpec),
        (InstanceSpec, ServerCreateSpec),
        (InstanceSpec, AppliedSpec),
        (ServerSpecWire, AppliedSpec),
        (ServerSpecWire, ServerSpec),
        (ServerCreateSpec, ServerSpec),
        (ReplaceWrite, ServerSpec),
        (ReplaceWrite, LastAppliedSpec),
    ],
)
def test_a_field_that_is_copied_has_the_same_type_on_both_sides(one: type[Any], other: type[Any]) -> None:
    converted = {"networking", "ssh_certificate_authority_id", "user_data", "protection", "ssh_injection"}
    hints, others = get_type_hints(one), get_type_hints(other)
    for name in names(one) & names(other) - converted:
        assert hints[name] == others[name], name


def test_what_a_client_sets_is_stored_and_read_back() -> None:
    full = instance_of(FULL)
    assert read_instance(full).spec == FULL
    least = instance_of(LEAST)
    changed = changed_instance(least, writable_instance(full), ANN, NOW, gpus=0)
    assert read_instance(changed).spec == FULL
    assert changed.spec == full.spec


def requested(server: Server) -> ServerCreate:
    return last_requested(read_server(server))


def test_the_server_has_every_field_and_region_returns_what_was_requested() -> None:
    desired = desired_server(instance_of(FULL))
    for name, default in defaults(ServerCreateSpec).items():
        assert name in OF_THE_SERVER or getattr(desired.spec, name) != default, name
    assert changed_fields(requested(server_of(desired)), desired) == ()


def test_an_update_or_a_replacement_brings_every_field() -> None:
    desired, before = desired_server(instance_of(FULL)), server_of(desired_server(instance_of(LEAST)))
    replacing = [field for field, row in FIELDS.items() if row.step == "replace"]
    now = with_fields(desired, requested(before), replacing)
    updated = updated_server(before, server_update(now), SERVICE, NOW)
    assert changed_fields(requested(updated), desired) == tuple(replacing)
    body = ReplaceWrite(**{name: getattr(desired.spec, name) for name in ReplaceWrite.__struct_fields__})
    replaced = replaced_server(updated, body, SERVICE, operation="other", now=NOW)
    assert changed_fields(requested(replaced), desired) == ()
    applied = last_applied_spec(updated)
    assert all(getattr(applied, name) == getattr(updated.spec, name) for name in names(LastAppliedSpec) - {"image_id"})
    values = {name: getattr(applied, name) for name in names(LastAppliedSpec) & names(ReplaceWrite)}
    values["ssh_certificate_authority_id"] = values["ssh_certificate_authority_id"] or None
    back = ReplaceWrite(**values, user_data=desired.spec.user_data)
    assert replaced_server(replaced, back, SERVICE, operation="back", now=NOW).spec.replacement == 0
