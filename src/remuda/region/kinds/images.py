"""Images that we bring to a cloud. The cloud has the image, and we have where it comes from, and how far it is.

The object has the image's id, which the cloud is told, so that a lost answer cannot make a second image. Labels say
for which region and organization it is.
"""

from collections.abc import Mapping
from typing import Literal

from remuda.kernel.secrets import Secret
from remuda.kernel.tags import Tag
from remuda.region.kinds.common import REMUDA_GROUP, VERSION, Architecture, GpuVendor
from remuda.resources.conventions import LifecycleStatus
from remuda.store.kinds import Kind
from remuda.store.objects import Resource, StoredStruct

ImageState = Literal["pending", "creating", "ready", "failed"]
"""How far an image is."""

Virtualization = Literal["virtualized", "baremetal", "any"]
"""What sort of machine an image is for."""


class ImageOs(StoredStruct, frozen=True):
    """What is in an image."""

    kernel: str
    family: str
    distro: str
    version: str
    variant: str = ""
    codename: str = ""


class ImageGpu(StoredStruct, frozen=True):
    """Which GPUs an image has a driver for."""

    vendor: GpuVendor
    driver: str
    models: tuple[str, ...] = ()


class ImageImportSpec(StoredStruct, frozen=True):
    """Where an image comes from, and what it is."""

    uri: Secret
    """Where to fetch it. Sealed, since such addresses often carry a signature or a password."""
    architecture: Architecture
    virtualization: Virtualization
    os: ImageOs
    software_versions: Mapping[str, str] = {}
    gpu: ImageGpu | None = None
    pause: bool = False
    tags: tuple[Tag, ...] = ()


class ImageImportStatus(LifecycleStatus, frozen=True):
    """How far an image is."""

    state: ImageState = "pending"
    received: int = 0
    """How many bytes have come so far."""
    size: int | None = None
    """How many there are; None until that is known."""
    sha256: str = ""
    """Of all of them, in hex: what was checked is what is used."""
    failures: int = 0
    """How often it did not come through."""


class ImageImport(Resource, frozen=True):
    """An image on its way."""

    spec: ImageImportSpec
    status: ImageImportStatus = ImageImportStatus()


IMAGE_IMPORT = Kind(
    type=ImageImport,
    group=REMUDA_GROUP,
    version=VERSION,
    plural="imageimports",
    columns={"State": ".status.state", "Received": ".status.received", "Size": ".status.size"},
)
"""Images on their way, found by their labels."""
