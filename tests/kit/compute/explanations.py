"""Instances in every state that can be known, to be explained."""

from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from remuda.compute.history.explanation import ExplanationInput
from remuda.compute.kinds import ComputeInstance, InstanceSpec, InstanceStatus
from remuda.kernel.conditions import Condition
from remuda.operations.kinds import Operation, OperationSpec, OperationStatus, Phase
from remuda.quota.ports import ProjectRef
from remuda.region.servers.schema import ServerRead
from remuda.resources.conventions import NETWORK, ORGANIZATION, PROJECT, REGION
from remuda.store.objects import Metadata
from tests.kit.compute.region_api import network_read, server_read

NOW = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
SINCE = NOW - timedelta(minutes=5)
PLACE = ProjectRef("acme", "web")
NETWORK_SEEN = network_read()


def said(reason: str, message: str = "why", status: Any = "False", kind: str = "Available") -> Condition:
    return Condition(
        type=kind, status=status, reason=reason, message=message, last_transition_time=SINCE, observed_generation=1
    )


def instance(*conditions: Condition, marked: bool = False, **spec: Any) -> ComputeInstance:
    metadata = Metadata(
        name="one",
        uid="uid-1",
        generation=1,
        labels={ORGANIZATION: "acme", PROJECT: "web", REGION: "north", NETWORK: "net"},
        creation_timestamp=SINCE,
        deletion_timestamp=SINCE if marked else None,
    )
    wanted = InstanceSpec(flavor_id="small", image_id="linux", **spec)
    status = InstanceStatus(conditions=conditions, power_state="Running", has_server=True)
    return ComputeInstance(metadata=metadata, spec=wanted, status=status)


def server(provisioning: str = "provisioned", reason: str = "", message: str = "", **status: Any) -> ServerRead:
    return server_read(provisioning=provisioning, reason=reason, message=message, **status)


def operation(phase: Phase = "running", **status: Any) -> Operation:
    spec = OperationSpec(
        saga="instance.update",
        subject_kind="computeinstances",
        subject="one",
        actor="ann@acme.com",
        input="{}",
        deadline=NOW,
        process="p",
    )
    metadata = Metadata(name="op-1", creation_timestamp=SINCE)
    return Operation(metadata=metadata, spec=spec, status=OperationStatus(phase=phase, **status))


def known(found: ComputeInstance, **more: Any) -> ExplanationInput:
    told: dict[str, Any] = {"servers": [server()], "network": NETWORK_SEEN}
    return ExplanationInput(instance=found, now=NOW, **(told | more))


FINE = said("Provisioned", "provisioned", "True")


def showing(found: ComputeInstance, **status: Any) -> ComputeInstance:
    return replace(found, status=replace(found.status, **status))
