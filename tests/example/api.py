"""The livery's route table."""

from remuda.http.routes import AnyRoute, ListQuery, Route, Table
from tests.example import handlers, wire
from tests.example.permissions import permission

YARDS = "/api/v1/organizations/{organizationID}/projects/{projectID}/yards"
MOUNTS = "/api/v2/mounts"
OPERATIONS = "/api/v1/operations"


def table() -> Table:
    """Return the livery's whole API."""
    return Table(
        "livery",
        title="Livery",
        description="Yards, and the mounts that stand in them.",
        routes=[*_yards(), *_mounts(), *_operations()],
    )


def _yards() -> list[AnyRoute]:
    return [
        Route(
            method="GET",
            path=YARDS,
            name="list_yards",
            summary="List the yards of a project",
            scope="project",
            permission=permission("yards", "read"),
            path_type=wire.ProjectPath,
            query_type=ListQuery,
            response_type=list[wire.YardRead],
            handler=handlers.list_yards,
        ),
        Route(
            method="POST",
            path=YARDS,
            name="create_yard",
            summary="Make a yard",
            scope="project",
            permission=permission("yards", "create"),
            path_type=wire.ProjectPath,
            body_type=wire.YardWrite,
            response_type=wire.YardRead,
            success=202,
            handler=handlers.create_yard,
        ),
        Route(
            method="GET",
            path=f"{YARDS}/{{yardID}}",
            name="get_yard",
            summary="Read a yard",
            scope="project",
            permission=permission("yards", "read"),
            path_type=wire.YardPath,
            response_type=wire.YardRead,
            handler=handlers.get_yard,
        ),
        Route(
            method="PUT",
            path=f"{YARDS}/{{yardID}}",
            name="update_yard",
            summary="Change a yard",
            scope="project",
            permission=permission("yards", "update"),
            path_type=wire.YardPath,
            body_type=wire.YardWrite,
            response_type=wire.YardRead,
            is_conditional=True,
            handler=handlers.update_yard,
        ),
        Route(
            method="DELETE",
            path=f"{YARDS}/{{yardID}}",
            name="delete_yard",
            summary="Give a yard up, with everything in it",
            scope="project",
            permission=permission("yards", "delete"),
            path_type=wire.YardPath,
            success=202,
            is_conditional=True,
            handler=handlers.delete_yard,
        ),
        Route(
            method="PUT",
            path=f"{YARDS}/{{yardID}}/references/{{reference}}",
            name="add_yard_reference",
            summary="Keep a yard from going while somebody uses it",
            scope="project",
            permission=permission("yards/references", "create"),
            path_type=wire.ReferencePath,
            success=201,
            handler=handlers.add_reference,
        ),
        Route(
            method="DELETE",
            path=f"{YARDS}/{{yardID}}/references/{{reference}}",
            name="remove_yard_reference",
            summary="Use a yard no longer",
            scope="project",
            permission=permission("yards/references", "delete"),
            path_type=wire.ReferencePath,
            success=204,
            handler=handlers.remove_reference,
        ),
    ]


def _mounts() -> list[AnyRoute]:
    return [
        Route(
            method="GET",
            path=MOUNTS,
            name="list_mounts",
            summary="List the mounts that the caller may see",
            scope="project",
            permission=permission("mounts", "read"),
            query_type=wire.MountQuery,
            response_type=list[wire.MountRead],
            handler=handlers.list_mounts,
        ),
        Route(
            method="POST",
            path=MOUNTS,
            name="create_mount",
            summary="Make a mount, in a stall of its yard",
            scope="project",
            permission=permission("mounts", "create"),
            body_type=wire.MountCreate,
            response_type=wire.MountRead,
            success=201,
            errors=(404,),
            handler=handlers.create_mount,
        ),
        Route(
            method="GET",
            path=f"{MOUNTS}/{{mountID}}",
            name="get_mount",
            summary="Read a mount",
            scope="project",
            permission=permission("mounts", "read"),
            path_type=wire.MountPath,
            response_type=wire.MountRead,
            handler=handlers.get_mount,
        ),
        Route(
            method="PUT",
            path=f"{MOUNTS}/{{mountID}}",
            name="update_mount",
            summary="Change a mount",
            scope="project",
            permission=permission("mounts", "update"),
            path_type=wire.MountPath,
            body_type=wire.MountUpdate,
            response_type=wire.MountRead,
            success=202,
            is_conditional=True,
            handler=handlers.update_mount,
        ),
        Route(
            method="DELETE",
            path=f"{MOUNTS}/{{mountID}}",
            name="delete_mount",
            summary="Give a mount up",
            scope="project",
            permission=permission("mounts", "delete"),
            path_type=wire.MountPath,
            success=202,
            is_conditional=True,
            handler=handlers.delete_mount,
        ),
        Route(
            method="POST",
            path=f"{MOUNTS}/{{mountID}}/brand",
            name="brand_mount",
            summary="Give a mount a new brand, which is shown this once",
            scope="project",
            permission=permission("mounts", "update"),
            path_type=wire.MountPath,
            response_type=wire.BrandRead,
            holds_secret=True,
            handler=handlers.brand_mount,
        ),
        Route(
            method="GET",
            path=f"{MOUNTS}/{{mountID}}/timeline",
            name="read_mount_timeline",
            summary="Read what happened to a mount",
            scope="project",
            permission=permission("mounts", "read"),
            path_type=wire.MountPath,
            response_type=list[wire.TimelineEvent],
            handler=handlers.read_timeline,
        ),
    ]


def _operations() -> list[AnyRoute]:
    return [
        Route(
            method="GET",
            path=OPERATIONS,
            name="list_operations",
            summary="List the operations that are open or stuck",
            scope="everywhere",
            permission=permission("operations", "read"),
            response_type=list[wire.OperationRead],
            handler=handlers.list_operations,
        ),
        Route(
            method="POST",
            path=f"{OPERATIONS}/{{operationID}}/retry",
            name="retry_operation",
            summary="Try to undo a stuck operation now",
            scope="everywhere",
            permission=permission("operations", "update"),
            path_type=wire.OperationPath,
            response_type=wire.OperationRead,
            handler=handlers.retry_operation,
        ),
        Route(
            method="POST",
            path=f"{OPERATIONS}/{{operationID}}/abandon",
            name="abandon_operation",
            summary="Give up undoing an operation, and leave what it made behind",
            scope="everywhere",
            permission=permission("operations", "update"),
            path_type=wire.OperationPath,
            body_type=wire.AbandonWrite,
            response_type=wire.OperationRead,
            handler=handlers.abandon_operation,
        ),
        Route(
            method="GET",
            path="/api/version",
            name="read_version",
            summary="Read the name and version of the service",
            scope="authenticated",
            response_type=wire.VersionRead,
            handler=handlers.read_version,
        ),
    ]
