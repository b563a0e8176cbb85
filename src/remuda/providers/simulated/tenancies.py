"""Tenancies."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec

from remuda.kernel.errors import NotFound
from remuda.providers.contract.common import Handle
from remuda.providers.contract.errors import InUse
from remuda.providers.contract.networks import Tenancy
from remuda.providers.simulated.database import Storage
from remuda.providers.simulated.gateway import PART
from remuda.providers.simulated.ground import Ground

_FILLED_BY = ("networks", "groups")  # everything else is on a network
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Tenancy).decode


class SimTenancies:
    """Keeps tenancies apart."""

    def __init__(self, ground: Ground) -> None:
        self._storage, self._desk = ground.storage, ground.desk
        self._desk.past.readers["tenancy"] = lambda handle: self.read(handle.name)

    async def converge_tenancy(self, wanted: Tenancy) -> None:
        """Make a tenancy, or mend it."""
        await self._desk.change("converge_tenancy", lambda: self._converge(wanted))

    async def find_tenancy(self, name: str) -> Tenancy | None:
        return await self._desk.find("find_tenancy", "tenancy", Handle("", name), lambda each: self.read(each.name))

    async def remove_tenancy(self, name: str) -> None:
        """Remove a tenancy, or raise InUse while anything is in it."""
        await self._desk.change("remove_tenancy", lambda: self._remove(name))

    def tenancies(self) -> AsyncIterator[Sequence[Tenancy]]:
        return self._desk.parts("tenancies", "tenancy", self._page, lambda each: Handle("", each.name))

    def read(self, name: str) -> Tenancy | None:
        row = self._storage.row("SELECT document FROM tenancies WHERE name = ?", (name,))
        return None if row is None else _decode(row[0])

    def _page(self, mark: Any) -> tuple[list[Tenancy], Any]:
        rows = self._storage.rows(
            "SELECT name, document FROM tenancies WHERE name > ? ORDER BY name LIMIT ?", (mark or "", PART)
        )
        return [_decode(document) for _, document in rows], rows[-1][0] if len(rows) == PART else None

    def _converge(self, wanted: Tenancy) -> None:
        present, handle = self.read(wanted.name), Handle("", wanted.name)
        if present == wanted:
            return
        self._storage.touch("tenancy", handle)
        self._storage.run("INSERT OR REPLACE INTO tenancies VALUES (?, ?)", (wanted.name, _encode(wanted)))
        if present is None:
            self._desk.made("tenancy", handle)

    def _remove(self, name: str) -> None:
        if self.read(name) is None:
            return
        for table in _FILLED_BY:
            if self._storage.has(f"SELECT 1 FROM {table} WHERE tenancy = ? LIMIT 1", (name,)):  # noqa: S608  ours
                raise InUse("tenancy", name)
        self._storage.touch("tenancy", Handle("", name))
        self._storage.run("DELETE FROM tenancies WHERE name = ?", (name,))


def check_tenancy(storage: Storage, name: str) -> None:
    """Raise NotFound if there is no such tenancy."""
    if not storage.has("SELECT 1 FROM tenancies WHERE name = ?", (name,)):
        raise NotFound("tenancy", name)
