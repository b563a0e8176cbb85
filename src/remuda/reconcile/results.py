"""Results of a reconcile, and its context.

`Done` waits for the next event. `Requeue` is reconciled again after a time although nothing failed. `Blocked` waits for
another actor and says for what: it is reconciled after the event that unblocks it, and at an interval. `Failed` is
retried with backoff. Reasons are CamelCase words for programs, messages lower-case text for all users: without secrets
or internals.

Every reconcile has an id. It is in its log lines, in those of its provider calls (through structlog's context
variables) and in its timeline events, so that a change can be followed from its cause to its effect. What a reconcile
may not need, such as a bound logger, is created lazily: one with nothing to do logs nothing and should cost next to
nothing.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from remuda.kernel.ids import random_id
from remuda.kernel.randomness import Randomness
from remuda.store.kinds import Registry
from remuda.store.logs import Record, timeline_event
from remuda.store.objects import Resource

if TYPE_CHECKING:
    import structlog


@dataclass(frozen=True, slots=True)
class Done:
    """Nothing is left to do until something changes."""


@dataclass(frozen=True, slots=True)
class Requeue:
    """Something is in progress: reconcile again after this many seconds, unless an event comes first."""

    after_s: float
    reason: str = "Provisioning"
    message: str = ""
    report_after_s: float = 0.0
    """As in Blocked."""


@dataclass(frozen=True, slots=True)
class Blocked:
    """Another actor has to act first."""

    reason: str
    message: str
    report_after_s: float = 0.0
    """Do not report this before the object has waited so long: usually the wait is short."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The attempt failed."""

    reason: str
    message: str


RECHECK_S = 0.5
"""The delay before another process's work is checked again, if there is no event."""

Result = Done | Requeue | Blocked | Failed
"""The result of a reconcile."""


Cause = Literal["event", "requeue", "retry", "start", "resync"]
"""The cause of a reconcile: an event, a delay, a failure, the begin of a term of leadership, or a resync.

`start` is also used when a source restarts, since it does not know what it has missed.
"""


class ReconcileContext:
    """The context of one reconcile. The controller creates it for the reconciler, and discards it afterwards."""

    def __init__(
        self, *, controller: str, key: str, cause: Cause, registry: Registry, randomness: Randomness, failures: int = 0
    ) -> None:
        self.id: str = random_id(randomness)
        self.controller, self.key = controller, key
        self.cause: Cause = cause
        self.failures = failures
        """The number of consecutive failures of the key before."""
        self.acted = False
        """Whether the reconcile has changed anything. If a resync caused it, an event was lost."""
        self.requeue_s: float | None = None
        """The earliest requested delay."""
        self._registry = registry

    @cached_property
    def log(self) -> "structlog.typing.FilteringBoundLogger":
        """A logger that is bound to this reconcile."""
        import structlog  # noqa: PLC0415  kinds import this module, and the CLI reads kinds

        logger: structlog.typing.FilteringBoundLogger = structlog.get_logger()
        return logger.bind(controller=self.controller, key=self.key, reconcile_id=self.id)

    def event(self, subject: Resource, event: str, **facts: Any) -> Record:
        """Return a timeline event to pass to a write (`log=[...]`), and record that this reconcile has acted.

        `event` is for programs: one CamelCase word, such as `FinalizerAdded`. Facts are JSON that all users may read.
        """
        self.acted = True
        data = {
            **facts,
            "event": event,
            "uid": subject.uid,
            "generation": subject.metadata.generation,
            "controller": self.controller,
            "reconcileId": self.id,
            "cause": self.cause,
        }
        return timeline_event(self._registry.of(type(subject)).qualified, subject.name, data)

    def requeue_after(self, seconds: float) -> None:
        """Request another reconcile after this time, whatever the result: the earliest request counts."""
        self.requeue_s = seconds if self.requeue_s is None else min(self.requeue_s, seconds)
