"""Service: the ports that every service is given, and the app that a service is built as."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from prometheus_client import CollectorRegistry

from remuda.http.api import Api, ApiPorts, ApiSettings
from remuda.http.audit import FindOwner
from remuda.http.authentication import Authenticator
from remuda.http.buffer_shares import BufferShares
from remuda.http.failures import AuthenticationFailures
from remuda.http.idempotency import Idempotency
from remuda.http.page_reads import page_slots
from remuda.http.ratelimit import RateLimit, RateLimiter
from remuda.http.record_budget import RecordBudget
from remuda.http.request_slots import RequestSlots
from remuda.http.routes import Table
from remuda.http.watch import HEARTBEAT_S, WatchPorts
from remuda.http.watch_slots import WatchSlots
from remuda.kernel.clock import Clock
from remuda.kernel.errors import Unavailable
from remuda.kernel.fair_slots import FairSlots
from remuda.kernel.randomness import Randomness
from remuda.kernel.sealing import Sealer
from remuda.operations.recovery import OperationRecovery
from remuda.operations.reporter import Metrics as OperationMetrics
from remuda.operations.reporter import Reporters, Timeline
from remuda.operations.runner import OperationSettings
from remuda.operations.saga import AnyBoundSaga, Sagas
from remuda.operations.service import Operations
from remuda.reconcile.controller import Controller
from remuda.reconcile.leader import Leader, SingleProcess
from remuda.reconcile.ports import ControllerSettings, ReconcilePorts
from remuda.reconcile.reporter import Reporter
from remuda.resources.conventions import ORGANIZATION
from remuda.store.background import BackgroundTask, BackgroundTasks
from remuda.store.contract import Store
from remuda.store.logs import Log

T = TypeVar("T")


class RunBlocking(Protocol):
    """Runs blocking work outside the event loop, such as in a thread."""

    async def __call__(self, work: Callable[[], T]) -> T:
        """Return the result of the work."""


async def in_thread(work: Callable[[], T]) -> T:
    return await asyncio.to_thread(work)


_CHECKS = 2
_CHECK_LIMIT_S = 5.0


class DocumentChecks:
    """Slots for the parsing of documents that users write: few at once, and each with a deadline.

    A thread cannot be ended. So a check that takes too long keeps its slot until it ends, while its request gets an
    error, and so do requests that find no free slot in time. Other work in threads is not affected.
    """

    def __init__(self, run_blocking: RunBlocking, *, slots: int = _CHECKS, limit_s: float = _CHECK_LIMIT_S) -> None:
        """Take the number of checks at once, and the time that a request waits for its check."""
        self._run_blocking, self._limit_s = run_blocking, limit_s
        self._slots = asyncio.Semaphore(slots)

    async def run(self, document: str, check: Callable[[], T]) -> T:
        """Return the result of a check, or raise Unavailable, which names the document."""
        try:
            async with asyncio.timeout(self._limit_s) as deadline:
                await self._slots.acquire()
                running = asyncio.ensure_future(self._run_blocking(check))
                running.add_done_callback(self._release)
                return await asyncio.shield(running)
        except TimeoutError:
            if not deadline.expired():
                raise
            raise Unavailable(
                f"{document} could not be checked within {self._limit_s:g} s: send a shorter one, or try again later."
            ) from None

    def _release(self, done: "asyncio.Future[Any]") -> None:
        self._slots.release()
        if not done.cancelled():
            done.exception()  # a request that has given up does not read it


@dataclass(frozen=True, kw_only=True)
class ServicePorts:
    """The dependencies of every service. Each service adds its own."""

    store: Store
    log: Log
    clock: Clock
    randomness: Randomness
    sealer: Sealer
    watched: Store | None = None
    """The store that controllers read and watch, if it is another one."""
    is_only_process: bool = True
    """Whether no other process uses this store."""
    leader: Leader = field(default_factory=SingleProcess)
    reporter: Reporter = field(default_factory=Reporter)
    metrics: CollectorRegistry = field(default_factory=CollectorRegistry)
    operation_metrics: OperationMetrics | None = None
    """The metrics of operations, if the services of a process share them."""
    run_blocking: RunBlocking = in_thread
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the process begins to stop, so that streams end."""
    watch_slots: WatchSlots = field(default_factory=WatchSlots)
    """The slots of open watches, which the services of a process share."""
    request_slots: RequestSlots = field(default_factory=RequestSlots)
    """The slots of requests in progress, which the services of a process share."""
    page_slots: FairSlots = field(default_factory=page_slots)
    """The slots of reads of many objects, which the services of a process share."""
    record_budget: RecordBudget | None = None
    """The budgets of records of all organizations, if the services of a process share them."""
    buffer_shares: BufferShares = field(default_factory=BufferShares)
    """The shares of the memory for requests and responses, which the services of a process share."""
    rate: RateLimit = field(default_factory=RateLimit)
    failure_rate: RateLimit = RateLimit(quota=600, name="failures")  # noqa: RUF009  it is a frozen value
    """Failed authentications of one address."""
    api: ApiSettings = field(default_factory=ApiSettings)
    operations: OperationSettings = field(default_factory=OperationSettings)
    controllers: ControllerSettings = field(default_factory=ControllerSettings)

    @property
    def reconcile_ports(self) -> ReconcilePorts:
        return ReconcilePorts(
            store=self.watched or self.store,
            clock=self.clock,
            randomness=self.randomness,
            leader=self.leader,
            reporter=self.reporter,
            log=self.log,
            group_label=ORGANIZATION,
        )


