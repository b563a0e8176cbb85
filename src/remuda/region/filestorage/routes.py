"""The room's routes."""

from remuda.http.routes import AnyRoute, Route
from remuda.region.filestorage import handlers
from remuda.region.filestorage import schema as wire
from remuda.region.permissions import permission
from remuda.resources.query import RegionalQuery

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
            handler=handlers.list_all,
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
            handler=handlers.create,
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
            handler=handlers.get,
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
            handler=handlers.update,
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
            handler=handlers.delete,
        ),
        Route(
            method="GET",
            path=CLASSES,
            name="list_file_storage_classes",
            summary="List the classes of file storage",
            scope="authenticated",
            query_type=wire.ClassQuery,
            answer_type=list[wire.ClassRead],
            handler=handlers.list_classes,
        ),
    ]
