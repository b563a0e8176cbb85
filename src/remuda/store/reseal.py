"""Resealing: rewriting secrets with the current key after a key rotation."""

import asyncio
from contextlib import suppress

from remuda.kernel.errors import Conflict, NotFound
from remuda.store.contract import Store
from remuda.store.objects import Resource

_PAGE = 100


async def reseal(store: Store) -> int:
    """Update every object that was sealed with an earlier key; return their number.

    An update that changes nothing is no write, unless its secrets would be sealed differently. Earlier keys may be
    removed when the superseded revisions, which keep their seals, are compacted.
    """
    written = 0
    for kind in store.registry.kinds:
        after: str | None = None
        while kind.has_secrets:
            page = await store.list(kind.type, limit=_PAGE, after=after)
            written += sum(await asyncio.gather(*(_reseal(store, resource) for resource in page.items)))
            after = page.next
            if after is None:
                break
    return written


async def _reseal(store: Store, resource: Resource) -> bool:
    """Update one object and return whether that wrote it. After a conflict, read it again."""
    while True:
        try:
            return (await store.update(resource)).version != resource.version
        except NotFound:
            return False
        except Conflict:
            with suppress(NotFound):
                resource = await store.get(type(resource), resource.name)
