"""File storage at a provider."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from remuda.providers.contract.common import Handle
from remuda.providers.contract.networks import CloudAddressRange


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudStorageClass:
    """A class of file storage that a provider offers."""

    id: str
    name: str
    protocols: tuple[Literal["nfsv3", "nfsv4"], ...]
    parallelism: int = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudAttachment:
    """A network from which a storage is reachable, and the addresses that the storage has on it."""

    network: Handle
    addresses: CloudAddressRange
    vlan: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudSnapshotPolicy:
    """Schedule and retention of snapshots."""

    name: str
    interval: Literal["hourly", "daily", "weekly", "monthly"]
    keep: int
    time_of_day: str = ""
    day_of_week: str = ""
    day_of_month: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudFileStorageSpec:
    """Desired file storage. It belongs to a project and not to a tenancy: its handle's tenancy is empty."""

    handle: Handle
    storage_class: str
    size_bytes: int
    has_root_squash: bool = True
    attachments: tuple[CloudAttachment, ...] = ()
    policies: tuple[CloudSnapshotPolicy, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudFileStorage:
    """A file storage as the provider reports it."""

    spec: CloudFileStorageSpec
    mount_path: str
    used_bytes: int = 0


class CloudFileStorages(Protocol):
    """Capability of managing file storage."""

    async def storage_classes(self) -> Sequence[CloudStorageClass]:
        """Return the classes that are offered now."""

    async def converge_storage(self, desired: CloudFileStorageSpec) -> CloudFileStorage:
        """Create a storage, or update its size, attachments and policies; Rejected if its data would not fit."""

    async def find_storage(self, handle: Handle) -> CloudFileStorage | None:
        """Return a storage, or None."""

    async def remove_storage(self, handle: Handle) -> None:
        """Remove a storage and its data."""

    def storages(self) -> AsyncIterator[Sequence[CloudFileStorage]]:
        """Yield all our storages, page by page."""
