"""Image imports as they are stored: the source of an image, and its progress to the provider.

The object has the id of the image, which is sent to the provider, so a lost response cannot create a second image.
Labels name region and organization.
"""

from collections.abc import Mapping
from typing import Literal

from remuda.kernel.secrets import Secret
from remuda.kernel.tags import Tag
from remuda.region.kinds.common import REMUDA_GROUP, VERSION, Architecture, GpuVendor
from remuda.resources.conventions import ORGANIZATION, LifecycleStatus
from remuda.store.kinds import Kind
from remuda.store.objects import Resource, StoredStruct

ImageState = Literal["pending", "creating", "ready", "failed"]

Virtualization = Literal["virtualized", "baremetal", "any"]


class ImageOs(StoredStruct, frozen=True):
    """Operating system of an image."""

    kernel: str
    family: str
    distro: str
    version: str
    variant: str = ""
    codename: str = ""


class ImageGpu(StoredStruct, frozen=True):
    """GPUs that an image has a driver for."""

    vendor: GpuVendor
    driver: str
    models: tuple[str, ...] = ()


class ImageImportSpec(StoredStruct, frozen=True):
    """Source and properties of an image."""

    uri: Secret
    """Sealed, since such addresses often have a signature or a password."""
    architecture: Architecture
    virtualization: Virtualization
    os: ImageOs
    software_versions: Mapping[str, str] = {}
    gpu: ImageGpu | None = None
    pause: bool = False
    tags: tuple[Tag, ...] = ()


class ImageImportStatus(LifecycleStatus, frozen=True):
    """Observed progress of an import."""

    state: ImageState = "pending"
    received: int = 0
    size: int | None = None
    """Bytes in all; None until that is known."""
    sha256: str = ""
    """Hex digest of all bytes."""
    failures: int = 0


class ImageImport(Resource, frozen=True):
    """Image that is being imported."""

    spec: ImageImportSpec
    status: ImageImportStatus = ImageImportStatus()


IMAGE_IMPORT = Kind(
    type=ImageImport,
    group=REMUDA_GROUP,
    version=VERSION,
    plural="imageimports",
    counted_in=ORGANIZATION,
    columns={"State": ".status.state", "Received": ".status.received", "Size": ".status.size"},
)
