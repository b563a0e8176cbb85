"""Machines as a region's operator describes them. Memory and disk are bytes."""

from typing import Literal

from remuda.store.objects import StoredStruct

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
