"""The whole of identity under trouble: customers, guests, and processes that die and come again.

What is stored, and what can happen to it, is a `Machine`. What customers were told outlives every crash.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any, TypeVar, cast

from remuda.http.ratelimit import RateLimit
from remuda.identity.app import TABLE, IdentityApp
from remuda.identity.kinds.users import User, UserSpec, user_id
from remuda.identity.ports import IdentityPorts
from remuda.identity.settings import IdentitySettings
from remuda.kernel.errors import Unavailable
from remuda.store.contract import Store
from remuda.store.objects import Metadata, ResourceT
from tests.kit.asgi.client import Client
from tests.kit.asgi.reference import response_contract
from tests.kit.asgi.validating import Validated
from tests.kit.environment import run_inline
from tests.kit.faulty_watch import FlakyWatches
from tests.kit.identity.login import nobody_answers, nothing_published
from tests.kit.proofs.effects import Recorder
from tests.kit.sim_identity.expectations import Expecting, Machine
from tests.kit.sim_identity.guarded import FACTOR, PERSONS, SUSPENDED
from tests.kit.sim_identity.guests import GUESTS
from tests.kit.sim_identity.persons import Persons
from tests.kit.sim_identity.quiescence import unrest
from tests.kit.sim_identity.readers import Readers
from tests.kit.sim_identity.setup import CROWD, FIRST_PASSWORD, ROOT, SETTINGS, Crowd, Pace, set_up
from tests.kit.sim_identity.snapshot import IdentitySnapshot, IdentitySnapshots
from tests.kit.sim_identity.spenders import Spenders
from tests.kit.sim_identity.tenants import Tenants
from tests.kit.simulation.checks import at_once
from tests.kit.simulation.resync import ResyncFinds
from tests.kit.simulation.store import SEALER

T = TypeVar("T")

_ROOT_LIFE = timedelta(minutes=30)
_LOOSE = ("/oauth2/", "/quotas", "/allocations", "/api/v1/passwords", "/suspensions", "/secondfactorresets")
"""Requests that have several effects by design, each with a proof of its own that it can break off anywhere."""
_BACKOFF_FACTOR = 1.1
"""Each pause between two looks is so much longer than the one before."""


class IdentitySystem(Expecting):
    """Identity that goes on through crashes."""

    root_subject, first_password = ROOT, FIRST_PASSWORD

    def __init__(
        self,
        machine: Machine,
        pace: Pace | None = None,
        *,
        settings: IdentitySettings = SETTINGS,
        crowd: Crowd = CROWD,
    ) -> None:
        super().__init__(machine, settings)
        self.history.subjects |= {ROOT, *GUESTS, *PERSONS}
        self.pace, self._crowd = pace or Pace(), crowd
        for guest in GUESTS:
            fact = self.history.facts["password", "person", guest]
            fact.granted(fact.ask(FIRST_PASSWORD))
        for key in (SUSPENDED, FACTOR):
            fact = self.history.facts[key]
            fact.granted(fact.ask(value=False))
        self.finds, self.recorder = ResyncFinds(), Recorder()
        self.apps: list[IdentityApp] = []
        self.listeners: list[Validated] = []
        self.store: Any = None
        """None between two boots."""
        self.is_serving = False
        self._snapshots: IdentitySnapshots | None = None
        self._root: tuple[str, Mapping[str, Any]] | None = None

    async def boot(self, *, processes: int = 1, is_calm: bool = False) -> None:
        """Open the store as it was left, and begin; two processes at once both believe that they lead."""
        while not await self._boot(processes, is_calm=is_calm):
            await self.halt()
            await self.machine.clock.sleep(1)

    async def halt(self) -> None:
        """End everything that goes on in this boot: in order, or because the machine is down."""
        apps, self.apps = self.apps, []
        await asyncio.gather(*[app.stop() for app in apps])
        store, self.store, self._snapshots = self.store, None, None
        await self.machine.close(store)
        doors, self.listeners = self.listeners, []
        for transport in doors:
            transport.assert_documented()
        self.history.settle()

    async def serve(self, *, customers: int, acts: int, trouble: Callable[[], Awaitable[None]]) -> None:
        """Let customers act at random in the midst of trouble, until they have had enough or the machine is down."""
        self.is_serving = True
        troubling = asyncio.ensure_future(trouble())
        await asyncio.gather(*[self._use(acts) for _ in range(customers)])
        self.is_serving = False
        await troubling

    async def restart_control(self) -> None:
        """End the controllers of a process and begin them again, as when leadership goes and comes."""
        app = self.apps[self.machine.randomness.randrange(len(self.apps))]
        for driver in app.running_controllers.values():
            await driver.stop()
        app.running_controllers = {driver.name: driver for driver in app.controllers()}
        for driver in app.running_controllers.values():
            await driver.start()

    async def see(self) -> IdentitySnapshot:
        """Read everything that is stored."""
        assert self._snapshots is not None, "there is a store"
        return await self._snapshots.take()

    async def come_to_rest(self, *, is_cleared: bool = False) -> None:
        """Wait until everything is as it was promised to be, and then see that nothing moves any more."""
        clock, left, pause_s = self.machine.clock, ["it was not looked at"], self.pace.look_every_s
        deadline = clock.monotonic() + self.pace.rest_s
        while left:
            assert clock.monotonic() < deadline, f"no rest within {self.pace.rest_s:g} s: {'; '.join(left)}"
            await clock.sleep(pause_s)
            pause_s *= _BACKOFF_FACTOR
            left = unrest(await self.see(), self.history, clock.now(), is_cleared=is_cleared)
        await self._look_again()

    async def clear_the_way(self) -> None:
        """Release and release everything that keeps something from going."""
        await Spenders(self).release_all(await self.see())
        await Tenants(self).release_all(await self.see())

    async def try_all_tokens(self) -> None:
        """See that every token is good exactly if it should be."""
        await Readers(self).try_all()
        await Persons(self).try_credentials()

    def client(self, token: str | None) -> Client:
        """Return the client of whoever has a token, of one of the processes."""
        transport = self.listeners[self.machine.randomness.randrange(len(self.listeners))]
        return Client(app=self._recorded(transport), token=token)

    async def root(self) -> str:
        """Return a token of somebody who may do everything."""
        if self._root is None or not self.is_in_time(self._root[1]):
            tokens = self.apps[0].tokens.tokens
            user = User(metadata=Metadata(name=user_id(ROOT)), spec=UserSpec(subject=ROOT))
            issued = await tokens.issue_for_operator(user, operator="test", lifetime=_ROOT_LIFE)
            now = self.machine.clock.now().timestamp()
            self._root = issued.token.reveal(), {"nbf": now, "exp": now + _ROOT_LIFE.total_seconds() / 2}
        return self._root[0]

    async def read(self, kind: type[ResourceT]) -> Sequence[ResourceT]:
        """Return all objects of a kind; none if the store does not answer."""
        try:
            found: Sequence[ResourceT] = (await self.store.list(kind)).items
        except Unavailable:
            return ()
        return found

    def is_undoing(self, subject: str) -> bool:
        """Tell whether an operation is open about this; where nobody can tell, it may be."""
        try:
            return at_once(self.see()).is_open(subject)
        except Unavailable:
            return True

    async def _boot(self, processes: int, *, is_calm: bool) -> bool:
        self.store = await self.machine.open()
        self._snapshots, self._root = IdentitySnapshots(self.store), None
        watched = self.store if is_calm else cast("Store", FlakyWatches(self.store, self.machine.faults))
        for _ in range(processes):
            app = IdentityApp(
                IdentityPorts(
                    store=cast("Store", self.recorder.store(self.store)),
                    log=self.store,
                    watched=watched,
                    clock=self.machine.clock,
                    randomness=self.machine.randomness,
                    sealer=SEALER,
                    fetch=nobody_answers,
                    find_txt=nothing_published,
                    run_blocking=run_inline,
                    settings=self.settings,
                    is_only_process=processes == 1,
                    reporter=self.finds,
                    rate=RateLimit(quota=1_000_000),
                )
            )
            self.apps.append(app)
            self.listeners.append(Validated(app.api, response_contract(TABLE)))
        try:
            for app in self.apps:
                await app.start()
            await set_up(self.store, self.apps[0].passwords)
        except Unavailable:
            return False
        return True

    def _recorded(self, door: Validated) -> Any:
        recorded = self.recorder.app(door)

        async def app(scope: Any, receive: Any, send: Any) -> None:
            is_loose = any(part in scope["path"] for part in _LOOSE)
            await (door if is_loose else recorded)(scope, receive, send)

        return app

    async def _use(self, acts: int) -> None:
        crowd = [customer for role, share in self._crowd.items() for customer in [role(self)] * share]
        draw = self.machine.randomness
        for _ in range(acts):
            await self.machine.clock.sleep(draw.uniform(0, self.pace.pause_s))
            if self.machine.is_down:
                return
            with suppress(Unavailable):  # nobody could even make a token for it
                await crowd[draw.randrange(len(crowd))].act()

    async def _look_again(self) -> None:
        """A full resync of everything settled finds nothing to do and writes nothing."""
        self.finds.found.clear()
        before = await self._versions()
        for app in self.apps:
            for driver in app.running_controllers.values():
                await driver.resync()
            await app.monitor.check_all()
        await self.machine.clock.sleep(6 * self.pace.look_every_s)
        assert not self.finds.found, f"full scans found work: {self.finds.found}"
        after = await self._versions()
        assert after == before, f"a second look wrote something: {set(after) ^ set(before)}"

    async def _versions(self) -> list[tuple[str, str, str]]:
        kinds = [kind.type for kind in self.store.registry.kinds]
        return [
            (kind.__name__, each.name, each.version) for kind in kinds for each in (await self.store.list(kind)).items
        ]