def operations_of(ports: ServicePorts, sagas: Sequence[AnyBoundSaga]) -> Operations:
    metrics = ports.operation_metrics or OperationMetrics(Sagas([]), ports.metrics)
    metrics.show(Sagas([each.saga for each in sagas]))
    return Operations(
        ports.store,
        sagas,
        clock=ports.clock,
        randomness=ports.randomness,
        reporter=Reporters(Timeline(), metrics),
        settings=ports.operations,
    )


def api_ports(
    ports: ServicePorts,
    authenticator: Authenticator,
    watches: WatchPorts,
    *,
    url: str,
    owners: Mapping[str, FindOwner] | None = None,
) -> ApiPorts:
    """Return the ports of a service's API; `url` is its address for clients."""
    return ApiPorts(
        authenticator=authenticator,
        clock=ports.clock,
        randomness=ports.randomness,
        log=ports.log,
        sealer=ports.sealer,
        limiter=RateLimiter(ports.rate, ports.clock),
        failures=AuthenticationFailures(ports.failure_rate, ports.clock),
        idempotency=Idempotency(
            ports.log,
            clock=ports.clock,
            randomness=ports.randomness,
            time_limit_s=ports.api.time_limit_s,
            is_only_process=ports.is_only_process,
        ),
        watch=watches,
        records=ports.record_budget or RecordBudget(ports.clock),
        slots=ports.request_slots,
        pages=ports.page_slots,
        buffers=ports.buffer_shares,
        owners=owners or {},
        settings=replace(ports.api, url=url.rstrip("/")),
    )


def unsynced_controllers(controllers: Iterable[Controller]) -> Iterable[tuple[str, str]]:
    """Yield the controllers because of which the process is not ready, with the reason."""
    for controller in controllers:
        if not controller.is_synced:
            yield controller.name, "The controller has not finished its first resync."


PortsT = TypeVar("PortsT", bound=ServicePorts)
ServicesT = TypeVar("ServicesT")


class ServiceApp(ABC, Generic[PortsT, ServicesT]):
    """A service: its API, operations, controllers and background tasks over its ports.

    A subclass declares them, and creates what it needs for that before it calls `super().__init__`; this class decides
    in which order they are built, started and stopped.
    """

    table: ClassVar[Table]
    heartbeat_s: ClassVar[float] = HEARTBEAT_S

    def __init__(self, ports: PortsT, authenticator: Authenticator, *, url: str) -> None:
        """Build the service; `url` is where clients reach it."""
        self.ports = ports
        self.operations = operations_of(ports, self.sagas())
        self.services = self.build_services()
        self.watches = WatchPorts(
            clock=ports.clock,
            closing=ports.closing,
            heartbeat_s=self.heartbeat_s,
            access_version=authenticator.access_version,
            slots=ports.watch_slots,
        )
        prepared = api_ports(ports, authenticator, self.watches, url=url, owners=self.owners())
        self.api = Api(self.table, self.services, prepared)
        self.running_controllers = {controller.name: controller for controller in self.controllers()}
        self._recovery = OperationRecovery(self.operations, is_only_process=ports.is_only_process)
        self._background = BackgroundTasks(ports.clock)

    @abstractmethod
    def sagas(self) -> Sequence[AnyBoundSaga]:
        """Return the operations."""

    @abstractmethod
    def build_services(self) -> ServicesT:
        """Return the service of each class that routes call."""

    @abstractmethod
    def owners(self) -> Mapping[str, FindOwner]:
        """Return the functions that find the organization of the object that each path parameter names."""

    @abstractmethod
    def controllers(self) -> Sequence[Controller]:
        """Return the controllers."""

    @abstractmethod
    def background(self) -> Iterable[tuple[str, BackgroundTask]]:
        """Yield the background tasks with their names. It is called at each start, before the controllers start."""

    async def seed(self) -> None:
        """Write what has to be stored before anything starts."""

    async def close(self) -> None:
        """Close what the subclass has opened, after everything has stopped."""

    async def start(self) -> None:
        """Seed the store, then start the recovery of operations, the background tasks and the controllers.

        Background tasks come first, since some subscribe to events that must reach controllers after their first
        resync.
        """
        await self.seed()
        self._background.start("recovery", self._recovery.run)
        self._background.start("retention", self._recovery.run_retention)
        for name, task in self.background():
            self._background.start(name, task)
        for controller in self.running_controllers.values():
            await controller.start()

    async def stop(self) -> None:
        """Stop the controllers, the background tasks and the operations."""
        self.ports.closing.set()
        for controller in self.running_controllers.values():
            await controller.stop()
        await self._background.stop()
        await self.operations.stop()
        await self.close()

    def check(self) -> Iterable[tuple[str, str]]:
        """Return the reasons why the service is not ready for requests."""
        return unsynced_controllers(self.running_controllers.values())
