"""The stores of several services as one, for a test that looks at what is there, or changes it behind their backs.

A kind is where its service has it. What all services have, such as operations, is all of it.
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import replace
from typing import Any

from remuda.kernel.errors import NotFound
from remuda.store.contract import Page
from remuda.store.logs import LogPage
from remuda.store.sqlite.store import SqliteStore


class Stores:
    """What tests ask of a store."""

    def __init__(self, *stores: SqliteStore) -> None:
        """Take the stores; logs are asked of the first one that has something to say."""
        self._stores = stores

    async def get(self, kind: type[Any], name: str) -> Any:
        *others, last = self._having(kind)
        for store in others:
            try:
                return await store.get(kind, name)
            except NotFound:
                continue
        return await last.get(kind, name)

    async def list(self, kind: type[Any], **how: Any) -> Page[Any]:
        return _joined([await store.list(kind, **how) for store in self._having(kind)])

    async def list_names(self, kind: type[Any], **how: Any) -> Page[str]:
        return _joined([await store.list_names(kind, **how) for store in self._having(kind)])

    async def create(self, resource: Any, **more: Any) -> Any:
        return await self._only(type(resource)).create(resource, **more)

    async def update(self, resource: Any, **more: Any) -> Any:
        return await self._only(type(resource)).update(resource, **more)

    async def update_status(self, resource: Any, **more: Any) -> Any:
        return await self._only(type(resource)).update_status(resource, **more)

    async def delete(self, kind: type[Any], name: str, **more: Any) -> Any:
        return await self._only(kind).delete(kind, name, **more)

    def watch(self, kind: type[Any], **how: Any) -> AsyncIterator[Any]:
        return self._only(kind).watch(kind, **how)

    async def read(self, stream: str, subject: str, **how: Any) -> LogPage:
        *others, last = self._stores
        for store in others:
            if (found := await store.read(stream, subject, **how)).entries:
                return found
        return await last.read(stream, subject, **how)

    def change_counter(self, kinds: Iterable[type[Any]]) -> int:
        asked = [*kinds]
        return sum(
            store.change_counter(having)
            for store in self._stores
            if (having := [kind for kind in asked if _has(store, kind)])
        )

    def _having(self, kind: type[Any]) -> Sequence[SqliteStore]:
        found = [store for store in self._stores if _has(store, kind)]
        assert found, f"no service has {kind.__name__}"
        return found

    def _only(self, kind: type[Any]) -> SqliteStore:
        (store,) = self._having(kind)
        return store


def _has(store: SqliteStore, kind: type[Any]) -> bool:
    return any(each.type is kind for each in store.registry.kinds)


def _joined(pages: list[Page[Any]]) -> Page[Any]:
    first, *others = pages
    assert not others or all(page.next is None for page in pages), "pages of several stores are no page of one"
    return replace(first, items=[item for page in pages for item in page.items]) if others else first
