"""What the livery is given to work with."""

import asyncio
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry

from remuda.http.api import ApiSettings
from remuda.http.authentication import Authenticator
from remuda.http.ratelimit import RateLimit
from remuda.http.routes import Table
from remuda.http.server.access_log import Sink
from remuda.kernel.clock import Clock
from remuda.kernel.randomness import Randomness
from remuda.kernel.sealing import Sealer
from remuda.operations.runner import OperationSettings
from remuda.reconcile.leader import Leader, SingleProcess
from remuda.reconcile.ports import ControllerSettings
from remuda.reconcile.reporter import NullReporter, Reporter
from remuda.store.contract import Store
from remuda.store.logs import Log
from tests.example.api import table
from tests.example.pasture import Pasture
from tests.kit.simulation.store import SEALER


class NoSink:
    """Nobody reads the access log."""

    def write(self, line: bytes) -> None:
        """Let it go."""


@dataclass(frozen=True, kw_only=True)
class Ports:
    """Everything outside the livery that it touches, and what differs between a test and another."""

    store: Store
    log: Log
    clock: Clock
    randomness: Randomness
    pasture: Pasture
    sealer: Sealer = SEALER
    authenticator: Authenticator | None = None
    watched: Store | None = None
    """What controllers read and watch, where that is not the store itself."""
    is_alone: bool = True
    """No other process uses this store."""
    leader: Leader = field(default_factory=SingleProcess)
    reporter: Reporter = field(default_factory=NullReporter)
    sink: Sink = field(default_factory=NoSink)
    metrics: CollectorRegistry = field(default_factory=CollectorRegistry)
    """Where controllers, operations and calls to the pasture are counted."""
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the process begins to stop: streams end by it."""
    rate: RateLimit = field(default_factory=RateLimit)
    api: ApiSettings = field(default_factory=ApiSettings)
    operations: OperationSettings = field(default_factory=OperationSettings)
    control: ControllerSettings = field(default_factory=ControllerSettings)
    table: Table = field(default_factory=table)
    look_again_s: float = 4.0
    """How far apart two looks into the pasture must be to count as two."""
    look_every_s: float = 5.0
    """How often the whole pasture is looked at."""
