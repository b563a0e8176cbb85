"""A real store with horses, as collections to be listed and watched."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from remuda.access.principal import Principal
from remuda.http.responses import Collection, Response
from remuda.store.contract import Store
from remuda.store.sqlite.store import SqliteSettings, SqliteStore, open_store
from tests.kit.sample_kinds import REGISTRY, Horse, HorseSpec, horse
from tests.kit.simulation.store import SEALER

ANNA = Principal(subject="anna@example.com", type="user")
BAY = {"herd": "bay"}


def read(one: Horse) -> dict[str, str]:
    return {"id": one.name, "colour": one.spec.colour}


def view(one: Horse) -> bytes:
    return msgspec.json.encode(read(one))


@asynccontextmanager
async def sample_store(directory: Path, *, settings: SqliteSettings | None = None) -> AsyncIterator[SqliteStore]:
    store = open_store(directory / "prairie.db", REGISTRY, SEALER, settings=settings)
    try:
        yield store
    finally:
        await store.close()


async def fill(store: Store, names: Iterable[str], *, colour: str = "bay", herd: str = "bay") -> None:
    await asyncio.gather(
        *(store.create(horse(name, labels={"herd": herd}, spec=HorseSpec(colour=colour))) for name in names)
    )


def herd(
    store: Store, *, visible: Callable[[Horse], bool] | None = None, **more: Any
) -> Collection[Horse, list[dict[str, str]]]:
    return Collection(store=store, kind=Horse, visible=visible, **{"view": view, **more})


async def body_of(answer: Response) -> bytes:
    if isinstance(answer.body, bytes):
        return answer.body
    return b"".join([chunk async for chunk in answer.body])


async def ids(answer: Response) -> list[str]:
    return [item["id"] for item in msgspec.json.decode(await body_of(answer))]


def headers(answer: Response) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in answer.headers}
