"""Where sagas are proven: processes that start, crash and start again over one store and one outside world."""

import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from remuda.operations.kinds import OPEN, Operation
from remuda.operations.recovery import OperationRecovery
from remuda.operations.reporter import Reporter
from remuda.operations.runner import OperationSettings
from remuda.operations.saga import AnySaga, BoundSaga
from remuda.operations.service import Operations
from remuda.store.background import BackgroundTask, BackgroundTasks
from remuda.store.contract import Store
from remuda.store.kinds import Registry
from remuda.store.sqlite.store import SqliteStore, open_store
from tests.kit.proofs.crashing_store import CrashError, Fuse, FusedStore
from tests.kit.simulation.runner import World
from tests.kit.simulation.store import SEALER, lose_power, sim_ports

FIRST = "aaaaaaaa-0000-4000-8000-000000000001"
SECOND = "bbbbbbbb-0000-4000-8000-000000000002"


class Surroundings(Protocol):
    """What a saga works on, recreated for each case. Whatever it holds itself outlives a crash, as a provider does."""

    registry: Registry
    """The kinds, OPERATION among them."""

    async def prepare(self, store: Store) -> None:
        """Create what has to be there before the saga runs."""
        ...

    def ports(self, store: Store) -> Any:
        """Return the ports of the saga in a process that has just started. Nothing they hold outlives a crash."""
        ...

    async def observe(self, store: Store) -> object:
        """Return all that there is, in store, ledger and provider, as a value that tells done from clean.

        Leave out what differs between two equal runs: uids, versions, times, and tombstones of what was undone.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class Proof:
    """A saga, and what the drivers need to run it."""

    saga: AnySaga
    make_world: Callable[[World], Surroundings]
    input: msgspec.Struct
    rival: msgspec.Struct | None = None
    """The input of a second operation on the same subject; the same as `input` unless it says otherwise."""


class Process:
    """One boot."""

    def __init__(
        self,
        sagas: "SagaEnvironment",
        saga: AnySaga,
        fuse: Fuse,
        *,
        is_only_process: bool,
        reporter: Reporter | None = None,
    ) -> None:
        self.fuse = fuse
        self.store = FusedStore(sagas.store, fuse)
        bound = BoundSaga(saga, sagas.surroundings.ports(self.store))
        self.operations = Operations(
            self.store,
            [bound],
            clock=sagas.world.clock,
            randomness=sagas.world.randomness,
            settings=SETTINGS,
            reporter=reporter,
        )
        self.recovery = OperationRecovery(self.operations, is_only_process=is_only_process)
        self._saga, self._input = saga, sagas.proof.input

    async def run(self, operation: str = FIRST, work: msgspec.Struct | None = None) -> Operation:
        """Run the saga."""
        return await self.operations.run(self._saga, id=operation, actor="prover", input=work or self._input)

    async def try_to_run(self, operation: str = FIRST, work: msgspec.Struct | None = None) -> Exception | None:
        """Run the saga, and return what it raised."""
        try:
            await self.run(operation, work)
        except Exception as error:  # noqa: BLE001  the cases look at it
            return error
        return None

    async def settle(self) -> None:
        """Let everything that is under way end, however often it has to be tried within ten minutes."""
        for _ in range(600):
            if not self.operations.running:
                return
            await self.operations.clock.sleep(1)
        raise AssertionError(f"there is no end to {list(self.operations.running)}")

    async def kill(self) -> None:
        """End it as a crash does: whatever it was about to do, it does not do."""
        self.fuse.has_blown = True
        with contextlib.suppress(CrashError):
            await self.operations.stop(grace_s=0)


SETTINGS = OperationSettings(stuck_attempts=3, longest_pause_s=20)


class SagaEnvironment:
    """A store, the world around it, and the processes that work on them one after the other."""

    def __init__(self, world: World, proof: Proof, name: str) -> None:
        self.world, self.proof, self._name = world, proof, name
        self.surroundings = proof.make_world(world)
        self._processes: list[Process] = []
        self.store = self._open()

    def start(
        self,
        saga: AnySaga | None = None,
        fuse: Fuse | None = None,
        *,
        is_only_process: bool = True,
        reporter: Reporter | None = None,
    ) -> Process:
        """Start a process."""
        process = Process(
            self, saga or self.proof.saga, fuse or Fuse(), is_only_process=is_only_process, reporter=reporter
        )
        self._processes.append(process)
        return process

    async def crash(self) -> None:
        """Kill all processes and take the power from the store; then there is what was durable."""
        for process in self._processes:
            await process.kill()
        self._processes.clear()
        await lose_power(self.world, self.store)
        self.store = self._open()

    async def observe(self) -> object:
        """Return all that there is."""
        return await self.surroundings.observe(self.store)

    async def version(self) -> str:
        """Return the version of the store, which moves with every write."""
        return (await self.store.list(Operation)).version

    async def phase(self, operation: str = FIRST) -> str:
        """Return what an operation came to; one that nobody heard of was never begun."""
        everything = {each.name: each.phase for each in (await self.store.list(Operation)).items}
        return everything.get(operation, "undone")

    async def assert_closed(self) -> None:
        """No operation is left open."""
        left = [(each.name, each.status) for each in (await self.store.list(Operation, index=OPEN)).items]
        assert not left, f"operations are left open: {left}"

    @asynccontextmanager
    async def task(self, task: BackgroundTask) -> AsyncIterator[None]:
        """Have a task done meanwhile."""
        tasks = BackgroundTasks(self.world.clock)
        tasks.start("task", task)
        try:
            yield
            assert not tasks.failing
        finally:
            await tasks.stop()

    def _open(self) -> SqliteStore:
        path = self.world.disk.directory / f"{self._name}.db"
        return open_store(path, self.surroundings.registry, SEALER, ports=sim_ports(self.world))


@asynccontextmanager
async def saga_environment(world: World, proof: Proof, name: str = "stage") -> AsyncIterator[SagaEnvironment]:
    """Open the environment of a proof, and close it afterwards."""
    sagas = SagaEnvironment(world, proof, name)
    try:
        await sagas.surroundings.prepare(sagas.store)
        yield sagas
    finally:
        await sagas.store.close()


Asked = tuple[str, msgspec.Struct]
"""An operation's id and its input."""


async def result_of(world: World, proof: Proof, *asked: Asked) -> object:
    """Return what there is after these were run one after the other, without faults, in an environment of their own."""
    async with saga_environment(world, proof, "reference") as sagas:
        process = sagas.start()
        for operation, work in asked:
            await process.run(operation, work)
        seen = await sagas.observe()
    for file in world.disk.directory.glob("reference.db*"):
        file.unlink()
    return seen
