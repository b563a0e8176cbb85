"""Flavors, images and regions as region offers them, for what validates them without asking region."""

from datetime import UTC, datetime
from typing import Any

from remuda.resources.schema import (
    FlavorRead,
    FlavorSpecWire,
    GpuWire,
    ImageOsWire,
    ImageRead,
    ImageSpecRead,
    ImageStatusRead,
    MetadataRead,
    RegionFeatures,
    RegionRead,
    RegionSpecWire,
    StaticMetadataRead,
)

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
L4 = GpuWire(vendor="NVIDIA", model="L4", memory=16, physical_count=2, logical_count=8)


def flavor(name: str = "flavor", **spec: Any) -> FlavorRead:
    """Return a flavor whose id is its name."""
    fields: dict[str, Any] = {"cpus": 4, "memory": 8, "disk": 107, "architecture": "x86_64"} | spec
    metadata = StaticMetadataRead(id=name, name=name, creation_time=NOW)
    return FlavorRead(metadata=metadata, spec=FlavorSpecWire(**fields))


def image(name: str = "image", *, state: Any = "ready", **spec: Any) -> ImageRead:
    """Return an image whose id is its name."""
    system = ImageOsWire(kernel="linux", family="debian", distro="debian", version="12")
    fields: dict[str, Any] = {"architecture": "x86_64", "size_gib": 20, "virtualization": "any", "os": system} | spec
    metadata = StaticMetadataRead(id=name, name=name, creation_time=NOW)
    return ImageRead(metadata=metadata, spec=ImageSpecRead(**fields), status=ImageStatusRead(state=state))


def region(name: str, provider: Any) -> RegionRead:
    """Return a region whose id is its name."""
    metadata = MetadataRead(
        id=name, name=name, creation_time=NOW, provisioning_status="provisioned", health_status="healthy"
    )
    features = RegionFeatures(physical_networks=False, capabilities=())
    return RegionRead(metadata=metadata, spec=RegionSpecWire(type=provider, features=features))
