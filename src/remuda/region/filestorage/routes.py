"""The room's routes.

The room's handlers: each asks the service and renders what it says.
"""

from remuda.http.responses import Collection, Rendered, Shown, untag
from remuda.http.routes import AnyRoute, Call, Nothing, Route
from remuda.region.filestorage import schema as wire
from remuda.region.filestorage.rules import STORAGE_VIEW
from remuda.region.filestorage.service import FileStorageRoom
from remuda.region.kinds.filestorage import FileStorage, FileStorageClass
from remuda.region.names import permission
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


FILE_STORAGE = "/api/v2/filestorage"
"""All file storage."""
CLASSES = "/api/v2/filestorageclasses"
"""The classes that it comes in."""
_ONE = f"{FILE_STORAGE}/{{filestorageID}}"


def routes() -> list[AnyRoute]:
    """Return all of them."""
    return [
        Route(
            method="GET",
            path=FILE_STORAGE,
            name="list_file_storage",
            summary="List the file storage that the caller may see",
            scope="project",
            permission=permission("filestorage:v2", "read"),
            query_type=RegionalQuery,
            answer_type=list[wire.StorageRead],
            handler=list_all,
        ),
        Route(
            method="POST",
            path=FILE_STORAGE,
            name="create_file_storage",
            summary="Make file storage",
            description="Region and class are settled for good.",
            scope="project",
            permission=permission("filestorage:v2", "create"),
            body_type=wire.StorageCreate,
            answer_type=wire.StorageRead,
            success=201,
            errors=(404,),
            handler=create,
        ),
        Route(
            method="GET",
            path=_ONE,
            name="get_file_storage",
            summary="Read file storage",
            scope="project",
            permission=permission("filestorage:v2", "read"),
            path_type=wire.StoragePath,
            answer_type=wire.StorageRead,
            handler=get,
        ),
        Route(
            method="PUT",
            path=_ONE,
            name="update_file_storage",
            summary="Change file storage",
            description="What is left out of `attachments` is detached; snapshot policies that are left out stay.",
            scope="project",
            permission=permission("filestorage:v2", "update"),
            path_type=wire.StoragePath,
            body_type=wire.StorageUpdate,
            answer_type=wire.StorageRead,
            success=202,
            is_conditional=True,
            handler=update,
        ),
        Route(
            method="DELETE",
            path=_ONE,
            name="delete_file_storage",
            summary="Give file storage up",
            description="All that is on it goes with it.",
            scope="project",
            permission=permission("filestorage:v2", "delete"),
            path_type=wire.StoragePath,
            success=202,
            is_conditional=True,
            handler=delete,
        ),
        Route(
            method="GET",
            path=CLASSES,
            name="list_file_storage_classes",
            summary="List the classes of file storage",
            scope="authenticated",
            query_type=wire.ClassQuery,
            answer_type=list[wire.ClassRead],
            handler=list_classes,
        ),
    ]
