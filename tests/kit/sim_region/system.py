"""The whole of identity and region under trouble: processes that die and come again, over clouds that live on.

What customers were told outlives every crash, and so do the clouds: each is a state machine with storage of its own.
What they were told to do when a process died, they do.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Any, TypeVar, cast

from remuda.app.services import identity_client
from remuda.http.api import ApiSettings
from remuda.http.ratelimit import RateLimit
from remuda.identity.app import TABLE as IDENTITY
from remuda.identity.app import IdentityApp
from remuda.identity.kinds.users import User, UserSpec, user_id
from remuda.identity.ports import IdentityPorts
from remuda.kernel.errors import AlreadyExists, Unavailable
from remuda.providers.simulated.catalogue import load_catalogues
from remuda.providers.simulated.faults import FaultBounds
from remuda.providers.simulated.provider import SimulatedCloud, open_cloud
from remuda.region.app import TABLE, RegionApp
from remuda.region.catalogue.seed import region_id
from remuda.region.kinds.orphans import POLL_DIGEST
from remuda.region.ports import RegionPorts
from remuda.region.settings import RegionSettings
from remuda.store.contract import Store
from remuda.store.kinds import Kind
from remuda.store.objects import Metadata
from tests.kit.asgi.client import Client
from tests.kit.asgi.reference import response_contract
from tests.kit.asgi.validating import Validated
from tests.kit.certificates import certificate_proxies
from tests.kit.environment import run_inline
from tests.kit.faulty_watch import FlakyWatches
from tests.kit.identity.environment import ROOT, Carrying
from tests.kit.identity.launch import settings as identity_settings
from tests.kit.identity.login import nobody_answers, nothing_published
from tests.kit.identity.service_credentials import certified
from tests.kit.region.environment import Clouds, configured
from tests.kit.region.images import Page, Web
from tests.kit.sim_region.history import RegionHistory
from tests.kit.sim_region.quiescence import unrest
from tests.kit.sim_region.snapshot import RegionSnapshot, RegionSnapshots
from tests.kit.simulation.machine import SimMachine
from tests.kit.simulation.resync import ResyncFinds
from tests.kit.simulation.store import SEALER

T = TypeVar("T")
Work = Callable[[], Awaitable[None]]

CATALOGUES = load_catalogues()
REGIONS = tuple(map(region_id, CATALOGUES))
MAX_S = 4 * 3600.0
"""By then everything has come to rest when nothing goes wrong any more, even if the clock was put back before."""
BOUNDS = FaultBounds(slow_s=4.0)
"""What a cloud was told by a process that is dead, it begins before the next process has looked for it twice. One that
waits longer leaves what nobody knows of any more, and that is for the monitor to find."""

BREAKING = "https://images.example/breaking.raw?signature=also-secret"
"""Where an image begins that has no end."""

_ROOT_LIFE = timedelta(minutes=30)
_LOOK_EVERY_S, _BACKOFF_FACTOR = 5.0, 1.1
_FOREVER = RateLimit(quota=1_000_000)


class Process:
    """One process: both services over the same store."""

    def __init__(self, system: "RegionSystem", *, watched: Store, is_alone: bool) -> None:
        machine = system.machine
        common: dict[str, Any] = {
            "store": system.store,
            "log": system.store,
            "watched": watched,
            "clock": machine.clock,
            "randomness": machine.randomness,
            "sealer": SEALER,
            "api": ApiSettings(certificates=certificate_proxies()),
            "rate": _FOREVER,
            "is_only_process": is_alone,
            "reporter": system.finds,
            "run_blocking": run_inline,
        }
        settings = identity_settings(intent_lifetime=timedelta(minutes=1))
        self.identity = IdentityApp(
            IdentityPorts(settings=settings, fetch=nobody_answers, find_txt=nothing_published, **common)
        )
        self.region = RegionApp(
            RegionPorts(
                authenticator=self.identity.authenticator,
                identity=identity_client(self.identity, "unikorn-region"),
                providers=system.clouds,
                web=system.web,
                settings=RegionSettings(regions=configured(CATALOGUES)),
                **common,
            )
        )
        self.identity_door = Validated(self.identity.api, response_contract(IDENTITY))
        self.region_door = Validated(self.region.api, response_contract(TABLE))

    async def start(self) -> None:
        """Begin."""
        await self.identity.start()
        await self.region.start()

    async def stop(self) -> None:
        """End."""
        await self.region.stop()
        await self.identity.stop()

    @property
    def drivers(self) -> list[Any]:
        """All controllers."""
        return [*self.identity.running_controllers.values(), *self.region.running_controllers.values()]


class RegionSystem:
    """Both services, through crashes."""

    memories: tuple[Kind[Any], ...] = (POLL_DIGEST,)

    def __init__(self, machine: SimMachine) -> None:
        self.machine, self.history, self.finds = machine, RegionHistory(), ResyncFinds()
        self.clouds = Clouds({region_id(name): self._cloud(catalogue) for name, catalogue in CATALOGUES.items()})
        self.web = Web(machine.clock)
        self.web.serve(Page(pace_s=0.2))
        self.web.serve(Page(pace_s=0.2, breaks_after=1024), at=BREAKING)
        self.processes: list[Process] = []
        self.store: Any = None
        """None between two boots."""
        self.is_serving = False
        self.snapshots: RegionSnapshots | None = None
        self._root: tuple[float, str] | None = None
        self._controlling = asyncio.Lock()

    async def open(self) -> None:
        """Let the clouds begin."""
        for cloud in self.clouds.clouds.values():
            await cloud.start()

    async def close(self) -> None:
        """End the clouds."""
        for cloud in self.clouds.clouds.values():
            await cloud.stop()

    async def boot(self, *, processes: int = 1, is_calm: bool = False) -> None:
        """Open the store as it was left, and begin; two processes at once both believe that they lead."""
        while not await self._boot(processes, is_calm=is_calm):
            await self.halt()
            await self.machine.clock.sleep(1)

    async def halt(self) -> None:
        """End everything that goes on in this boot: in order, or because the machine is down. Clouds go on."""
        processes, self.processes = self.processes, []
        await asyncio.gather(*[process.stop() for process in processes])
        store, self.store, self.snapshots = self.store, None, None
        await self.machine.close(store)
        for process in processes:
            process.identity_door.assert_documented()
            process.region_door.assert_documented()
        self.history.settle()

    async def serve(self, customers: Mapping[Any, int], *, acts: int, pause_s: float, trouble: Work) -> None:
        """Let customers act at random in the midst of trouble, until they have had enough or the machine is down."""
        self.is_serving = True
        troubling = asyncio.ensure_future(trouble())
        await asyncio.gather(*[self._use(customers, acts, pause_s) for _ in range(3)])
        self.is_serving = False
        await troubling

    async def restart_control(self) -> None:
        """End the controllers of a process and begin them again, as when leadership goes and comes."""
        async with self._controlling:
            for driver in self._one_process().drivers:
                await driver.stop()
                await driver.start()

    @asynccontextmanager
    async def uncontrolled(self, kind: str) -> AsyncIterator[None]:
        """Have no controller of a kind at work, in any process, for as long as the block runs."""
        async with self._controlling:
            drivers = [process.region.running_controllers[kind] for process in self.processes]
            for driver in drivers:
                await driver.stop()
            try:
                yield
            finally:
                for driver in drivers:
                    await driver.start()

    async def see(self) -> RegionSnapshot:
        """Read everything that is stored, and everything that is at the clouds."""
        assert self.snapshots is not None, "there is a store"
        return await self.snapshots.take()

    async def come_to_rest(self, *, is_empty: bool = False, meanwhile: Work | None = None) -> None:
        """Wait until everything is as it was promised to be, and then see that nothing moves any more.

        Until then users do what only they can do, `meanwhile`.
        """
        clock, left, pause_s = self.machine.clock, ["it was not looked at"], _LOOK_EVERY_S
        deadline = clock.monotonic() + MAX_S
        while left:
            assert clock.monotonic() < deadline, f"no rest within {MAX_S:g} s: {'; '.join(left)}"
            await clock.sleep(pause_s)
            pause_s *= _BACKOFF_FACTOR
            if meanwhile is not None:
                await meanwhile()
            left = unrest(await self.see(), is_empty=is_empty)
        await self._look_again()

    def region(self, token: str | None) -> Client:
        """Return a client of region, of one of the processes."""
        return Client(app=self._one_process().region_door, token=token)

    def service(self) -> Client:
        """Return the client of compute, which has a certificate."""
        headers = certified("unikorn-compute", {}, impersonates=False, now=self.machine.clock.now())
        return Client(app=Carrying(self._one_process().region_door, headers), token=None)

    def identity(self, token: str | None) -> Client:
        """Return a client of identity, of one of the processes."""
        return Client(app=self._one_process().identity_door, token=token)

    async def root(self) -> str:
        """Return a token of somebody who may do everything."""
        now = self.machine.clock.now().timestamp()
        if self._root is None or not self._root[0] <= now < self._root[0] + _ROOT_LIFE.total_seconds() / 2:
            tokens = self.processes[0].identity.tokens.tokens
            user = User(metadata=Metadata(name=user_id(ROOT)), spec=UserSpec(subject=ROOT))
            issued = await tokens.issue_for_operator(user, operator="test", lifetime=_ROOT_LIFE)
            self._root = now, issued.token.reveal()
        return self._root[1]

    def _cloud(self, catalogue: Any) -> SimulatedCloud:
        machine = self.machine
        return open_cloud(
            None,
            catalogue,
            clock=machine.clock,
            sealer=SEALER,
            randomness=machine.randomness,
            faults=machine.faults,
            bounds=BOUNDS,
        )

    def _one_process(self) -> Process:
        return self.processes[self.machine.randomness.randrange(len(self.processes))]

    async def _boot(self, processes: int, *, is_calm: bool) -> bool:
        self.store = await self.machine.open()
        self.snapshots, self._root = RegionSnapshots(self.store, self.clouds.clouds.values()), None
        watched = self.store if is_calm else cast("Store", FlakyWatches(self.store, self.machine.faults))
        self.processes = [Process(self, watched=watched, is_alone=processes == 1) for _ in range(processes)]
        try:
            with suppress(AlreadyExists):
                await self.store.create(User(metadata=Metadata(name=user_id(ROOT)), spec=UserSpec(subject=ROOT)))
            for process in self.processes:
                await process.start()
        except Unavailable:
            return False
        return True

    async def _use(self, customers: Mapping[Any, int], acts: int, pause_s: float) -> None:
        crowd = [customer for role, share in customers.items() for customer in [role(self)] * share]
        draw = self.machine.randomness
        for _ in range(acts):
            await self.machine.clock.sleep(draw.uniform(0, pause_s))
            if self.machine.is_down:
                return
            with suppress(Unavailable):  # nobody could even make a token for it
                await crowd[draw.randrange(len(crowd))].act()

    async def _look_again(self) -> None:
        """A full resync of everything settled finds nothing to do and writes nothing."""
        self.finds.found.clear()
        before, at_clouds = await self._versions(), self.snapshots and self.snapshots.version
        for process in self.processes:
            for driver in process.drivers:
                await driver.resync()
        await self.machine.clock.sleep(12 * _LOOK_EVERY_S)
        assert not self.finds.found, f"full scans found work: {self.finds.found}"
        after = await self._versions()
        assert after == before, f"a second look wrote something: {sorted(set(after) ^ set(before))}"
        assert (self.snapshots and self.snapshots.version) == at_clouds, "a second look changed something at a cloud"

    async def _versions(self) -> list[tuple[str, str, str]]:
        """Return what is stored, but for what a monitor or a watch remembers for itself: it writes that at its time."""
        kinds = [kind.type for kind in self.store.registry.kinds if kind not in self.memories]
        return [
            (kind.__name__, each.name, each.version) for kind in kinds for each in (await self.store.list(kind)).items
        ]
