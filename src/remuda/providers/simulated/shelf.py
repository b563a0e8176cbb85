"""A table of things that a tenancy has, each one document under its handle."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec

from remuda.kernel.errors import NotFound
from remuda.providers.contract.common import Handle
from remuda.providers.simulated.database import Storage
from remuda.providers.simulated.gateway import PART

T = TypeVar("T")

encode: Callable[[Any], bytes] = msgspec.msgpack.Encoder().encode
"""Return a thing as its document."""


class Shelf(Generic[T]):
    """Finds the documents of a table."""

    def __init__(self, storage: Storage, table: str, kind: str, document: type[T]) -> None:
        self._storage, self._kind = storage, kind
        self._decode = msgspec.msgpack.Decoder(document).decode
        self._find = f"SELECT document FROM {table} WHERE tenancy = ? AND name = ?"  # noqa: S608  the table is ours
        self._list = (
            f"SELECT tenancy, name, document FROM {table} WHERE (tenancy, name) > (?, ?) "  # noqa: S608  same
            f"ORDER BY tenancy, name LIMIT {PART}"
        )
        self._remove = f"DELETE FROM {table} WHERE tenancy = ? AND name = ?"  # noqa: S608  same

    def read(self, handle: Handle) -> T | None:
        row = self._storage.row(self._find, (handle.tenancy, handle.name))
        return None if row is None else self._decode(row[0])

    def get(self, handle: Handle) -> T:
        """Return one, or raise NotFound."""
        found = self.read(handle)
        if found is None:
            raise NotFound(self._kind, handle.name)
        return found

    def page(self, mark: Any) -> tuple[list[T], Any]:
        """Return the things behind a mark, and the mark of the last one if there may be more."""
        rows = self._storage.rows(self._list, mark or ("", ""))
        return [self._decode(row[2]) for row in rows], rows[-1][:2] if len(rows) == PART else None

    def remove(self, handle: Handle) -> None:
        """Take one away."""
        self._storage.run(self._remove, (handle.tenancy, handle.name))
