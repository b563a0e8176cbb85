"""When something at a provider is gone.

That is when it was looked for twice, as far apart as its reads can be old, and nothing about it is unanswered.

What keeps an object from being deleted: whatever names it, in our own store or by a finalizer of another service.
"""

from collections.abc import Awaitable, Callable, Hashable
from typing import Protocol, TypeVar

from remuda.kernel.errors import Forbidden
from remuda.providers.absence import AbsenceTracker
from remuda.providers.calls import Calls
from remuda.providers.contract.common import Handle
from remuda.quota.reservation import RECHECK_S
from remuda.reconcile.results import Requeue, Result
from remuda.resources.conventions import CONTROLLER_FINALIZER
from remuda.store.contract import Store
from remuda.store.objects import STORE_FINALIZERS, Resource

NameT = TypeVar("NameT", bound=Hashable)


class ProviderAccess(Protocol):
    """A provider as its controllers have it."""

    @property
    def absences(self) -> AbsenceTracker:
        """Since when things are not there."""
        ...

    @property
    def calls(self) -> Calls:
        """All calls to it."""
        ...


async def delete_resource(
    name: NameT,
    find: Callable[[NameT], Awaitable[object | None]],
    remove: Callable[[NameT], Awaitable[None]],
    cloud: ProviderAccess,
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
    cloud: ProviderAccess,
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


async def reject_if_used(store: Store, found: Resource, message: str) -> None:
    """Raise Forbidden with these words while anything uses an object."""
    kept_by = [
        each for each in found.metadata.finalizers if each not in STORE_FINALIZERS and each != CONTROLLER_FINALIZER
    ]
    if kept_by or await store.referrers(type(found), found.name, limit=1):
        raise Forbidden(message)
