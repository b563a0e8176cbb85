"""API groups, annotations and types that several kinds of region use."""

from typing import Literal

from remuda.store.objects import Resource, StoredStruct

UNIKORN_GROUP = "region.unikorn-cloud.org"
"""Group of kinds that existing clusters have too."""
REMUDA_GROUP = "region.remuda"
VERSION = "v1alpha1"


GIB = 1 << 30


def gib_of(size: int) -> int:
    return size // GIB


RETRIED = "remuda/retried"
"""Annotation by which an operator requests a reconcile; its value is the operation of the request."""
ABANDONED = "remuda/abandoned"
"""Annotation of an object that is deleted without its resources at the provider; its value is the reason."""
ABANDONED_EVENT = "Abandoned"


def is_abandoned(resource: Resource) -> bool:
    """Return whether the resources of an object stay at the provider when the object is deleted."""
    return ABANDONED in resource.metadata.annotations


PartStatus = Literal["Provisioning", "Provisioned", "Errored", "Deprovisioning"]


class IpRange(StoredStruct, frozen=True, rename={"start_ip": "startIP", "end_ip": "endIP"}):
    """Range of IPv4 addresses, both ends included."""

    start_ip: str
    end_ip: str


Architecture = Literal["x86_64", "aarch64"]

GpuVendor = Literal["NVIDIA", "AMD"]


class Cpu(StoredStruct, frozen=True):
    """Processors of a machine; a field that is left out is as the provider reports it."""

    architecture: Architecture | None = None
    count: int | None = None
    family: str = ""


class Gpu(StoredStruct, frozen=True):
    """GPUs of a machine."""

    vendor: GpuVendor
    model: str
    physical_count: int
    logical_count: int
    memory: int
    """Bytes of each logical GPU."""
