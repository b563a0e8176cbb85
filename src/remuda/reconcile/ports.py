"""What a controller needs from outside, and what an operator may set."""

from dataclasses import dataclass, field, replace

from remuda.kernel.backoff import Backoff
from remuda.kernel.clock import Clock, SystemClock
from remuda.kernel.randomness import Randomness, SystemRandomness
from remuda.reconcile.leader import Alone, Leader
from remuda.reconcile.reporter import Reporter, Silent
from remuda.reconcile.resync import ScanSettings
from remuda.store.contract import Store
from remuda.store.logs import Log


@dataclass(frozen=True, kw_only=True)
class ReconcilePorts:
    """Everything outside a controller that its driver touches."""

    store: Store
    clock: Clock = field(default_factory=SystemClock)
    randomness: Randomness = field(default_factory=SystemRandomness)
    leader: Leader = field(default_factory=Alone)
    reporter: Reporter = field(default_factory=Silent)
    log: Log | None = None
    """Keeps the timeline entries of a step whose pass has no write to keep them with: needed where steps return any."""


@dataclass(frozen=True, kw_only=True)
class DriverSettings:
    """What an operator may set."""

    workers: int = 8
    """So many keys are looked after at once."""
    deadline_s: float = 60.0
    """How long a pass may take: it observes and does one thing, and waits for nothing."""
    grace_s: float = 10.0
    """How long passes under way may take to end when the driver is stopped."""
    backoff: Backoff = field(default=Backoff(first_s=1.0, longest_s=300.0))
    """After a failure."""
    conflict_backoff: Backoff = field(default=Backoff(first_s=0.02, longest_s=1.0))
    """After somebody else wrote first."""
    blocked_every_s: float = 60.0
    """How often something blocked is looked at, should the event that unblocks it be lost: give or take a tenth."""
    scan: ScanSettings = field(default_factory=ScanSettings)

    def for_many(self) -> "DriverSettings":
        """Return these for a kind of which many come at once: what is written at the same time shares a commit."""
        return replace(self, workers=4 * self.workers)

    @property
    def blocked_within_s(self) -> tuple[float, float]:
        """How long it is at least and at most until something blocked is looked at again."""
        return 0.9 * self.blocked_every_s, 1.1 * self.blocked_every_s
