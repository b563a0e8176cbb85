"""Volumes as existing clusters store them. No API makes one yet. Sizes are bytes."""

from typing import Literal

import msgspec

from remuda.kernel.tags import Tag
from remuda.region.kinds.api_groups import SHARED, VERSION
from remuda.resources.conventions import LifecycleStatus
from remuda.store.kinds import Kind
from remuda.store.objects import Resource, StoredStruct


class Claim(StoredStruct, frozen=True):
    """Who wants a volume for itself."""

    kind: Literal["Server"]
    id: str


class VolumeSpec(StoredStruct, frozen=True):
    """What is wanted of a volume."""

    network_id: str = msgspec.field(name="networkID")
    volume_class_id: str = msgspec.field(name="volumeClassID")
    size: int
    claim_ref: Claim | None = None
    pause: bool = False
    tags: tuple[Tag, ...] = ()


class VolumeStatus(LifecycleStatus, frozen=True):
    """What is known of a volume."""

    size: int | None = None


class Volume(Resource, frozen=True):
    """A volume."""

    spec: VolumeSpec
    status: VolumeStatus = VolumeStatus()


VOLUME = Kind(
    type=Volume,
    group=SHARED,
    version=VERSION,
    plural="volumes",
    columns={"Network": ".spec.networkID", "Size": ".spec.size"},
)
"""Volumes."""
