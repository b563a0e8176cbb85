"""File storage, through a provider's calls."""

from collections.abc import AsyncIterator, Sequence

from remuda.providers.called.listing import EVERYTHING, listed
from remuda.providers.calls import Calls
from remuda.providers.contract.common import Handle
from remuda.providers.contract.filestorage import FileStorage, FileStorages, FileStorageSpec, StorageClass

STORAGE_VERBS = ("storage_classes", "converge_storage", "find_storage", "remove_storage", "storages")
"""What is asked about file storage."""


class CalledFileStorages:
    """File storage."""

    def __init__(self, storages: FileStorages, calls: Calls) -> None:
        self._storages, self._calls = storages, calls

    async def storage_classes(self) -> Sequence[StorageClass]:
        """Return what is offered now."""
        return await self._calls.call(EVERYTHING, "storage_classes", self._storages.storage_classes, safe=True)

    async def converge_storage(self, wanted: FileStorageSpec) -> FileStorage:
        """Make a storage, or bring it up to date."""
        return await self._calls.call(
            wanted.handle.name, "converge_storage", lambda: self._storages.converge_storage(wanted)
        )

    async def find_storage(self, handle: Handle) -> FileStorage | None:
        return await self._calls.call(
            handle.name, "find_storage", lambda: self._storages.find_storage(handle), safe=True
        )

    async def remove_storage(self, handle: Handle) -> None:
        """Remove a storage and all that is on it."""
        await self._calls.call(handle.name, "remove_storage", lambda: self._storages.remove_storage(handle))

    def storages(self) -> AsyncIterator[Sequence[FileStorage]]:
        return listed(self._calls, "storages", self._storages.storages)
