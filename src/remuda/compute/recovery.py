"""The recovery room: for operators, where compute has stopped to remove what nobody asked it to remove.

The right to it is the one that region's recovery asks for: both are for those who run the platform.

What an operator can do where compute does not go on by itself.

The room's handlers: each asks the service and renders what it says.

The room's routes. Only platform administrators have the right to them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from remuda.access.checks import allow_everywhere
from remuda.access.principal import Context, Permission
from remuda.http.routes import AnyRoute, Call, Nothing, Route
from remuda.reconcile.deletion_guard import Breaker
from remuda.reconcile.kinds import EVERYTHING

MAY_RELEASE = Permission("region:regions", "update")
"""The right of those who run the platform, held everywhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """The room."""

    breakers: Sequence[Breaker]
    """All that compute has."""

    async def release(self, context: Context) -> None:
        """Let what is nobody's be removed again, in every project, after that has stopped because there was too much.

        What was held back is looked at within minutes.
        """
        allow_everywhere(context.principal, MAY_RELEASE)
        for breaker in self.breakers:
            for group in sorted({EVERYTHING, *await breaker.tripped()}):
                await breaker.release(group)


async def release(recovery: Recovery, call: Call[Nothing, Nothing, Nothing]) -> None:
    """Let what is nobody's be removed again."""
    await recovery.release(call.context)


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
            handler=release,
        ),
    ]
