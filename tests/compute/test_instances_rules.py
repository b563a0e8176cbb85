"""What is stored of an instance, what its server is asked to be, and how it reads."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from remuda.compute.instances.rules import (
    changed_instance,
    desired_server,
    new_instance,
    read_instance,
    writable_instance,
)
from remuda.compute.instances.schema import (
    InstanceCreate,
    InstanceCreateSpec,
    InstanceNetworkingWire,
    InstanceSpecWire,
    InstanceUpdate,
    ProtectionWire,
)
from remuda.compute.kinds import ComputeInstance, Protection
from remuda.kernel.errors import Invalid
from remuda.kernel.ids import derived_id
from remuda.region.servers.schema import ServerNetworkingWire as ServerNetworking
from remuda.resources.conventions import (
    CONTROLLER_FINALIZER,
    DESCRIPTION,
    NAME,
    ORGANIZATION,
    PAYING_ORGANIZATION,
    PAYING_PROJECT,
)
from remuda.resources.conventions import NETWORK as NETWORK_LABEL
from remuda.resources.conventions import PROJECT as PROJECT_LABEL
from remuda.resources.conventions import REGION as REGION_LABEL
from remuda.resources.schema import MetadataWrite, TagWire
from tests.kit.compute.instance_values import ANN, GROUP, NETWORK, ORG, OTHER_GROUP, PROJECT, REGION, USER_DATA

FLAVOR, IMAGE = "11111111-1111-1111-1111-111111111111", "33333333-3333-3333-3333-333333333333"
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
ID = derived_id(NETWORK, "web")


def made(*, tags: tuple[TagWire, ...] = (), description: str = "", gpus: int = 0, **spec: Any) -> ComputeInstance:
    """Return an instance as the store has it."""
    place: dict[str, Any] = {"organization_id": ORG, "project_id": PROJECT, "network_id": NETWORK}
    wanted = InstanceCreate(
        metadata=MetadataWrite(name="web", description=description, tags=tags),
        spec=InstanceCreateSpec(**place, flavor_id=FLAVOR, image_id=IMAGE, **spec),
    )
    instance = new_instance(wanted, REGION, ANN, operation="op", gpus=gpus)
    return replace(instance, metadata=replace(instance.metadata, uid="uid-1", creation_timestamp=NOW, generation=1))


def test_c01_m07_an_instance_is_named_after_network_and_name_and_so_is_its_server() -> None:
    instance = made()
    assert (instance.name, instance.spec.server_id, instance.spec.operation) == (ID, ID, "op")
    assert instance.metadata.finalizers == (CONTROLLER_FINALIZER,)
    assert instance.metadata.labels == {
        NAME: "web",
        ORGANIZATION: ORG,
        PROJECT_LABEL: PROJECT,
        PAYING_ORGANIZATION: ORG,
        PAYING_PROJECT: PROJECT,
        REGION_LABEL: REGION,
        NETWORK_LABEL: NETWORK,
    }


def test_what_was_sent_is_read_and_networking_is_always_there() -> None:
    read = msgspec.to_builtins(read_instance(made()))
    assert read["spec"] == {"flavorId": FLAVOR, "imageId": IMAGE, "networking": {}}
    assert read["status"] == {"regionId": REGION, "networkId": NETWORK}
    networking = InstanceNetworkingWire(
        security_groups=(GROUP, GROUP), public_ip=False, allowed_source_addresses=("10.1.2.3/24", "10.1.2.0/24")
    )
    full = made(
        networking=networking,
        user_data=USER_DATA,
        ssh_certificate_authority_id=GROUP,
        protection=ProtectionWire(deletion=True),
    )
    assert msgspec.to_builtins(read_instance(full))["spec"] == {
        "flavorId": FLAVOR,
        "imageId": IMAGE,
        "networking": {
            "securityGroups": (GROUP, GROUP),
            "publicIP": False,
            "allowedSourceAddresses": ("10.1.2.3/24", "10.1.2.0/24"),
        },
        "sshCertificateAuthorityId": GROUP,
        "userData": USER_DATA,
        "protection": {"deletion": True, "plan": False},
    }


def test_m11_a_server_is_asked_for_in_the_words_that_region_reads_it_back_in() -> None:
    networking = InstanceNetworkingWire(
        security_groups=(GROUP, OTHER_GROUP, GROUP), allowed_source_addresses=("10.1.2.3/24", "10.1.2.0/24", "10.9.9.9")
    )
    instance = made(
        networking=networking, user_data=USER_DATA, description="mine", tags=(TagWire(name="a", value="b"),)
    )
    server = desired_server(instance)
    assert server.spec.networking == ServerNetworking(
        security_groups=(GROUP, OTHER_GROUP), allowed_source_addresses=("10.1.2.0/24", "10.9.9.9/32")
    )
    assert (server.spec.user_data, server.metadata.description) == (USER_DATA, "mine")
    assert server.metadata.tags == (
        TagWire(name="compute.unikorn-cloud.org/instance-id", value=ID),
        TagWire(name="compute.unikorn-cloud.org/instance-uid", value="uid-1"),
    )


def test_a_change_replaces_what_is_said_and_leaves_protection_that_is_not() -> None:
    before = made(user_data=USER_DATA, protection=ProtectionWire(plan=True), description="old", gpus=1)
    spec = InstanceSpecWire(flavor_id=GROUP, image_id=IMAGE, networking=InstanceNetworkingWire(public_ip=True))
    wanted = InstanceUpdate(metadata=MetadataWrite(name="web"), spec=spec)
    after = changed_instance(before, wanted, ANN, NOW, gpus=4)
    assert (after.spec.flavor_id, after.spec.gpus, after.spec.user_data) == (GROUP, 4, None)
    assert after.spec.networking.public_ip is True
    assert after.spec.protection == Protection(plan=True)
    assert (after.spec.operation, after.spec.server_id, after.name) == ("op", ID, ID)
    assert DESCRIPTION not in after.metadata.annotations
    lifted = replace(wanted, spec=replace(spec, protection=ProtectionWire()))
    assert changed_instance(before, lifted, ANN, NOW, gpus=4).spec.protection == Protection()


def test_what_is_read_can_be_sent_back_and_changes_nothing() -> None:
    before = made(networking=InstanceNetworkingWire(public_ip=True), user_data=USER_DATA, gpus=2)
    after = changed_instance(before, writable_instance(before), ANN, NOW, gpus=2)
    assert after.spec == before.spec


@pytest.mark.parametrize("name", ["compute.unikorn-cloud.org/instance-id", "compute.unikorn-cloud.org:instance-id"])
def test_reserved_tags_are_refused_from_everybody_else(name: str) -> None:
    with pytest.raises(Invalid, match="only a service may set"):
        made(tags=(TagWire(name=name, value="x"),))
