"""What keeps an object from being deleted: whatever names it, in our own store or by a finalizer of another service."""

from remuda.kernel.errors import Forbidden
from remuda.resources.conventions import IN_CARE
from remuda.store.contract import Store
from remuda.store.objects import OURS, Resource


async def refuse_if_used(store: Store, found: Resource, refusal: str) -> None:
    """Raise Forbidden with these words while anything uses an object."""
    kept_by = [each for each in found.metadata.finalizers if each not in OURS and each != IN_CARE]
    if kept_by or await store.referrers(type(found), found.name, limit=1):
        raise Forbidden(refusal)
