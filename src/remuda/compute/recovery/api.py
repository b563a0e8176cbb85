"""The room's routes. Only platform administrators have the right to them."""

from remuda.compute.recovery import handlers
from remuda.compute.recovery.service import MAY_RELEASE
from remuda.http.routes import AnyRoute, Route


def routes() -> list[AnyRoute]:
    """Return all of them."""
    return [
        Route(
            method="POST",
            path="/api/v2/recovery/removals/release",
            name="release_removals",
            summary="Let servers and quota that are nobody's be removed again",
            scope="everywhere",
            permission=MAY_RELEASE,
            success=202,
            tag="recovery",
            description="Servers and allocations of instances that are gone are removed, and servers that an earlier "
            "instance of the same name has left behind. That stops, in a project or everywhere, if there are too many.",
            handler=handlers.release,
        ),
    ]
