"""A global user is made by the first operation that needs it, and is not taken back while another one needs it too.

Two organizations may make the same person a user at the same moment. So whoever comes while nobody is done yet writes
itself down beside the maker, and of all those the last one to be undone removes the user. Once one of them is done,
the user stays.
"""

from collections.abc import Sequence
from contextlib import suppress

from msgspec.structs import replace

from remuda.identity.kinds.users import User
from remuda.identity.users.claims import is_done
from remuda.kernel.errors import AlreadyExists, Conflict, NotFound
from remuda.store.contract import Store


async def need(store: Store, user: User, operation: str) -> None:
    """Make a user, or see that nobody takes back the one that is there."""
    while True:
        try:
            found = await store.get(User, user.name)
            makers = found.spec.makers
            if makers and operation not in makers and not await _is_one_done(store, makers):
                await store.update(replace(found, spec=replace(found.spec, makers=(*makers, operation))))
        except NotFound:
            with suppress(AlreadyExists):
                await store.create(user)
            continue
        except Conflict:
            continue
        return


async def need_no_more(store: Store, user: str, operation: str) -> None:
    """Remove a user that an operation has made, unless somebody else needs it."""
    while True:
        try:
            found = await store.get(User, user)
            if operation not in found.spec.makers:
                return
            others = tuple(each for each in found.spec.makers if each != operation)
            if others or await store.referrers(User, found.name, limit=1):
                await store.update(replace(found, spec=replace(found.spec, makers=others)))
            else:
                await store.delete(User, found.name, uid=found.uid, version=found.version)
        except Conflict:
            continue
        except NotFound:
            pass
        return


async def _is_one_done(store: Store, operations: Sequence[str]) -> bool:
    return any([await is_done(store, each) for each in operations])
