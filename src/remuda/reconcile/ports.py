"""Ports and settings of a controller."""

from dataclasses import dataclass, field, replace

from remuda.kernel.backoff import Backoff
from remuda.kernel.clock import Clock, SystemClock
from remuda.kernel.randomness import Randomness, SystemRandomness
from remuda.reconcile.leader import Leader, SingleProcess
from remuda.reconcile.reporter import Reporter
from remuda.reconcile.resync import ResyncSettings
from remuda.store.contract import Store
from remuda.store.logs import Log


@dataclass(frozen=True, kw_only=True)
class ReconcilePorts:
    """Everything outside a controller that it uses."""

    store: Store
    clock: Clock = field(default_factory=SystemClock)
    randomness: Randomness = field(default_factory=SystemRandomness)
    leader: Leader = field(default_factory=SingleProcess)
    reporter: Reporter = field(default_factory=Reporter)
    log: Log | None = None
    """Records the timeline events of a reconcile without a write; required if steps return any."""
    group_label: str = ""
    """The label whose values share the workers of a controller, such as the organization; empty for no groups."""


@dataclass(frozen=True, kw_only=True)
class ControllerSettings:
    """Concurrency, deadlines and backoff of a controller."""

    workers: int = 8
    """The number of keys of one group that are reconciled concurrently. There are twice as many workers, if there are
    groups, so that one of them always leaves some to the others."""
    deadline_s: float = 60.0
    """Maximum duration of a reconcile, which requeues what takes time at a provider."""
    grace_s: float = 10.0
    """Time for running reconciles to finish when the controller is stopped."""
    backoff: Backoff = field(default=Backoff(first_s=1.0, longest_s=300.0))
    """After a failure."""
    conflict_backoff: Backoff = field(default=Backoff(first_s=0.02, longest_s=1.0))
    """After a conflicting write."""
    blocked_every_s: float = 60.0
    """The interval at which a blocked key is reconciled, in case an event was lost, ±10 %."""
    resync: ResyncSettings = field(default_factory=ResyncSettings)

    def for_many(self) -> "ControllerSettings":
        """Return the settings for a kind with many changes at once, whose writes then share commits."""
        return replace(self, workers=4 * self.workers)

    @property
    def blocked_within_s(self) -> tuple[float, float]:
        """Minimum and maximum delay before a blocked key is reconciled again."""
        return 0.9 * self.blocked_every_s, 1.1 * self.blocked_every_s
