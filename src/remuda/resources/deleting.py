"""Asking for an object to go, the same for all of them."""

from collections.abc import Sequence

import msgspec

from remuda.access.principal import Context
from remuda.resources.writing import check_state
from remuda.store.contract import Store
from remuda.store.logs import Record
from remuda.store.objects import Resource


async def request_deletion(
    store: Store,
    context: Context,
    found: Resource,
    writable: msgspec.Struct,
    log: Sequence[Record],
    *,
    unused: bool = False,
    judged: bool = False,
) -> None:
    """Mark what was found, if it is what the caller has seen. What is marked already stays as it is, unwitnessed.

    With `unused` it raises Conflict if something refers to it by now, and with `judged` if it is not as it was found,
    so that its caller looks again.
    """
    check_state(context, found, writable)
    if found.is_marked:
        return
    version = found.version if judged or context.if_match is not None else None
    await store.delete(type(found), found.name, uid=found.uid, version=version, unused=unused, log=log)
