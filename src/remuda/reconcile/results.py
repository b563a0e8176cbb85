"""One pass of a reconciler over one key.

Every pass has an id. It is in each of its log lines, in those of the provider calls it makes (through structlog's
context variables) and in its timeline entries, so that a change can be followed from its cause to its effect. What a
pass does not need, such as a bound logger, is not made: a settled pass logs nothing and should cost next to nothing.

What a reconcile may come to.

`Done` waits for the next event. `Again` wants to be woken after a while although nothing failed. `Blocked` waits for
somebody else and says for what: it is woken by the event that unblocks it, and looked at again now and then. `Failed`
is tried again with a growing pause. Reasons are CamelCase words for programs, messages lower-case text for people, who
may all read them: no secret, no internals.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import msgspec
import structlog

from remuda.kernel.ids import random_id
from remuda.kernel.randomness import Randomness
from remuda.store.kinds import Registry
from remuda.store.logs import Record, subject_of
from remuda.store.objects import Resource


@dataclass(frozen=True, slots=True)
class Done:
    """Nothing is left to do until something changes."""


@dataclass(frozen=True, slots=True)
class Again:
    """Something is under way: look again after this many seconds, unless an event comes first."""

    after_s: float
    reason: str = "Provisioning"
    message: str = ""
    patience_s: float = 0.0
    """As in Blocked."""


@dataclass(frozen=True, slots=True)
class Blocked:
    """Somebody else has to act first."""

    reason: str
    message: str
    patience_s: float = 0.0
    """Not worth a word before an object has waited so long: what it waits for is as a rule there in no time."""


@dataclass(frozen=True, slots=True)
class Failed:
    """It did not work this time."""

    reason: str
    message: str


Result = Done | Again | Blocked | Failed
"""What a reconcile returns."""


Cause = Literal["event", "wake", "retry", "start", "scan"]
"""Why a key is looked at: something changed, a delay passed, it failed before, just to be sure, or control began.

`start` is also when a source begins anew, since it cannot tell what it has missed.
"""

_encode = msgspec.json.Encoder(order="deterministic").encode


class Run:
    """One pass. Made by the driver, handed to the reconciler, and of no use after it."""

    def __init__(self, *, controller: str, key: str, cause: Cause, registry: Registry, randomness: Randomness) -> None:
        self.id: str = random_id(randomness)
        """The reconcile id."""
        self.controller = controller
        self.key = key
        self.cause: Cause = cause
        self.acted = False
        """Whether the pass has changed anything: a full scan whose pass acts has found what events should have told."""
        self.wake_s: float | None = None
        """The earliest wake that was asked for."""
        self._registry = registry

    @cached_property
    def log(self) -> structlog.typing.FilteringBoundLogger:
        """A logger that says which pass it speaks for."""
        logger: structlog.typing.FilteringBoundLogger = structlog.get_logger()
        return logger.bind(controller=self.controller, key=self.key, reconcile_id=self.id)

    def entry(self, subject: Resource, event: str, **facts: Any) -> Record:
        """Return a timeline entry to hand over with a write (`log=[...]`), and mark the pass as having acted.

        `event` is for programs: one CamelCase word that says what happened, such as `Held`. Facts are JSON, for
        everybody's eyes.
        """
        self.acted = True
        said = {
            **facts,
            "event": event,
            "uid": subject.uid,
            "generation": subject.metadata.generation,
            "controller": self.controller,
            "reconcileId": self.id,
            "cause": self.cause,
        }
        kind = self._registry.of(type(subject)).qualified
        return Record(stream="timeline", subject=subject_of(kind, subject.name), data=msgspec.Raw(_encode(said)))

    def wake_after(self, seconds: float) -> None:
        """Ask to be woken then, whatever the result: of several wishes the earliest counts."""
        self.wake_s = seconds if self.wake_s is None else min(self.wake_s, seconds)
