"""After the sealing key was rotated: having the new key seal what an earlier one did."""

from contextlib import suppress

from remuda.kernel.errors import Conflict, NotFound
from remuda.store.contract import Store
from remuda.store.objects import Resource

_PAGE = 100


async def reseal(store: Store) -> int:
    """Write every object that an earlier key seals; return how many.

    Earlier keys may go when the history that this leaves behind is compacted: what was superseded keeps its seals.
    An update that changes nothing is no write, unless its secrets would be sealed differently: so updating everything
    writes only what is to be sealed anew.
    """
    written = 0
    for kind in store.registry.kinds:
        after: str | None = None
        while kind.has_secrets:
            page = await store.list(kind.type, limit=_PAGE, after=after)
            for resource in page.items:
                written += await _reseal(store, resource)
            after = page.next
            if after is None:
                break
    return written


async def _reseal(store: Store, resource: Resource) -> bool:
    """Write one object unless it went; whoever was overtaken reads again, for a status brings no new seal."""
    while True:
        try:
            return (await store.update(resource)).version != resource.version
        except NotFound:
            return False
        except Conflict:
            with suppress(NotFound):
                resource = await store.get(type(resource), resource.name)
