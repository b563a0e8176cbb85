"""After the sealing key was rotated: having the new key seal what an earlier one did."""

from remuda.kernel.errors import Conflict, NotFound
from remuda.store.contract import Store

__all__ = ["reseal"]

_PAGE = 100


async def reseal(store: Store) -> int:
    """Write every object that an earlier key seals; return how many. When it returns, earlier keys may go.

    An update that changes nothing is no write, unless its secrets would be sealed differently: so updating everything
    writes only what is to be sealed anew. Whoever is overtaken meanwhile was sealed by the one who overtook.
    """
    written = 0
    for kind in store.registry.kinds:
        after: str | None = None
        while kind.has_secrets:
            page = await store.list(kind.type, limit=_PAGE, after=after)
            for resource in page.items:
                try:
                    written += (await store.update(resource)).version != resource.version
                except (Conflict, NotFound):
                    continue
            after = page.next
            if after is None:
                break
    return written
