"""Deletion at a provider with confirmed absence."""

from collections.abc import Awaitable, Callable, Hashable
from typing import Protocol, TypeVar

from remuda.providers.absence import AbsenceTracker
from remuda.providers.calls import Calls
from remuda.providers.contract.common import Handle
from remuda.quota.reservation import RECHECK_S
from remuda.reconcile.results import Requeue, Result

NameT = TypeVar("NameT", bound=Hashable)


class ProviderAccess(Protocol):
    """Provider of a region as its controllers use it."""

    @property
    def absence(self) -> AbsenceTracker: ...

    @property
    def calls(self) -> Calls: ...


async def delete_resource(
    name: NameT,
    find: Callable[[NameT], Awaitable[object | None]],
    remove: Callable[[NameT], Awaitable[None]],
    cloud: ProviderAccess,
    *,
    key: str | None = None,
    forget: bool = True,
) -> Result | None:
    """Delete a resource at a provider; return what to wait for, or None when its absence is confirmed.

    `key` is the key of its calls, if that is not its name. Without `forget`, the absence stays recorded.
    """
    absence = cloud.absence
    if await find(name) is not None:
        absence.clear(name)
        await remove(name)
        return Requeue(0 if absence.delay_s == 0 else RECHECK_S, "Deprovisioning", "being deleted at the provider")
    # A create whose outcome is unknown may still take effect.
    if cloud.calls.is_unknown(key or _key(name)) or not absence.record_missing(name):
        return Requeue(absence.delay_s or RECHECK_S, "Deprovisioning", "confirming that it was deleted at the provider")
    if forget:
        absence.clear(name)
    return None


def _key(name: Hashable) -> str:
    return name.name if isinstance(name, Handle) else str(name)
