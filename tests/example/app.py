"""The livery, put together over given ports: for a simulation, for tests over a socket, for benches.

`build(ports)` makes it; `start` recovers operations and begins control; `stop` ends both, before the store is closed.
`asgi` can be called from the first moment on, and so can `api`, which is the same for a process that has its own access
log around all its APIs (`hosting`). No answer gets out of either that is not in the livery's own OpenAPI document.
"""

from collections.abc import Iterable, Sequence

from prometheus_client import CollectorRegistry

from remuda.http.api import Api, ApiPorts
from remuda.http.idempotency import Idempotency
from remuda.http.ratelimit import RateLimiter
from remuda.http.server.access_log import AccessLog
from remuda.http.server.metrics import Metrics
from remuda.http.watch import WatchPorts
from remuda.operations.kinds import OPERATION
from remuda.operations.recovery import OperationRecovery
from remuda.operations.reporter import Metrics as OperationMetrics
from remuda.operations.reporter import Reporters, Timeline
from remuda.operations.saga import BoundSaga, Sagas
from remuda.operations.service import Operations
from remuda.providers.metrics import CallMetrics
from remuda.reconcile.controller import Controller
from remuda.reconcile.deletion_guard import DeletionGuard
from remuda.reconcile.kinds import DELETION_GUARD, LEASE
from remuda.store.background import BackgroundTasks
from remuda.store.kinds import Registry
from tests.example.authenticator import PROJECTS, TokenAuthenticator
from tests.example.control import Control
from tests.example.kinds import KINDS
from tests.example.monitor import Monitor
from tests.example.ports import Ports
from tests.example.sagas import CREATE_MOUNT, MountPorts
from tests.example.service import Livery
from tests.example.stalls import Stalls
from tests.kit.asgi.contract import contract_of
from tests.kit.asgi.validating import Validated


def registry() -> Registry:
    """Return every kind that the livery needs, its own and those of the mechanisms."""
    return Registry([*KINDS, OPERATION, LEASE, DELETION_GUARD])


class LiveryApp:
    """The whole service."""

    def __init__(self, ports: Ports) -> None:
        self.ports = ports
        self.stalls = Stalls(ports.store, ports.clock)
        self.operations = Operations(
            ports.store,
            [BoundSaga(CREATE_MOUNT, MountPorts(ports.store, self.stalls))],
            clock=ports.clock,
            randomness=ports.randomness,
            reporter=Reporters(Timeline(), OperationMetrics(Sagas([CREATE_MOUNT]), ports.metrics)),
            settings=ports.operations,
        )
        self.service = Livery(
            store=ports.store,
            log=ports.log,
            randomness=ports.randomness,
            operations=self.operations,
            project_exists=_project_exists,
        )
        self.authenticator = ports.authenticator or TokenAuthenticator(ports.clock)
        self.metrics = Metrics(CollectorRegistry(), [ports.table])
        self.watches = WatchPorts(clock=ports.clock, closing=ports.closing)
        api, contract = Api(ports.table, self.service, self._api_ports()), contract_of(ports.table)
        self.api = Validated(api, contract)
        observed = AccessLog(
            api,
            clock=ports.clock,
            randomness=ports.randomness,
            metrics=self.metrics,
            sink=ports.sink,
        )
        self.asgi = Validated(observed, contract)
        self._calls = CallMetrics(ports.metrics)
        self._control = Control(ports, self.stalls, self._calls)
        self._recovery = OperationRecovery(self.operations, is_alone=ports.is_alone)
        self._duties = BackgroundTasks(ports.clock)

    @property
    def drivers(self) -> Sequence[Controller]:
        """The controllers."""
        return self._control.drivers

    @property
    def monitor(self) -> Monitor:
        """Who looks at the pasture."""
        return self._control.monitor

    @property
    def breaker(self) -> DeletionGuard:
        """What stops the monitor from removing too much."""
        return self._control.breaker

    def check(self) -> Iterable[tuple[str, str]]:
        """Yield what speaks against sending requests here."""
        for driver in self.drivers:
            if not driver.is_synced:
                yield driver.name, "It has not looked at everything yet: wait."

    async def start(self) -> None:
        """Take up what was left, and begin."""
        self._duties.start("recovery", self._recovery.run)
        self._duties.start("forgetting", self._recovery.run_retention)
        await self._control.start()

    async def restart_control(self) -> None:
        """End control and begin it anew, as when leadership goes and comes."""
        await self._control.stop()
        self._control = Control(self.ports, self.stalls, self._calls)
        await self._control.start()

    async def stop(self) -> None:
        """End everything that goes on by itself. Fail if there was an answer that is in no document."""
        self.watches.closing.set()
        await self._control.stop()
        await self._duties.stop()
        await self.operations.stop()
        for app in (self.api, self.asgi):
            app.assert_documented()

    def _api_ports(self) -> ApiPorts:
        ports = self.ports
        return ApiPorts(
            authenticator=self.authenticator,
            clock=ports.clock,
            randomness=ports.randomness,
            log=ports.log,
            sealer=ports.sealer,
            limiter=RateLimiter(ports.rate, ports.clock),
            idempotency=Idempotency(
                ports.log,
                clock=ports.clock,
                randomness=ports.randomness,
                time_limit_s=ports.api.time_limit_s,
                is_only_process=ports.is_alone,
            ),
            watch=self.watches,
            settings=ports.api,
        )


async def _project_exists(organization: str, project: str) -> bool:
    return project in PROJECTS.get(organization, ())


def build(ports: Ports) -> LiveryApp:
    """Put the livery together."""
    return LiveryApp(ports)
