"""The room's handlers: each asks the service and renders what it says."""

from remuda.http.responses import Collection, Rendered, Shown, untag
from remuda.http.routes import Call, Nothing
from remuda.region.filestorage import schema as wire
from remuda.region.filestorage.reading import STORAGE_VIEW
from remuda.region.filestorage.service import FileStorageRoom
from remuda.region.kinds.filestorage import FileStorage
from remuda.region.kinds.storageclasses import FileStorageClass
from remuda.resources.query import RegionalQuery


async def list_all(
    room: FileStorageRoom, call: Call[Nothing, RegionalQuery, Nothing]
) -> Collection[FileStorage, list[wire.StorageRead]]:
    return await room.list(call.context, call.query)


async def create(room: FileStorageRoom, call: Call[Nothing, Nothing, wire.StorageCreate]) -> Shown[wire.StorageRead]:
    return Shown(STORAGE_VIEW, await room.create(call.context, call.body))


async def get(room: FileStorageRoom, call: Call[wire.StoragePath, Nothing, Nothing]) -> Rendered[wire.StorageRead]:
    found = await room.get(call.context, call.path.storage)
    return untag(await room.store.get_view(FileStorage, found.name, STORAGE_VIEW))


async def update(
    room: FileStorageRoom, call: Call[wire.StoragePath, Nothing, wire.StorageUpdate]
) -> Shown[wire.StorageRead]:
    return Shown(STORAGE_VIEW, await room.update(call.context, call.path.storage, call.body))


async def delete(room: FileStorageRoom, call: Call[wire.StoragePath, Nothing, Nothing]) -> None:
    await room.delete(call.context, call.path.storage)


async def list_classes(
    room: FileStorageRoom, call: Call[Nothing, wire.ClassQuery, Nothing]
) -> Collection[FileStorageClass, list[wire.ClassRead]]:
    return await room.list_classes(call.context, call.query)
