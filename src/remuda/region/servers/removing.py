"""How what a server has at its provider goes: one thing after the other, each until it is really gone."""

from collections.abc import Awaitable, Callable, Sequence

from remuda.charging.making import SOON_S
from remuda.providers.contract.errors import InUse
from remuda.providers.contract.names import Handle
from remuda.reconcile.results import Again, Result
from remuda.region.catalogue.clouds import Cloud
from remuda.region.going import going

__all__ = ["Thing", "all_gone"]

_Find = Callable[[Handle], Awaitable[object | None]]
_Remove = Callable[[Handle], Awaitable[None]]
Thing = tuple[Handle, _Find, _Remove]
"""Something at a provider: its name there, how to look for it, and how to remove it."""


async def all_gone(things: Sequence[Thing], cloud: Cloud) -> Result | None:
    """Remove things one after the other; return what to wait for, or None when all are gone.

    That one is gone is known until all are: else it would be looked for anew at each step of the next one.
    """
    for handle, find_, remove in things:
        left = await _gone(handle, find_, remove, cloud)
        if left is not None:
            return left
    for handle, _, _ in things:
        cloud.absences.is_there(handle)
    return None


async def _gone(handle: Handle, find_: _Find, remove: _Remove, cloud: Cloud) -> Result | None:
    try:
        return await going(handle, find_, remove, cloud)
    except InUse:
        return Again(SOON_S, "Deprovisioning", "the provider still uses it")
