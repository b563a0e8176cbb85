"""Images as Glance describes them, and the properties that make one of them an image of a region.

The names of the properties are those of the reference system, so that images that were published for it are offered.
"""

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any, cast, get_args

import msgspec

from remuda.providers.contract.catalogue import CloudImage, CloudImageGpu, CloudImageSpec, CloudOperatingSystem
from remuda.providers.contract.common import Architecture, ImageState, Vendor, Virtualization

OUR_ID = "remuda:id"
"""Property with our id of an image that we created: Glance never gives an id twice, and we may need one again."""
DOMAIN = "remuda:domain"
"""Property with the domain of the region that created an image, since all projects of a cloud see such images."""
ORGANIZATION = "unikorn:organization:id"

_OS, _TAG, _PACKAGE = "unikorn:os:", "unikorn:tag:", "unikorn:package:"
_VIRTUALIZATION = "unikorn:virtualization"
_GPU_VENDOR, _GPU_MODELS, _GPU_DRIVER = "unikorn:gpu_vendor", "unikorn:gpu_models", "unikorn:gpu_driver_version"
_REQUIRED = (f"{_OS}kernel", f"{_OS}family", f"{_OS}distro", f"{_OS}version", _VIRTUALIZATION)
_STATES: Mapping[str, ImageState] = {
    "queued": "pending",
    "saving": "creating",
    "importing": "creating",
    "uploading": "creating",
    "active": "ready",
}
_GIB = 1 << 30
_MACHINES: Mapping[Architecture, str] = {"x86_64": "q35", "aarch64": "virt"}


class GlanceImage(msgspec.Struct, frozen=True):
    """Part of an image that every image has."""

    id: str
    name: str | None
    status: str
    created_at: datetime
    owner: str | None = None
    min_disk: int = 0
    size: int | None = None
    virtual_size: int | None = None
    architecture: str = "x86_64"


def image_of(document: Mapping[str, Any]) -> CloudImage | None:
    """Return an image of Glance, or None if it has not the properties of one that is offered."""
    try:
        record = msgspec.convert(document, GlanceImage)
    except msgspec.ValidationError:  # one image that is described wrongly does not hide the others
        return None
    if any(not isinstance(document.get(name), str) for name in _REQUIRED):
        return None
    is_linux = document[f"{_OS}kernel"] == "linux"
    virtualization, architecture = document[_VIRTUALIZATION], record.architecture
    if not is_linux or virtualization not in get_args(Virtualization) or architecture not in get_args(Architecture):
        return None
    return CloudImage(
        id=str(document.get(OUR_ID, record.id)),
        name=record.name or record.id,
        architecture=cast("Architecture", architecture),
        virtualization=cast("Virtualization", virtualization),
        os=CloudOperatingSystem(
            family=document[f"{_OS}family"],
            distro=document[f"{_OS}distro"],
            version=document[f"{_OS}version"],
            variant=str(document.get(f"{_OS}variant", "")),
            codename=str(document.get(f"{_OS}codename", "")),
        ),
        software_versions=_with_prefix(document, _PACKAGE),
        gpu=_gpu(document),
        tags=_with_prefix(document, _TAG),
        organization=str(document.get(ORGANIZATION, "")),
        size_gib=record.min_disk or max(1, math.ceil((record.virtual_size or record.size or 0) / _GIB)),
        state=_STATES.get(record.status, "failed"),
        created=record.created_at,
    )


def properties_of(desired: CloudImageSpec) -> dict[str, str]:
    """Return the properties of an image that we create."""
    os = desired.os
    properties = {
        OUR_ID: desired.id,
        "architecture": desired.architecture,
        _VIRTUALIZATION: desired.virtualization,
        f"{_OS}kernel": os.kernel,
        f"{_OS}family": os.family,
        f"{_OS}distro": os.distro,
        f"{_OS}version": os.version,
        f"{_OS}variant": os.variant,
        f"{_OS}codename": os.codename,
        ORGANIZATION: desired.organization,
        "hw_disk_bus": "scsi",
        "hw_scsi_model": "virtio-scsi",
        "hw_firmware_type": "uefi",
        "hw_machine_type": _MACHINES[desired.architecture],
        **{f"{_PACKAGE}{name}": version for name, version in desired.software_versions.items()},
        **{f"{_TAG}{name}": value for name, value in desired.tags.items()},
    }
    if desired.gpu is not None:
        properties |= {
            _GPU_VENDOR: desired.gpu.vendor,
            _GPU_DRIVER: desired.gpu.driver,
            _GPU_MODELS: ",".join(desired.gpu.models),
        }
    return {name: value for name, value in properties.items() if value}


def _with_prefix(document: Mapping[str, Any], prefix: str) -> dict[str, str]:
    return {name.removeprefix(prefix): str(value) for name, value in document.items() if name.startswith(prefix)}


def _gpu(document: Mapping[str, Any]) -> CloudImageGpu | None:
    vendor = document.get(_GPU_VENDOR)
    if vendor not in get_args(Vendor):
        return None
    models = tuple(each for each in str(document.get(_GPU_MODELS, "")).split(",") if each)
    return CloudImageGpu(vendor=cast("Vendor", vendor), driver=str(document.get(_GPU_DRIVER, "")), models=models)
