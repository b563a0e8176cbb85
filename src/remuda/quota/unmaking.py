"""Taking back what an operation made and nobody has seen yet."""

from collections.abc import Callable

from msgspec.structs import replace

from remuda.kernel.errors import Conflict, NotFound
from remuda.resources.lifecycle import IN_CARE
from remuda.resources.reading import find
from remuda.store.contract import Store
from remuda.store.objects import ResourceT


async def unmake(
    store: Store, kind: type[ResourceT], name: str, is_own: Callable[[ResourceT], bool] = lambda _: True
) -> None:
    """Remove an object with its finalizer: while its operation is open, no controller has made anything of it.

    `is_own` tells whether this operation made it, where its name does not. If somebody has seen it already and made
    something that belongs to it or names it, it is left marked, and goes when that does.
    """
    while (found := await find(store, kind, name)) is not None and is_own(found):
        left = tuple(each for each in found.metadata.finalizers if each != IN_CARE)
        try:
            freed = await store.update(replace(found, metadata=replace(found.metadata, finalizers=left)))
            if not freed.is_marked:
                await store.delete(kind, freed.name, uid=freed.uid, version=freed.version)
        except Conflict:
            continue
        except NotFound:
            pass  # it went meanwhile
        return
