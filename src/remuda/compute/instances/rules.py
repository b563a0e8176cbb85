"""Rules of instances, as pure functions: validation, stored objects, the desired server, quota, views.

`desired_server` has the form in which region reads a server back, so the two can be compared.

While the server has other GPUs than the instance asks for, the larger number is charged. Surplus quota is released when
the server is observed without them: first the condition is stored, then the ledger is changed, with a fencing token, so
that an increase in between is not undone.
"""

import dataclasses
from collections.abc import Mapping
from datetime import datetime
from ipaddress import IPv4Network
from typing import Any

import msgspec
from msgspec.structs import replace

from remuda.access.principal import Principal
from remuda.compute.instances.schema import (
    InstanceCreate,
    InstanceNetworkingWire,
    InstanceRead,
    InstanceSpecWire,
    InstanceStatusRead,
    InstanceUpdate,
    ProtectionWire,
)
from remuda.compute.kinds import (
    INSTANCE,
    AppliedSpec,
    ComputeInstance,
    InstanceNetworking,
    InstanceSpec,
    PowerState,
    Protection,
)
from remuda.compute.names import INCARNATION, INSTANCE_TAG, RESERVED, permission
from remuda.compute.plans.diff import changed_fields
from remuda.http.responses import GuardedView, etag_view
from remuda.kernel.clock import Clock
from remuda.kernel.conditions import Condition, find_condition, set_condition
from remuda.kernel.fields import common_fields, conversion
from remuda.kernel.ids import derived_id
from remuda.kernel.secrets import Secret
from remuda.quota.lifecycle import QUOTA_CONFIRMED, payer_of
from remuda.quota.lock import fencing_token
from remuda.quota.ports import Charge, ProjectRef, new_charge
from remuda.reconcile.lifecycle import Outcome, is_paused
from remuda.reconcile.results import Done, Requeue
from remuda.region.servers.schema import ServerCreate, ServerCreateSpec, ServerRead, ServerSpecWire
from remuda.region.servers.schema import ServerNetworkingWire as ServerNetworking
from remuda.resources.conventions import (
    CONTROLLER_FINALIZER,
    DESCRIPTION,
    NAME,
    NETWORK,
    ORGANIZATION,
    PROJECT,
    REGION,
    network_of,
    region_of,
)
from remuda.resources.crud import each_once
from remuda.resources.metadata import (
    changed_metadata,
    new_metadata,
    new_tags,
    provisioning_status,
    read_project_metadata,
    updated_tags,
    writable_metadata,
)
from remuda.resources.query import is_allowed_for
from remuda.resources.schema import MetadataWrite, TagWire

SCOPE = (ORGANIZATION, PROJECT, REGION, NETWORK, NAME)

_CONVERTED = ("networking", "ssh_certificate_authority_id", "user_data")
"""The fields that are stored in another form than they are sent; all others of the same name are copied."""
_copied = common_fields(InstanceSpecWire, InstanceSpec, without=(*_CONVERTED, "protection"))
_desired = common_fields(InstanceSpec, ServerCreateSpec, without=_CONVERTED)
_requested = common_fields(ServerSpecWire, ServerCreateSpec, without=("networking",))
_disruptive = common_fields(InstanceSpec, AppliedSpec, without=("gpus",))
"""The fields that change only with a rebuild or replacement of the server."""


def instance_id(network: str, name: str) -> str:
    """Return the id of the instance with this name on a network, and of its server."""
    return derived_id(network, name)


def has_scope(instance: ComputeInstance) -> bool:
    """Return whether an instance has the labels of its scope. One without them is hidden until it is repaired."""
    return all(map(instance.metadata.labels.get, SCOPE))


def build_charge(
    instance: str, operation: str, payer: ProjectRef, *, gpus: int, is_public: bool, token: int = 0
) -> Charge:
    amounts = {"servers": 1, "gpus": gpus, "floatingips": int(is_public)}
    return new_charge(INSTANCE, instance, operation, payer, amounts, fencing_token=token)


def new_instance(body: InstanceCreate, region: str, by: Principal, *, operation: str, gpus: int) -> ComputeInstance:
    spec, network = body.spec, body.spec.network_id
    where = {ORGANIZATION: spec.organization_id, PROJECT: spec.project_id, REGION: region, NETWORK: network}
    name = instance_id(network, body.metadata.name)
    return ComputeInstance(
        metadata=new_metadata(name, body.metadata, by, labels=where, finalizers=(CONTROLLER_FINALIZER,)),
        spec=InstanceSpec(
            **_client_fields(spec),
            protection=_stored_protection(spec.protection, Protection()),
            server_id=name,
            gpus=gpus,
            operation=operation,
            tags=new_tags(body.metadata, by),
        ),
    )


def changed_instance(
    instance: ComputeInstance, body: InstanceUpdate, by: Principal, now: datetime, *, gpus: int
) -> ComputeInstance:
    """Return an instance with everything replaced that a client may change; `gpus` are those of the new flavor."""
    before, spec = instance.spec, body.spec
    return replace(
        instance,
        metadata=changed_metadata(instance.metadata, body.metadata, by, now),
        spec=replace(
            before,
            **_client_fields(spec),
            protection=_stored_protection(spec.protection, before.protection),
            gpus=gpus,
            tags=updated_tags(before.tags, body.metadata, by),
        ),
    )


