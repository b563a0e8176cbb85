"""How patient operations are."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationSettings:
    """What an operator may set. `grace_s` is longer than `undo_s`, or the living would be overtaken."""

    run_s: float = 30.0
    """All steps of a run together take no longer, or it is undone."""
    undo_s: float = 30.0
    """One try to undo takes no longer."""
    grace_s: float = 90.0
    """Where other processes may live, theirs are taken over so long after the deadline or the next try was due."""
    pause_s: float = 0.5
    """The longest pause after the first failed undo; each is up to twice as long as the one before."""
    longest_pause_s: float = 300.0
    """The longest pause between two tries: a stuck operation is still tried so often."""
    stuck_after: int = 8
    """Failed tries after which an operation is stuck, about a minute after the first."""
    look_s: float = 15.0
    """How often recovery looks for open operations that nobody works on."""
    together: int = 32
    """How many operations recovery takes over at once."""
    retention: timedelta = timedelta(days=30)
    """How long closed operations are kept: longer than idempotency keys, or a request sent again would run again."""

    def __post_init__(self) -> None:
        if self.grace_s <= self.undo_s:
            raise ValueError("grace_s must be longer than undo_s")
