"""The access list of one user, worked out from nothing, among very many organizations and among few.

Nothing of ours is remembered between two of them: neither lists nor what roles allow. Warm, the objects that it is made
from are in the store's cache; cold, each is read from the tables.
"""

import time
from collections.abc import Iterator
from pathlib import Path

from bench.bed import Bed
from bench.identity.environment import open_identity
from bench.identity.tenants import Tenant, settle
from bench.loops import run
from bench.report import Measure, at_most
from bench.rounds import alternate, good_time
from remuda.identity.kinds.users import User, user_id
from remuda.identity.rbac.acl import AccessLists, Bindings
from remuda.identity.rbac.roles import seed_roles
from remuda.identity.settings import IdentitySettings
from remuda.store.readside.reader import ReaderSettings
from remuda.store.sqlite.store import SqliteStore

__all__ = ["measures"]

_GOAL = 1.3
_FEW = 10
_USERS = 100
_TIMES = 20


def measures(bed: Bed) -> Iterator[Measure]:
    """Compare a large file with a small one."""
    many = bed.sizes.organizations
    files = [bed.fresh(), bed.fresh()]
    run(_fill(files[0], many))
    run(_fill(files[1], _FEW))
    for state, cache_bytes in (("warm", ReaderSettings.cache_bytes), ("cold", 0)):
        large, small = run(_compare(bed, files, [many, _FEW], cache_bytes))
        title = f"access list of a user, {state}, {many:,} organizations of {_USERS} to {_FEW}"
        yield at_most(_GOAL, title, large, small, "µs CPU")


async def _fill(path: Path, organizations: int) -> None:
    store = open_identity(path)
    await seed_roles(store)
    await settle(store, [Tenant(number, members=_USERS) for number in range(organizations)])
    await store.close()


async def _compare(bed: Bed, files: list[Path], sizes: list[int], cache_bytes: int) -> list[float]:
    stores = [open_identity(path, cache_bytes=cache_bytes) for path in files]
    subjects = [_Lists(store, organizations).turn for store, organizations in zip(stores, sizes, strict=True)]
    found = await alternate(bed.sizes.rounds, *subjects)
    for store in stores:
        await store.close()
    return [good_time(values) for values in found]


class _Lists:
    """Works lists out, of one user after the other from all over the store."""

    def __init__(self, store: SqliteStore, organizations: int) -> None:
        self._store, self._organizations = store, organizations
        self._bindings = Bindings(IdentitySettings())

    async def turn(self, number: int) -> float:
        """Return what one list takes, of the user whose turn it is."""
        home = Tenant(number * 7_919 % self._organizations, members=_USERS)
        user = await self._store.get(User, user_id(home.subjects[number % _USERS]))
        await self._list(user)  # the first one finds SQLite's pages as others left them
        start = time.process_time()
        for _ in range(_TIMES):
            await self._list(user)
        return (time.process_time() - start) * 1e6 / _TIMES

    async def _list(self, user: User) -> None:
        standing = await AccessLists(self._store, self._bindings).of_user(user, "", (), "password")
        ((_, inside),) = standing.access.organizations.items()
        assert inside.permissions, "an auditor may read"
        assert inside.projects, "half of the projects are everybody's"
