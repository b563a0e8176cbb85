"""What a reconcile may come to.

`Done` waits for the next event. `Again` wants to be woken after a while although nothing failed. `Blocked` waits for
somebody else and says for what: it is woken by the event that unblocks it, and looked at again now and then. `Failed`
is tried again with a growing pause. Reasons are CamelCase words for programs, messages lower-case text for people, who
may all read them: no secret, no internals.
"""

from dataclasses import dataclass


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
