"""The livery's controllers and its monitor, put together."""

from typing import Any

from remuda.operations.kinds import Operation
from remuda.providers.absence import AbsenceTracker
from remuda.providers.calls import Calls
from remuda.providers.metrics import CallMetrics
from remuda.reconcile.controller import Controller
from remuda.reconcile.deletion_guard import DeletionGuard
from remuda.reconcile.lifecycle import Lifecycle
from remuda.reconcile.ports import ReconcilePorts
from remuda.reconcile.sources import Source, intent_changed, through, version_changed
from remuda.store.background import BackgroundTasks
from tests.example.calling import VERBS, CalledPasture
from tests.example.controllers import LedgerController, MountController, YardController
from tests.example.kinds import IN_CARE, IN_PASTURE, Ledger, Mount, Yard
from tests.example.monitor import Monitor
from tests.example.ports import Ports
from tests.example.stalls import Stalls


class Control:
    """The controllers and the monitor, with their own way to the pasture."""

    def __init__(self, ports: Ports, stalls: Stalls, metrics: CallMetrics) -> None:
        store = ports.watched or ports.store
        reconciling = ReconcilePorts(
            store=store,
            clock=ports.clock,
            randomness=ports.randomness,
            leader=ports.leader,
            reporter=ports.reporter,
            log=ports.log,
        )
        self._calls = Calls("pasture", VERBS, clock=ports.clock, randomness=ports.randomness, metrics=metrics)
        pasture = CalledPasture(ports.pasture, self._calls)
        self.breaker = DeletionGuard("strays", Mount, ports=reconciling)
        self.monitor = Monitor(
            store,
            pasture,
            self.breaker,
            ports.randomness,
            clock=ports.clock,
            leader=ports.leader,
            absences=AbsenceTracker(ports.clock, delay_s=ports.look_again_s),
            every_s=ports.look_every_s,
        )
        mounts = MountController(
            store=store,
            clock=ports.clock,
            stalls=stalls,
            pasture=pasture,
            absences=AbsenceTracker(ports.clock, delay_s=ports.look_again_s),
        )
        yards = YardController(stalls=stalls)
        self.drivers = (
            Controller(
                "mounts",
                Lifecycle(
                    Mount,
                    provision=mounts.provision,
                    deprovision=mounts.deprovision,
                    finalizer=IN_PASTURE,
                    ports=reconciling,
                ),
                kind=Mount,
                ports=reconciling,
                sources=(
                    Source(Mount, when=_intent_or_health),
                    Source(
                        Operation,
                        when=lambda operation: operation.phase,
                        keys=through(store, Mount, "operation", lambda operation: operation.name),
                    ),
                ),
                guards=(self.breaker,),
                settings=ports.control,
            ),
            Controller(
                "yards",
                Lifecycle(
                    Yard,
                    provision=yards.provision,
                    deprovision=yards.deprovision,
                    finalizer=IN_CARE,
                    ports=reconciling,
                ),
                kind=Yard,
                ports=reconciling,
                sources=(Source(Yard), Source(Ledger, when=lambda head: (head.spec.used, head.spec.limit))),
                settings=ports.control,
            ),
            Controller(
                "ledgers",
                LedgerController(store=store, clock=ports.clock, stalls=stalls),
                kind=Ledger,
                ports=reconciling,
                sources=(Source(Ledger, when=version_changed),),
                settings=ports.control,
            ),
        )
        self._duties = BackgroundTasks(ports.clock)
        self._calls.on_known(self._wake)

    def _wake(self, key: str) -> None:
        """A late call has ended: what became of it can be seen now."""
        self.drivers[0].enqueue(key.partition(".")[0])

    async def start(self) -> None:
        for driver in self.drivers:
            await driver.start()
        self._duties.start("monitor", self.monitor.keep)

    async def stop(self) -> None:
        await self._duties.stop()
        for driver in self.drivers:
            await driver.stop()
        await self._calls.close(grace_s=0)


def _intent_or_health(mount: Mount) -> Any:
    """Let through what users want, and what the monitor found missing."""
    is_missed = any(each.type == "Healthy" and each.status == "False" for each in mount.status.conditions)
    return intent_changed(mount), is_missed
