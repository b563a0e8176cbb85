"""Catalogue of a provider: flavors, images and external networks."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

from remuda.providers.contract.common import Architecture, ImageState, Vendor, Virtualization


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudGpu:
    """GPUs of a flavor."""

    vendor: Vendor
    model: str
    memory_bytes: int
    physical_count: int
    logical_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudFlavor:
    """A size of server."""

    id: str
    name: str
    cpus: int
    memory_bytes: int
    disk_bytes: int
    architecture: Architecture = "x86_64"
    cpu_family: str = ""
    is_baremetal: bool = False
    is_pinned_only: bool = False
    """Whether a server of this flavor must name the host that it runs on."""
    gpu: CloudGpu | None = None
    free: int | None = None
    """Remaining capacity, in servers; None if the provider does not report it."""


class CloudCatalogue(Protocol):
    """Capability of offering flavors. Every provider has it."""

    async def flavors(self) -> Sequence[CloudFlavor]:
        """Return the flavors that are offered now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudExternalNetwork:
    """A network that leads to the outside."""

    id: str
    name: str


class CloudExternalNetworks(Protocol):
    """Capability of offering external networks."""

    async def external_networks(self) -> Sequence[CloudExternalNetwork]:
        """Return the external networks that are offered now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudOperatingSystem:
    """Operating system of an image."""

    kernel: Literal["linux"] = "linux"
    family: str
    distro: str
    version: str
    variant: str = ""
    codename: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudImageGpu:
    """GPUs that an image has drivers for."""

    vendor: Vendor
    driver: str
    models: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudImageSpec:
    """Desired image."""

    id: str
    """Chosen by us: a provider that assigns its own ids stores this one as a property and finds the image by it."""
    name: str
    architecture: Architecture
    virtualization: Virtualization
    os: CloudOperatingSystem
    software_versions: Mapping[str, str] = field(default_factory=dict)
    gpu: CloudImageGpu | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    organization: str = ""
    """Owner of the image; empty for a public image."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudImage(CloudImageSpec):
    """An image as the provider reports it."""

    size_gib: int
    state: ImageState
    created: datetime


class CloudImages(Protocol):
    """Capability of managing images."""

    async def images(self) -> Sequence[CloudImage]:
        """Return all images, in any state."""

    async def find_image(self, image: str) -> CloudImage | None:
        """Return an image, or None."""

    async def create_image(self, desired: CloudImageSpec, content: AsyncIterator[bytes]) -> CloudImage:
        """Create an image from bytes, or raise AlreadyExists, or Rejected if empty. A broken stream leaves none."""

    async def remove_image(self, image: str) -> None:
        """Remove an image, or raise InUse; NotFound if it is not ours to remove. A missing image is ignored."""
