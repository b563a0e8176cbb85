"""What an operator has said about an object that its controller cannot bring on by itself.

It is said in annotations, so that it reaches the controller as an event, in whichever process that is, and stays.

The API groups that region's kinds belong to.

Sizes. Stored ones are bytes, as whole numbers; people speak of GiB.

What several kinds of region have in common.

Machines as a region's operator describes them. Memory and disk are bytes.
"""

from typing import Literal

from remuda.store.objects import Resource, StoredStruct

UNIKORN_GROUP = "region.unikorn-cloud.org"
"""Kinds that existing clusters have too."""
REMUDA_GROUP = "region.remuda"
"""Kinds that only we have."""
VERSION = "v1alpha1"
"""The version of all of them."""


GIB = 1 << 30
"""Bytes of one GiB."""


def gib_of(size: int) -> int:
    """Return how many whole GiB there are in so many bytes."""
    return size // GIB


RETRIED = "remuda/retried"
"""The annotation whose every change has a controller look at once; its value is the operation that asked for it."""
ABANDONED = "remuda/abandoned"
"""The annotation by which an object goes without what it has at its provider; its value is why."""
ABANDONED_EVENT = "Abandoned"
"""What the timeline of such an object calls it."""


def is_abandoned(resource: Resource) -> bool:
    """Tell whether what an object has at its provider is left there when the object goes."""
    return ABANDONED in resource.metadata.annotations


ProviderType = Literal["openstack", "kubernetes", "simulated"]
"""What sort of cloud something is on."""

PartStatus = Literal["Provisioning", "Provisioned", "Errored", "Deprovisioning"]
"""How far one part of a larger thing is."""


class IpRange(StoredStruct, frozen=True, rename={"start_ip": "startIP", "end_ip": "endIP"}):
    """IPv4 addresses in a row, both ends included."""

    start_ip: str
    end_ip: str


Architecture = Literal["x86_64", "aarch64"]
"""Which instructions a processor knows."""

GpuVendor = Literal["NVIDIA", "AMD"]
"""Who makes a GPU."""


class Cpu(StoredStruct, frozen=True):
    """Processors. What is left out is as the cloud says."""

    architecture: Architecture | None = None
    count: int | None = None
    family: str = ""


class Gpu(StoredStruct, frozen=True):
    """GPUs."""

    vendor: GpuVendor
    model: str
    physical_count: int
    logical_count: int
    memory: int
    """Of each logical one."""
