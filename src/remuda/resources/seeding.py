"""Objects that a release or a configuration brings along, as they come into the store at every start.

Several processes may start at once: who comes second looks at what the first one wrote.
"""

from collections.abc import Callable

from remuda.kernel.errors import AlreadyExists, Conflict
from remuda.resources.reading import find
from remuda.resources.writing import until_written
from remuda.store.contract import Store
from remuda.store.objects import ResourceT


async def seed(store: Store, wanted: ResourceT, changed: Callable[[ResourceT], ResourceT]) -> None:
    """Make `wanted` where it is missing; where it is there, write what `changed` makes of it, if that is another."""

    async def write() -> None:
        found = await find(store, type(wanted), wanted.name)
        if found is None:
            await _create(store, wanted)
        elif (after := changed(found)) != found:
            await store.update(after)

    await until_written(write)


async def _create(store: Store, wanted: ResourceT) -> None:
    try:
        await store.create(wanted)
    except AlreadyExists:  # another process was faster: look at what it wrote
        raise Conflict(type(wanted).__name__, wanted.name) from None
