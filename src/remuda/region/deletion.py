"""When something at a provider is gone.

That is when it was looked for twice, as far apart as its reads can be old, and nothing about it is unanswered.
"""

from collections.abc import Awaitable, Callable, Hashable
from typing import Protocol, TypeVar

from remuda.providers.absence import AbsenceTracker
from remuda.providers.calls import Calls
from remuda.providers.contract.common import Handle
from remuda.quota.reservation import RECHECK_S
from remuda.reconcile.results import Requeue, Result

NameT = TypeVar("NameT", bound=Hashable)


class AtWork(Protocol):
    """A provider as its controllers have it."""

    @property
    def absences(self) -> AbsenceTracker:
        """Since when things are not there."""
        ...

    @property
    def calls(self) -> Calls:
        """All calls to it."""
        ...


async def until_gone(
    name: NameT,
    find: Callable[[NameT], Awaitable[object | None]],
    remove: Callable[[NameT], Awaitable[None]],
    cloud: AtWork,
    *,
    key: str | None = None,
) -> Result | None:
    """Remove something at a provider; return what to wait for, or None when it is gone, and forget it then.

    `key` is what calls about it go by, where that is not its name.
    """
    left = await going(name, find, remove, cloud, key=key)
    if left is None:
        cloud.absences.clear(name)
    return left


async def going(
    name: NameT,
    find: Callable[[NameT], Awaitable[object | None]],
    remove: Callable[[NameT], Awaitable[None]],
    cloud: AtWork,
    *,
    key: str | None = None,
) -> Result | None:
    """Do the same, and go on knowing that it is gone."""
    absences = cloud.absences
    if await find(name) is not None:
        absences.clear(name)
        await remove(name)
        return Requeue(0 if absences.delay_s == 0 else RECHECK_S, "Deprovisioning", "being removed at the provider")
    # What was asked for and has not been answered may yet come to be.
    if cloud.calls.is_unknown(key or _key(name)) or not absences.record_missing(name):
        return Requeue(absences.delay_s or RECHECK_S, "Deprovisioning", "looking whether it is really gone")
    return None


def _key(name: Hashable) -> str:
    return name.name if isinstance(name, Handle) else str(name)
