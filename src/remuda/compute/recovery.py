"""Recovery for operators: release of the deletion guards of compute."""

from collections.abc import Sequence
from dataclasses import dataclass

from remuda.access.checks import require_everywhere
from remuda.access.principal import Context, Permission
from remuda.http.routes import AnyRoute, Route
from remuda.reconcile.deletion_guard import DeletionGuard
from remuda.reconcile.kinds import EVERYTHING

MAY_RESUME_DELETIONS = Permission("region:regions", "update")
"""The permission of platform administrators, which region's recovery requires, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeRecovery:
    """The deletion guards of compute."""

    guards: Sequence[DeletionGuard]

    async def resume_deletions(self, context: Context) -> None:
        """Resume the deletion of orphans in every project where a deletion guard has paused it."""
        require_everywhere(context.principal, MAY_RESUME_DELETIONS)
        for guard in self.guards:
            for group in sorted({EVERYTHING, *await guard.tripped()}):
                await guard.resume(group)


ROUTES: list[AnyRoute] = [
    Route(
        method="POST",
        path="/api/v2/recovery/deletions/resume",
        name="resume_deletions",
        summary="Resume the deletion of orphaned servers and quota allocations",
        scope="everywhere",
        permission=MAY_RESUME_DELETIONS,
        success=202,
        tag="recovery",
        description="Servers and allocations of deleted instances are deleted, and so are servers that an earlier "
        "instance of the same name has left behind. The deletion pauses, in a project or everywhere, if there are too "
        "many of them.",
        service=ComputeRecovery,
        calls=ComputeRecovery.resume_deletions,
    )
]
