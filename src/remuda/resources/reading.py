"""Reading what may not be there, or may be somebody else's.

Something that is marked is about to go. Where `marked` is False it counts as gone already.
"""

from remuda.kernel.errors import NotFound
from remuda.resources.conventions import ORGANIZATION
from remuda.store.contract import Store
from remuda.store.objects import ResourceT


async def find(store: Store, kind: type[ResourceT], name: str, *, marked: bool = True) -> ResourceT | None:
    """Return an object, or None if it is not there."""
    try:
        found = await store.get(kind, name)
    except NotFound:
        return None
    return found if marked or not found.is_marked else None


async def is_there(store: Store, kind: type[ResourceT], name: str, *, marked: bool = True) -> bool:
    """Tell whether an object is there."""
    return await find(store, kind, name, marked=marked) is not None


async def find_in(
    store: Store, kind: type[ResourceT], name: str, organization: str | None, *, marked: bool = True
) -> ResourceT | None:
    """Return an object of this organization (of none, if that is None), or None if there is no such one."""
    found = await find(store, kind, name, marked=marked)
    return found if found is not None and found.metadata.labels.get(ORGANIZATION) == organization else None


async def get_in(
    store: Store, kind: type[ResourceT], name: str, organization: str, *, marked: bool = True
) -> ResourceT:
    """Return an object of this organization, or raise NotFound: another one's is as good as none."""
    found = await find_in(store, kind, name, organization, marked=marked)
    if found is None:
        raise NotFound(kind.__name__, name)
    return found
