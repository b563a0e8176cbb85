"""Who keeps a marked object from going: what refers to it from outside or inside the store, or what it owns."""

from collections.abc import Awaitable, Callable, Sequence
from collections.abc import Set as AbstractSet

from remuda.reconcile.results import Blocked
from remuda.store.contract import Store
from remuda.store.objects import FOREGROUND, HAS_CHILDREN, IN_USE, Resource, ResourceT

WaitsFor = Callable[[ResourceT], Awaitable[str]]
"""Says, for people, what a marked owner waits for while something of its own is still there."""

InWords = Callable[[Sequence[str]], str]
"""Says, for people, what those are that refer to an object, each of them as `plural.group/name`."""

_NAMED = 5


def as_written(holders: Sequence[str]) -> str:
    """Name those who refer to an object as they are written there."""
    return ", ".join(holders[:_NAMED]) + (" and more" if len(holders) > _NAMED else "")


async def its_children(_: Resource) -> str:
    """Say no more than that something is there."""
    return "waiting for what it owns to go"


async def blocked_by_holders(
    store: Store,
    resource: ResourceT,
    *,
    no_references: AbstractSet[str],
    waits_for: WaitsFor[ResourceT] = its_children,
    in_words: InWords = as_written,
) -> Blocked | None:
    """Return what to say of an object that others keep; all its finalizers are references but for those named."""
    finalizers = resource.metadata.finalizers
    holders = [each for each in finalizers if each not in no_references]
    if IN_USE in finalizers:
        found = await store.referrers(type(resource), resource.name, limit=_NAMED + 1)
        holders += [f"{referrer.kind.qualified}/{referrer.name}" for referrer in found]
    if holders or IN_USE in finalizers:
        return Blocked("InUse", f"in use by {in_words(holders) if holders else 'others'}")
    if FOREGROUND in finalizers or HAS_CHILDREN in finalizers:
        return Blocked("HasChildren", await waits_for(resource))
    return None
