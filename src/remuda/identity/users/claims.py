"""Claims: an operation that changes a user or a service account together with its groups has it in hand meanwhile.

So of two such operations on one object the second is refused rather than mixed with the first. Nothing has to be let
go: a claim ends with its operation, however that ends.
"""

from collections.abc import Callable
from itertools import count
from typing import TypeVar

from msgspec.structs import replace

from remuda.identity.kinds.claims import Claim
from remuda.identity.kinds.users import KEEPS_ACCOUNT, OrganizationUser, ServiceAccount
from remuda.identity.users.rules import claimed, restored
from remuda.kernel.errors import Conflict, NotFound
from remuda.operations.kinds import Operation, attempt_id
from remuda.store.contract import Store

ClaimedT = TypeVar("ClaimedT", OrganizationUser, ServiceAccount)


async def is_open(store: Store, operation: str) -> bool:
    """Tell whether an operation is under way, or still to be undone. One that nobody remembers is long closed."""
    try:
        return (await store.get(Operation, operation)).is_open
    except NotFound:
        return False


async def is_done(store: Store, operation: str) -> bool:
    """Tell whether an operation is done, so that nobody will ever undo it."""
    try:
        return (await store.get(Operation, operation)).phase == "done"
    except NotFound:
        return True


async def is_claimed(store: Store, claim: Claim | None) -> bool:
    """Tell whether an operation has an object in hand."""
    return claim is not None and await is_open(store, claim.operation)


async def was_done(store: Store, request: str) -> bool:
    """Tell whether a request, which may come again because its answer was lost, was carried out."""
    for attempt in count(1):
        try:
            if (await store.get(Operation, attempt_id(request, attempt))).phase == "done":
                return True
        except NotFound:
            return False
    raise AssertionError("there is an end to attempts")


async def take(
    store: Store,
    kind: type[ClaimedT],
    name: str,
    operation: str,
    change: Callable[[ClaimedT], ClaimedT] = lambda found: found,
) -> ClaimedT:
    """Change an object and have it in hand; return it as it is then. Raises Conflict while another operation has it."""
    while True:
        found = await store.get(kind, name)
        if found.spec.claim is not None and found.spec.claim.operation == operation:
            return found
        if found.is_marked or await is_claimed(store, found.spec.claim):
            raise Conflict(kind.__name__, name)
        try:
            return await store.update(change(claimed(found, operation)))
        except Conflict:
            continue


async def give_back(store: Store, kind: type[ClaimedT], name: str, operation: str) -> None:
    """Put an object back as it was before an operation had it in hand; remove it if the operation made it."""
    while True:
        try:
            found = await store.get(kind, name)
            claim = found.spec.claim
            if claim is None or claim.operation != operation:
                return
            if claim.before is not None:
                await store.update(restored(found, claim.before))
            else:
                await _remove(store, kind, found)
        except Conflict:
            continue
        except NotFound:
            pass
        return


async def _remove(store: Store, kind: type[ClaimedT], found: ClaimedT) -> None:
    """Remove an object at once: nobody was told of it, so there is no token of its to revoke."""
    finalizers = tuple(each for each in found.metadata.finalizers if each != KEEPS_ACCOUNT)
    freed = await store.update(replace(found, metadata=replace(found.metadata, finalizers=finalizers)))
    await store.delete(kind, freed.name, uid=freed.uid, version=freed.version)
