"""A store on the simulated machine, with processes that carry requests out under idempotency keys."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from remuda.http.idempotency import Idempotency
from remuda.http.responses import JSON, Response
from remuda.kernel.errors import StorageFull
from remuda.store.logs import LogPage, Record
from remuda.store.sqlite.store import SqliteStore
from tests.kit.sample_kinds import REGISTRY
from tests.kit.simulation.runner import World, simulate
from tests.kit.simulation.store import open_simulated

REPLAYED = (b"idempotency-replayed", b"true")
TIME_LIMIT_S = 30.0


class IdempotencyEnvironment:
    """A store, a process or several on it, and a piece of work that counts."""

    def __init__(self, world: World, store: SqliteStore) -> None:
        self.world, self.store = world, store
        self.operations: list[str] = []
        self.answer = Response(201, b'{"id":"\xc3\xa9"}', (JSON, (b"etag", b'"x"')))
        self.error: Exception | None = None
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()

    def process(self, log: Any = None, *, only: bool = False) -> Idempotency:
        return Idempotency(
            log or self.store,
            clock=self.world.clock,
            randomness=self.world.randomness,
            time_limit_s=TIME_LIMIT_S,
            is_only_process=only,
        )

    async def work(self, operation: str) -> Response:
        self.operations.append(operation)
        await self.may_go_on.wait()
        if self.error is not None:
            raise self.error
        return self.answer

    async def ask(
        self, process: Idempotency, key: str | None = "k", *, who: str = "anna", body: bytes = b"1", keep: bool = True
    ) -> Response:
        return await process.execute_once(key, who=who, fingerprint=body, keep=keep, execute=self.work)


def run_idempotency(test: Callable[[IdempotencyEnvironment], Coroutine[Any, Any, None]]) -> None:
    async def scenario(world: World) -> None:
        store = open_simulated(world, REGISTRY)
        try:
            await test(IdempotencyEnvironment(world, store))
        finally:
            await store.close()

    simulate(scenario, 5)


class FullDisk:
    """A log that is full after some records."""

    def __init__(self, log: SqliteStore, *, space: int) -> None:
        self._log, self._free = log, space

    async def append(self, records: Sequence[Record]) -> None:
        if self._free <= 0:
            raise StorageFull("/data")
        self._free -= 1
        await self._log.append(records)

    async def read(self, stream: str, subject: str, *, after: int = 0, limit: int = 100) -> LogPage:
        return await self._log.read(stream, subject, after=after, limit=limit)

    async def read_back(self, stream: str, subject: str, *, before: int | None = None, limit: int = 100) -> LogPage:
        return await self._log.read_back(stream, subject, before=before, limit=limit)
