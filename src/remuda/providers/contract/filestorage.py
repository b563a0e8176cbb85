"""File storage."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from remuda.providers.contract.common import Handle
from remuda.providers.contract.networks import Range


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageClass:
    """A sort of file storage that a provider offers."""

    id: str
    name: str
    protocols: tuple[Literal["nfsv3", "nfsv4"], ...]
    parallelism: int = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A network from which a storage is reached, at these addresses of it."""

    network: Handle
    addresses: Range
    vlan: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotPolicy:
    """When snapshots are taken, and how many are kept."""

    name: str
    interval: Literal["hourly", "daily", "weekly", "monthly"]
    keep: int
    time_of_day: str = ""
    day_of_week: str = ""
    day_of_month: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStorageSpec:
    """What a storage is to be. It belongs to a project and to no tenancy: its handle's tenancy is empty."""

    handle: Handle
    storage_class: str
    size_bytes: int
    has_root_squash: bool = True
    attachments: tuple[Attachment, ...] = ()
    policies: tuple[SnapshotPolicy, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStorage:
    """A storage as the provider has it."""

    spec: FileStorageSpec
    mount_path: str
    used_bytes: int = 0


class FileStorages(Protocol):
    """Keeps file storage."""

    async def storage_classes(self) -> Sequence[StorageClass]:
        """Return what is offered now."""
        ...

    async def converge_storage(self, wanted: FileStorageSpec) -> FileStorage:
        """Make a storage, or bring size, attachments and policies up to date; Refused if it cannot shrink so far."""
        ...

    async def find_storage(self, handle: Handle) -> FileStorage | None:
        """Look for a storage."""
        ...

    async def remove_storage(self, handle: Handle) -> None:
        """Remove a storage and all that is on it."""
        ...

    def storages(self) -> AsyncIterator[Sequence[FileStorage]]:
        """Yield all storages of ours, in parts."""
        ...
