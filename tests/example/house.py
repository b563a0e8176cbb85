"""The whole livery under trouble: customers, a pasture, processes that die and come again.

What is stored, and what can happen to it, is a `Machine`: the simulated one, or an API server in real time. The pasture
and what customers were told outlive every crash.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol, cast

from remuda.kernel.clock import Clock
from remuda.kernel.errors import ServerUnreachable
from remuda.kernel.randomness import Randomness
from remuda.reconcile.reporter import NullReporter
from remuda.reconcile.results import ReconcileContext
from remuda.store.contract import Store
from tests.example.api import table
from tests.example.app import LiveryApp, build
from tests.example.book import Book
from tests.example.customers import Customer
from tests.example.laws import Snapshot, snapshot, unrest
from tests.example.pasture import Fires, Pasture, SimPasture
from tests.example.ports import Ports
from tests.kit.asgi.client import Client
from tests.kit.asgi.contract import Contract, contract_of
from tests.kit.faulty_watch import FlakyWatches
from tests.kit.proofs.effects import Recorder


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How fast everything goes: a simulation has all the time in the world."""

    pause_s: float = 3.0
    """Between two acts of a customer, at most."""
    latency_s: float = 0.2
    """What the pasture takes for half a call, at most, when nothing is wrong."""
    stale_s: float = 2.0
    look_every_s: float = 5.0
    rest_s: float = 400.0
    """By then everything has come to rest when nothing goes wrong any more."""


shared_table = cache(table)
"""One table for all processes of a test: it never changes."""


def contract() -> Contract:
    """Return what every answer is held against."""
    return contract_of(shared_table())


class Machine(Protocol):
    """Where the livery runs."""

    @property
    def clock(self) -> Clock:
        """Its time."""
        ...

    @property
    def randomness(self) -> Randomness:
        """Its chance."""
        ...

    @property
    def faults(self) -> Fires:
        """What may go wrong."""
        ...

    @property
    def is_down(self) -> bool:
        """The power is gone, and with it everything but what was made durable."""
        ...

    async def open(self) -> Any:
        """Return the store, with its log, as it was left."""
        ...

    async def close(self, store: Any) -> None:
        """Let go of a store."""
        ...


class Line:
    """The way of one boot to the pasture: when the machine is down, nobody calls over it."""

    def __init__(self, pasture: Pasture, machine: Machine) -> None:
        self._pasture, self._machine = pasture, machine
        self.is_cut = False

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        async def call(*arguments: str) -> Any:
            self._check()
            answer = await getattr(self._pasture, name)(*arguments)
            self._check()
            return answer

        return call

    def _check(self) -> None:
        if self.is_cut or self._machine.is_down:
            raise ServerUnreachable("pasture", "the machine is down")


class Finds(NullReporter):
    """Counts what full scans found, which should be nothing."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def lost_event_found(self, run: ReconcileContext) -> None:
        """Note a find."""
        self.found.append(f"{run.controller} {run.key}")


class House:
    """A livery that goes on through crashes."""

    def __init__(self, machine: Machine, pace: Pace | None = None) -> None:
        self.machine = machine
        self.pace = pace or Pace()
        self.book = Book()
        self.pasture = SimPasture(
            machine.clock,
            machine.randomness,
            faults=machine.faults,
            latency_s=self.pace.latency_s,
            stale_s=self.pace.stale_s,
        )
        self.finds = Finds()
        self.recorder = Recorder()
        self.apps: list[LiveryApp] = []
        self.store: Any = None
        """None between two boots."""
        self.is_serving = False
        """Customers are at it, and trouble may come."""
        self.after_act: Callable[[], None] = lambda: None
        """Called whenever a customer has done something; a proof hooks in here."""
        self._line = Line(self.pasture, machine)

    async def boot(self, *, processes: int = 1, is_calm: bool = False) -> None:
        """Open the store as it was left, and begin; two processes at once both believe that they lead."""
        self.store = await self.machine.open()
        self._line = Line(self.pasture, self.machine)
        watched = self.store if is_calm else cast("Store", FlakyWatches(self.store, self.machine.faults))
        for _ in range(processes):
            ports = Ports(
                store=self.recorder.store(self.store),
                log=self.store,
                watched=watched,
                clock=self.machine.clock,
                randomness=self.machine.randomness,
                pasture=cast("Pasture", self._line),
                is_alone=processes == 1,
                reporter=self.finds,
                table=shared_table(),
                look_again_s=2 * self.pace.stale_s,
                look_every_s=self.pace.look_every_s,
            )
            self.apps.append(build(ports))
        for app in self.apps:
            await app.start()

    async def halt(self) -> None:
        """End everything that goes on in this boot: in order, or because the machine is down."""
        self._line.is_cut = self.machine.is_down
        apps, self.apps = self.apps, []
        await asyncio.gather(*[app.stop() for app in apps])
        store, self.store = self.store, None
        await self.machine.close(store)

    async def serve(self, *, customers: int, acts: int, trouble: Callable[[], Awaitable[None]]) -> None:
        """Let customers act at random in the midst of trouble, until they have had enough or the machine is down."""
        self.is_serving = True
        troubling = asyncio.ensure_future(trouble())
        await asyncio.gather(*[self._use(acts) for _ in range(customers)])
        self.is_serving = False
        await troubling

    async def see(self) -> Snapshot:
        """Read everything that is stored."""
        return await snapshot(self.store)

    def lose_a_mount(self) -> None:
        """Let a mount vanish from the pasture, if there is one."""
        names = sorted(self.pasture.mounts)
        if names:
            self.pasture.lose(names[self.machine.randomness.randrange(len(names))])

    async def come_to_rest(self) -> None:
        """Wait until everything is as it was promised to be, and then see that nothing moves any more."""
        clock, left = self.machine.clock, ["it was not looked at"]
        deadline = clock.monotonic() + self.pace.rest_s
        while left:
            assert clock.monotonic() < deadline, f"no rest within {self.pace.rest_s:g} s: {'; '.join(left)}"
            await clock.sleep(self.pace.look_every_s)
            left = unrest(await self.see(), self.book, self.pasture) if not self.pasture.is_busy else ["the pasture"]
        await self._look_again()

    async def _look_again(self) -> None:
        """A full look at everything settled finds nothing to do and writes nothing."""
        self.finds.found.clear()
        before, pasture = await self.see(), self.pasture.version
        for app in self.apps:
            for driver in app.drivers:
                await driver.resync()
            await app.monitor.look()
        await self.machine.clock.sleep(6 * self.pace.look_every_s)
        assert not self.finds.found, f"full scans found work: {self.finds.found}"
        assert await self.see() == before, "a second look wrote something"
        assert self.pasture.version == pasture, "a second look did something in the pasture"

    async def _use(self, acts: int) -> None:
        customer = Customer(self.book, self.machine.randomness, self._client)
        for _ in range(acts):
            await self.machine.clock.sleep(self.machine.randomness.uniform(0, self.pace.pause_s))
            if self.machine.is_down:
                return
            await customer.act()
            self.after_act()

    def _client(self) -> Client:
        app = self.apps[self.machine.randomness.randrange(len(self.apps))]
        return Client(app=self.recorder.app(app.asgi), token="user", contract=contract())
