"""Routes of file storage and its classes."""

from functools import partial

from remuda.http.crud import crud
from remuda.http.routes import Route
from remuda.region.filestorage import rules, schema
from remuda.region.filestorage.service import FileStorageService
from remuda.region.names import permission
from remuda.resources.query import RegionalQuery

FILE_STORAGE = "/api/v2/filestorage"
CLASSES = "/api/v2/filestorageclasses"

ROUTES = [
    *crud(
        FileStorageService,
        path=FILE_STORAGE,
        item=schema.StoragePath,
        name="file_storage",
        names="file_storage",
        noun="file storage",
        plural_noun="file storage",
        permission=partial(permission, "filestorage:v2"),
        view=rules.STORAGE_VIEW,
        query=RegionalQuery,
        create=schema.StorageCreate,
        update=schema.StorageUpdate,
        read=schema.StorageRead,
        descriptions={
            "create": "The region and the class cannot be changed later.",
            "update": "Networks that are left out of `attachments` are detached. Snapshot policies that are left out "
            "are not changed.",
            "delete": "All data on the file storage is deleted.",
        },
    ),
    Route(
        method="GET",
        path=CLASSES,
        name="list_file_storage_classes",
        summary="List the classes of file storage",
        scope="authenticated",
        query_type=schema.ClassQuery,
        response_type=list[schema.ClassRead],
        service=FileStorageService,
        calls=FileStorageService.list_classes,
    ),
]
