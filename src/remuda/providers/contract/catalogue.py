"""What a provider offers: flavors, images and external networks."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

Architecture = Literal["x86_64", "aarch64"]
"""What a processor understands."""
Virtualization = Literal["virtualized", "baremetal", "any"]
"""What an image runs on."""
Vendor = Literal["NVIDIA", "AMD"]
"""Who makes a GPU."""
ImageState = Literal["pending", "creating", "ready", "failed"]
"""How far an image is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """The GPUs of a flavor."""

    vendor: Vendor
    model: str
    memory_bytes: int
    """Of one logical GPU."""
    physical_count: int
    logical_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Flavor:
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
    """A server of it says on which piece of infrastructure it goes."""
    gpu: Gpu | None = None
    free: int | None = None
    """So many more fit now; None if the provider does not tell."""


class Catalogue(Protocol):
    """Offers flavors. Every provider does."""

    async def flavors(self) -> Sequence[Flavor]:
        """Return what is offered now."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalNetwork:
    """A network that leads out."""

    id: str
    name: str


class ExternalNetworks(Protocol):
    """Offers ways out."""

    async def external_networks(self) -> Sequence[ExternalNetwork]:
        """Return what is offered now."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatingSystem:
    """What is on an image."""

    kernel: Literal["linux"] = "linux"
    family: str
    distro: str
    version: str
    variant: str = ""
    codename: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageGpu:
    """The GPUs that an image has drivers for."""

    vendor: Vendor
    driver: str
    models: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NewImage:
    """What an image is to be."""

    id: str
    """Ours to choose: a provider that gives its own ids keeps this one as a property and finds the image by it."""
    name: str
    architecture: Architecture
    virtualization: Virtualization
    os: OperatingSystem
    software_versions: Mapping[str, str] = field(default_factory=dict)
    gpu: ImageGpu | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    organization: str = ""
    """Who owns it; nobody owns what everybody may use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Image(NewImage):
    """An image as the provider has it."""

    size_gib: int
    state: ImageState
    created: datetime


class Images(Protocol):
    """Keeps images."""

    async def images(self) -> Sequence[Image]:
        """Return all images, in whatever state."""
        ...

    async def find_image(self, image: str) -> Image | None:
        """Return one image."""
        ...

    async def create_image(self, wanted: NewImage, content: AsyncIterator[bytes]) -> Image:
        """Make an image of these bytes, or raise AlreadyExists. If the content breaks off, no image is left.

        Refused if there is no content.
        """
        ...

    async def remove_image(self, image: str) -> None:
        """Remove an image, or raise InUse; one that is not there is fine. NotFound if it is not ours to remove."""
        ...
