"""File storage of the simulated cloud."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec

from remuda.kernel.errors import NotFound
from remuda.kernel.ids import random_id
from remuda.providers.contract.common import Handle, Rejected
from remuda.providers.contract.filestorage import CloudFileStorage, CloudFileStorageSpec, CloudStorageClass
from remuda.providers.simulated.gateway import PAGE_SIZE, CloudContext, encode
from remuda.providers.simulated.networks import SimNetworks

_ONE = "SELECT document, used_bytes, name FROM storages WHERE name = ?"
_LIST = "SELECT document, used_bytes, name FROM storages WHERE name > ? ORDER BY name LIMIT ?"
_decode = msgspec.msgpack.Decoder(CloudFileStorage).decode


class SimFileStorages:
    """File storage of the simulated cloud."""

    def __init__(self, context: CloudContext, *, networks: SimNetworks) -> None:
        self._storage, self._gateway, self._randomness = context.storage, context.gateway, context.randomness
        self._classes, self._networks = context.catalogue.storage_classes, networks.table
        self._gateway.stale_reads.readers["storage"] = self._read

    async def storage_classes(self) -> Sequence[CloudStorageClass]:
        return await self._gateway.read("storage_classes", lambda: self._classes)

    async def converge_storage(self, desired: CloudFileStorageSpec) -> CloudFileStorage:
        """Create or update a storage; Rejected if its data would not fit."""
        return await self._gateway.write("converge_storage", lambda: self._converge(desired))

    async def find_storage(self, handle: Handle) -> CloudFileStorage | None:
        return await self._gateway.find("find_storage", "storage", handle, self._read)

    async def remove_storage(self, handle: Handle) -> None:
        await self._gateway.write("remove_storage", lambda: self._remove(handle))

    def storages(self) -> AsyncIterator[Sequence[CloudFileStorage]]:
        return self._gateway.pages("storages", "storage", self._page, lambda each: each.spec.handle)

    def _read(self, handle: Handle) -> CloudFileStorage | None:
        row = self._storage.row(_ONE, (handle.name,))
        return None if row is None else _storage_of(row)

    def _page(self, position: Any) -> tuple[list[CloudFileStorage], Any]:
        rows = self._storage.rows(_LIST, (position or "", PAGE_SIZE))
        return [_storage_of(row) for row in rows], rows[-1][2] if len(rows) == PAGE_SIZE else None

    def _converge(self, desired: CloudFileStorageSpec) -> CloudFileStorage:
        present = self._read(desired.handle)
        if present is not None and present.spec == desired:
            return present
        self._check(desired, present)
        mount_path = present.mount_path if present else f"/exports/{random_id(self._randomness)}"
        updated = CloudFileStorage(spec=desired, mount_path=mount_path, used_bytes=present.used_bytes if present else 0)
        self._storage.record_change("storage", desired.handle)
        self._storage.run(
            "INSERT OR REPLACE INTO storages VALUES (?, ?, ?)",
            (desired.handle.name, updated.used_bytes, encode(updated)),
        )
        self._storage.run("DELETE FROM attachments WHERE storage = ?", (desired.handle.name,))
        for each in desired.attachments:
            self._storage.run(
                "INSERT OR IGNORE INTO attachments VALUES (?, ?, ?)",
                (each.network.tenancy, each.network.name, desired.handle.name),
            )
        if present is None:
            self._gateway.record_created("storage", desired.handle)
        return updated

    def _check(self, desired: CloudFileStorageSpec, present: CloudFileStorage | None) -> None:
        if desired.handle.tenancy:
            raise Rejected("a file storage does not belong to a tenancy")
        if not any(each.id == desired.storage_class for each in self._classes):
            raise NotFound("storage class", desired.storage_class)
        for each in desired.attachments:
            self._networks.get(each.network)
        if present is not None and present.spec.storage_class != desired.storage_class:
            raise Rejected(f"the class of the storage {desired.handle.name} cannot change")
        if present is not None and desired.size_bytes < present.used_bytes:
            raise Rejected(f"the data on the storage {desired.handle.name} does not fit into this size")

    def _remove(self, handle: Handle) -> None:
        if self._read(handle) is None:
            return
        self._storage.record_change("storage", handle)
        self._storage.run("DELETE FROM storages WHERE name = ?", (handle.name,))
        self._storage.run("DELETE FROM attachments WHERE storage = ?", (handle.name,))


def _storage_of(row: tuple[Any, ...]) -> CloudFileStorage:
    document, used_bytes, _ = row
    stored = _decode(document)
    return CloudFileStorage(spec=stored.spec, mount_path=stored.mount_path, used_bytes=used_bytes)
