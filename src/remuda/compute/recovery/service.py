"""The recovery room: for operators, where compute has stopped to remove what nobody asked it to remove.

The right to it is the one that region's recovery asks for: both are for those who run the platform.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from remuda.access.checks import allow_everywhere
from remuda.access.principal import Context, Permission
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