def rebuilt_instance(
    instance: ComputeInstance, by: Principal, now: datetime, *, operation: str, known: int
) -> ComputeInstance:
    """Return an instance with one more rebuild requested than it or its server has counted; `known` is the latter."""
    metadata = writable_metadata(instance.metadata, instance.spec.tags)
    return replace(
        instance,
        metadata=changed_metadata(instance.metadata, metadata, by, now),
        spec=replace(instance.spec, rebuilds=max(instance.spec.rebuilds, known) + 1, rebuilding_operation=operation),
    )


def _client_fields(spec: InstanceSpecWire) -> dict[str, Any]:
    return {
        **_copied(spec),
        "networking": _stored_networking(spec.networking or InstanceNetworkingWire()),
        "ssh_certificate_authority_id": spec.ssh_certificate_authority_id or "",
        "user_data": Secret(spec.user_data) if spec.user_data else None,
    }


def _stored_networking(body: InstanceNetworkingWire) -> InstanceNetworking:
    return InstanceNetworking(
        security_group_ids=body.security_groups,
        public_ip=body.public_ip,
        allowed_source_addresses=body.allowed_source_addresses,
    )


def _stored_protection(body: ProtectionWire | None, before: Protection) -> Protection:
    return before if body is None else Protection(deletion=body.deletion, plan=body.plan)


def desired_server(instance: ComputeInstance) -> ServerCreate:
    """Return the server that a stored instance asks for, in the form in which region reads it back."""
    spec, networking, found = instance.spec, instance.spec.networking, instance.metadata.labels
    sources = each_once(source_prefix(each) or each for each in networking.allowed_source_addresses)
    return ServerCreate(
        metadata=MetadataWrite(
            name=found.get(NAME, ""),
            description=instance.metadata.annotations.get(DESCRIPTION) or msgspec.UNSET,
            tags=tuple(TagWire(name=name, value=value) for name, value in sorted(_ownership(instance).items())),
        ),
        spec=ServerCreateSpec(
            **_desired(spec),
            network_id=found.get(NETWORK, ""),
            networking=ServerNetworking(
                security_groups=each_once(networking.security_group_ids),
                public_ip=spec.wants_public_ip,
                allowed_source_addresses=sources,
            ),
            user_data="" if spec.user_data is None else spec.user_data.reveal(),
            ssh_certificate_authority_id=spec.ssh_certificate_authority_id or None,
        ),
    )


def last_requested(server: ServerRead) -> ServerCreate:
    """Return the specification that compute last requested of a server, as region returns it.

    It is compared with the desired one, to find the changes that region was not asked for yet: a field that is missing
    here would be requested again and again. Tags of other services are left out.
    """
    metadata, spec, status = server.metadata, server.spec, server.status
    tags = [tag for tag in metadata.tags if tag.name.startswith(RESERVED)]
    return ServerCreate(
        metadata=MetadataWrite(
            name=metadata.name,
            description=metadata.description or msgspec.UNSET,
            tags=tuple(sorted(tags, key=lambda tag: (tag.name, tag.value))),
        ),
        spec=ServerCreateSpec(
            **_requested(spec),
            network_id=status.network_id,
            networking=spec.networking or ServerNetworking(),
            ssh_certificate_authority_id=status.ssh_certificate_authority_id or None,
        ),
    )


def is_requested(instance: ComputeInstance, server: ServerRead) -> bool:
    """Return whether the last request for a server was for what its instance asks for now."""
    return not changed_fields(last_requested(server), desired_server(instance))


def instance_of(server: ServerRead) -> str:
    """Return the id of the instance that a server is tagged with, or an empty string."""
    return _tag(server, INSTANCE_TAG)


def incarnation_of(server: ServerRead) -> str:
    """Return the uid of the instance that a server is tagged with, or an empty string."""
    return _tag(server, INCARNATION)


def _tag(server: ServerRead, name: str) -> str:
    return next((tag.value for tag in server.metadata.tags if tag.name == name), "")


def reason_of(server: ServerRead) -> str:
    """Return the reason of a server's provisioning status, or an empty string."""
    detail = server.metadata.provisioning_status_detail
    return "" if detail is None else detail.reason


def message_of(server: ServerRead) -> str:
    """Return the message of a server's provisioning status, or an empty string."""
    detail = server.metadata.provisioning_status_detail
    return "" if detail is None else detail.message


def source_prefix(text: str) -> str | None:
    """Return a prefix in the form in which region reads it back, or None if it is not one."""
    try:
        return str(IPv4Network(text, strict=False))
    except ValueError:
        return None


def _ownership(instance: ComputeInstance) -> Mapping[str, str]:
    return {INSTANCE_TAG: instance.name, INCARNATION: instance.uid}


