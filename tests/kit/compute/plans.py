"""Instances, flavors and images to make plans of."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import msgspec

from remuda.compute.instances import rules
from remuda.compute.instances.status import REBUILDING
from remuda.compute.instances.updates import subject_of
from remuda.compute.kinds import (
    AppliedSpec,
    ComputeInstance,
    InstanceNetworking,
    InstanceSpec,
    InstanceStatus,
    PowerState,
    Protection,
)
from remuda.compute.plans.fields import PlanSide
from remuda.compute.plans.plan import plan_update, quota_blockers
from remuda.compute.plans.schema import PlanRead
from remuda.kernel.conditions import Condition
from remuda.kernel.secrets import Secret
from remuda.kernel.tags import Tag
from remuda.resources.conventions import DESCRIPTION, NAME
from remuda.resources.schema import (
    FlavorRead,
    FlavorSpecWire,
    GpuWire,
    ImageOsWire,
    ImageRead,
    ImageSpecRead,
    ImageStatusRead,
    StaticMetadataRead,
)
from remuda.store.objects import Metadata

THEN = datetime(2026, 11, 15, tzinfo=UTC)
CAPABILITIES = frozenset({"catalogue", "images", "networks", "ports", "servers"})
CANNOT_KEEP_PORTS = frozenset({"servers"})
structs = msgspec.structs


def flavor(name: str, cpus: int, *, gpus: int = 0, baremetal: bool = False, free: int | None = 7) -> FlavorRead:
    gpu = GpuWire(vendor="NVIDIA", model="H100", memory=80, physical_count=gpus, logical_count=gpus) if gpus else None
    return FlavorRead(
        metadata=StaticMetadataRead(id=f"flavor-{name}", name=name, creation_time=THEN),
        spec=FlavorSpecWire(
            cpus=cpus,
            memory=4 * cpus,
            disk=10 * cpus,
            architecture="x86_64",
            baremetal=baremetal,
            gpu=gpu,
            free=free,
        ),
    )


def image(name: str, version: str) -> ImageRead:
    return ImageRead(
        metadata=StaticMetadataRead(id=f"image-{name}", name=name, creation_time=THEN),
        spec=ImageSpecRead(
            architecture="x86_64",
            size_gib=5,
            virtualization="any",
            os=ImageOsWire(kernel="linux", family="debian", distro="ubuntu", version=version),
        ),
        status=ImageStatusRead(state="ready"),
    )


FLAVORS = {each.metadata.id: each for each in (
    flavor("small", 2), flavor("large", 8), flavor("gpu", 16, gpus=2), flavor("metal", 32, baremetal=True)
)}  # fmt: skip
IMAGES = {each.metadata.id: each for each in (image("noble", "24.04"), image("jammy", "22.04"))}

BEFORE = ComputeInstance(
    metadata=Metadata(
        name="11111111-1111-4111-8111-111111111111",
        uid="22222222-2222-4222-8222-222222222222",
        labels={NAME: "web-1"},
        annotations={DESCRIPTION: "the shop"},
        creation_timestamp=THEN,
    ),
    spec=InstanceSpec(
        flavor_id="flavor-small",
        image_id="image-jammy",
        networking=InstanceNetworking(security_group_ids=("group-a",), public_ip=True),
        user_data=Secret("I2Nsb3VkLWNvbmZpZwo="),
        tags=(Tag("tier", "web"),),
    ),
    status=InstanceStatus(private_ip="192.168.0.7", public_ip="203.0.113.9", mac_address="fa:16:3e:00:00:07"),
)


def as_it_is(*conditions: Condition, power: PowerState, applied: AppliedSpec | None = None) -> ComputeInstance:
    """Return the instance in a state that is known of it."""
    status = structs.replace(BEFORE.status, power_state=power, conditions=conditions, applied=applied)
    return structs.replace(BEFORE, status=status)


STOPPED = as_it_is(power="Stopped")
BROKEN = as_it_is(power="Error")
REPLACED = as_it_is(
    Condition(
        type=REBUILDING,
        status="True",
        reason="Replacing",
        message="the server is being replaced: asked for",
        last_transition_time=THEN,
    ),
    power="Rebuilding",
)
"""Its server is being replaced."""
TO_BE_REPLACED = structs.replace(
    as_it_is(
        Condition(
            type="Available",
            status="True",
            reason="Provisioned",
            message="provisioned",
            last_transition_time=THEN,
            observed_generation=1,
        ),
        power="Running",
        applied=AppliedSpec("flavor-large", "image-jammy"),
    ),
    metadata=structs.replace(BEFORE.metadata, generation=2),
)
"""Another flavor was asked for, and its controller has not looked at that yet."""


def changed(instance: ComputeInstance = BEFORE, *, description: str | None = None, **spec: Any) -> ComputeInstance:
    """Return an instance of which something else is wanted; `networking` is told field by field."""
    networking = structs.replace(instance.spec.networking, **spec.pop("networking", {}))
    flavor_id = spec.get("flavor_id", instance.spec.flavor_id)
    spec = {"networking": networking, "gpus": gpus_of(flavor_id), **spec}
    annotations = dict(instance.metadata.annotations)
    if description is not None:
        annotations[DESCRIPTION] = description
    metadata = structs.replace(instance.metadata, annotations=annotations)
    return structs.replace(instance, metadata=metadata, spec=structs.replace(instance.spec, **spec))


def gpus_of(flavor_id: str) -> int:
    gpu = FLAVORS[flavor_id].spec.gpu if flavor_id in FLAVORS else None
    return 0 if gpu is None else gpu.physical_count


def side_of(instance: ComputeInstance, **otherwise: Any) -> PlanSide:
    spec = instance.spec
    side = PlanSide(
        server=rules.desired_server(instance),
        writable=rules.writable_instance(instance),
        protection=spec.protection,
        tags=tuple((tag.name, tag.value) for tag in spec.tags),
        rebuilds=spec.rebuilds,
        gpus=spec.gpus,
        flavor=FLAVORS.get(spec.flavor_id),
        image=IMAGES.get(spec.image_id),
    )
    return replace(side, **otherwise)


def plan_of(
    after: ComputeInstance,
    before: ComputeInstance = BEFORE,
    capabilities: frozenset[str] = CAPABILITIES,
    free: Mapping[str, int] | None = None,
    *,
    takes_images: bool = True,
) -> PlanRead:
    plan = plan_update(subject_of(before), side_of(before), side_of(after), capabilities, can_rebuild=takes_images)
    return plan if free is None else structs.replace(plan, blockers=tuple(quota_blockers(plan.quota, free)))


PROTECTED = Protection(deletion=True, plan=True)
