"""Security groups."""

from collections.abc import AsyncIterator, Sequence

from remuda.providers.contract.common import Handle
from remuda.providers.contract.errors import InUse
from remuda.providers.contract.networks import SecurityGroup
from remuda.providers.simulated.ground import Ground
from remuda.providers.simulated.shelf import Shelf, encode
from remuda.providers.simulated.tenancies import check_tenancy


class SimSecurityGroups:
    """Keeps security groups."""

    def __init__(self, ground: Ground) -> None:
        self._storage, self._desk = ground.storage, ground.desk
        self.shelf = Shelf(ground.storage, "groups", "security group", SecurityGroup)
        """Where they are."""
        self._desk.past.readers["group"] = self.shelf.read

    async def converge_group(self, wanted: SecurityGroup) -> SecurityGroup:
        """Make a group, or bring its rules up to date."""
        return await self._desk.change("converge_group", lambda: self._converge(wanted))

    async def find_group(self, handle: Handle) -> SecurityGroup | None:
        return await self._desk.find("find_group", "group", handle, self.shelf.read)

    async def remove_group(self, handle: Handle) -> None:
        """Remove a group, or raise InUse while a port is in it."""
        await self._desk.change("remove_group", lambda: self._remove(handle))

    def groups(self) -> AsyncIterator[Sequence[SecurityGroup]]:
        return self._desk.parts("groups", "group", self.shelf.page, lambda each: each.handle)

    def _converge(self, wanted: SecurityGroup) -> SecurityGroup:
        check_tenancy(self._storage, wanted.handle.tenancy)
        present = self.shelf.read(wanted.handle)
        if present == wanted:
            return present
        self._storage.touch("group", wanted.handle)
        self._storage.run(
            "INSERT OR REPLACE INTO groups VALUES (?, ?, ?)",
            (wanted.handle.tenancy, wanted.handle.name, encode(wanted)),
        )
        if present is None:
            self._desk.made("group", wanted.handle)
        return wanted

    def _remove(self, handle: Handle) -> None:
        if self.shelf.read(handle) is None:
            return
        where = (handle.tenancy, handle.name)
        if self._storage.has("SELECT 1 FROM memberships WHERE tenancy = ? AND member = ? LIMIT 1", where):
            raise InUse("security group", handle.name)
        self._storage.touch("group", handle)
        self.shelf.remove(handle)