def writable_instance(instance: ComputeInstance) -> InstanceUpdate:
    """Return what a client may change of an instance, as it is now."""
    return InstanceUpdate(
        metadata=writable_metadata(instance.metadata, instance.spec.tags), spec=_read_spec(instance.spec)
    )


def _read_networking(networking: InstanceNetworking) -> InstanceNetworkingWire:
    return InstanceNetworkingWire(
        security_groups=networking.security_group_ids,
        public_ip=networking.public_ip,
        allowed_source_addresses=networking.allowed_source_addresses,
    )


def _read_protection(protection: Protection) -> ProtectionWire | None:
    if protection == Protection():
        return None
    return ProtectionWire(deletion=protection.deletion, plan=protection.plan)


_read_spec = conversion(
    InstanceSpec,
    InstanceSpecWire,
    networking=_read_networking,
    ssh_certificate_authority_id=lambda authority: authority or None,
    user_data=lambda sealed: "" if sealed is None else sealed.reveal(),
    protection=_read_protection,
)


def needs_rebuild(instance: ComputeInstance) -> bool:
    """Return whether the spec differs from the applied one in a way that needs a rebuild or replacement."""
    spec, applied = instance.spec, instance.status.applied
    if applied is None:
        return False
    return _disruptive(spec) != _disruptive(applied)


def shown_power(instance: ComputeInstance) -> PowerState | None:
    """Return the power state: `Rebuilding` from the request of a rebuild or replacement on, before it is observed.

    A client that reads once after its request would otherwise keep the state of a server that is about to be replaced.
    """
    status = instance.status
    if status.power_state is None or is_paused(instance) or not needs_rebuild(instance):
        return status.power_state
    is_under_way = provisioning_status(instance.metadata, status.conditions) == "provisioning"
    return "Rebuilding" if is_under_way else status.power_state


def read_instance(instance: ComputeInstance) -> InstanceRead:
    status = instance.status
    return InstanceRead(
        metadata=read_project_metadata(instance.metadata, instance.spec.tags, status.conditions),
        spec=_read_spec(instance.spec),
        status=InstanceStatusRead(
            region_id=region_of(instance),
            network_id=network_of(instance),
            power_state=shown_power(instance),
            private_ip=status.private_ip,
            public_ip=status.public_ip if instance.spec.wants_public_ip else "",
            mac_address=status.mac_address,
            rebuilds=instance.spec.rebuilds,
        ),
    )


class _Rebuilt(msgspec.Struct, frozen=True):
    writable: InstanceUpdate
    rebuilds: int


def _versioned(instance: ComputeInstance) -> msgspec.Struct:
    """Return what the ETag covers: a rebuild changes it, so that If-Match prevents a second one."""
    writable, rebuilds = writable_instance(instance), instance.spec.rebuilds
    return _Rebuilt(writable, rebuilds) if rebuilds else writable


def without_user_data(instance: ComputeInstance) -> ComputeInstance:
    if instance.spec.user_data is None:
        return instance
    return replace(instance, spec=replace(instance.spec, user_data=None))


_UPDATE = permission("instances", "update")

INSTANCE_VIEW = GuardedView(
    etag_view(read_instance, _versioned),
    hidden=without_user_data,
    is_shown=lambda reader, instance: is_allowed_for(reader, _UPDATE, instance),
)
"""Instances. Their user data often has secrets: it is shown to those who may update the instance."""


_SURPLUS = "ReleasingQuota"
_MESSAGE = "unused quota is being released"


def charged_gpus(instance: ComputeInstance) -> int:
    applied = instance.status.applied
    return max(instance.spec.gpus, 0 if applied is None else applied.gpus)


def charge_of(instance: ComputeInstance) -> Charge:
    spec = instance.spec
    return build_charge(
        instance.name,
        spec.operation,
        payer_of(instance),
        gpus=charged_gpus(instance),
        is_public=spec.wants_public_ip,
        token=fencing_token(instance),
    )


def with_surplus(before: ComputeInstance, outcome: Outcome[ComputeInstance], clock: Clock) -> Outcome[ComputeInstance]:
    """Return an outcome whose condition says that quota is to be released, if it shows less than before."""
    if charged_gpus(before) == charged_gpus(outcome.resource):
        return outcome
    condition = Condition(
        type=QUOTA_CONFIRMED,
        status="False",
        reason=_SURPLUS,
        message=_MESSAGE,
        last_transition_time=clock.now().replace(microsecond=0),
    )
    status = outcome.resource.status
    status = msgspec.structs.replace(status, conditions=set_condition(status.conditions, condition))
    result = Requeue(0, message=_MESSAGE) if isinstance(outcome.result, Done) else outcome.result
    return dataclasses.replace(
        outcome, result=result, resource=msgspec.structs.replace(outcome.resource, status=status)
    )


def has_surplus_quota(instance: ComputeInstance) -> bool:
    """Return whether more quota is allocated than an instance uses."""
    condition = find_condition(instance.status.conditions, QUOTA_CONFIRMED)
    return condition is not None and condition.reason == _SURPLUS
