"""What may go wrong in the cloud, off unless somebody passes a menu.

Each fault is asked of the menu as `cloud.<fault>`, and again with the verb appended: `cloud.error.create_server`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from remuda.kernel.errors import Unavailable
from remuda.kernel.randomness import Randomness

Fault = Literal[
    "timeout_done",
    "error_done",
    "error",
    "slow",
    "stale",
    "doubled_rows",
    "rate_limited",
    "not_found_yet",
    "dropped_event",
]
"""Done, but the answer comes far too late; done, but told that it failed; failed, and not done; late, but done; a read
of a little while ago; a list with a row twice; too many requests; made, but not to be seen yet; an event lost."""

FAULTS: tuple[Fault, ...] = (
    "timeout_done",
    "error_done",
    "error",
    "slow",
    "stale",
    "doubled_rows",
    "rate_limited",
    "not_found_yet",
    "dropped_event",
)
"""The whole menu."""


class CloudFailed(Unavailable):
    """The cloud said that something went wrong, which says nothing about what it did."""

    code = "cloud_failed"

    def __init__(self) -> None:
        super().__init__("The simulated cloud failed: look at what it did before trying again.")


class RateLimited(Unavailable):
    """The cloud was asked too often, and has done nothing."""

    code = "rate_limited"

    def __init__(self) -> None:
        super().__init__("The simulated cloud is asked too often: try again a little later.")


class Faults(Protocol):
    """A menu of faults, such as a simulation has."""

    def fires(self, name: str) -> bool:
        """Tell whether this fault happens now."""
        ...


class Calm:
    """A menu without faults."""

    def fires(self, name: str) -> bool:
        """Nothing ever goes wrong."""
        return not name


@dataclass(frozen=True, slots=True)
class DrawnFaults:
    """A menu by chance, for a cloud that somebody wants to be unreliable: each fault at its rate."""

    randomness: Randomness
    rates: Mapping[str, float]
    """By the fault's name, or that with a verb: `error`, `error.create_server`."""

    def fires(self, name: str) -> bool:
        """Draw."""
        rate = self.rates.get(name.removeprefix("cloud."), 0.0)
        return rate > 0 and self.randomness.uniform(0, 1) < rate


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultBounds:
    """How bad it may get."""

    slow_s: float = 10.0
    """A slow call takes so much longer at most."""
    lost_answer_s: float = 60.0
    """An answer that comes too late comes after so long."""
    stale_s: float = 2.0
    """No read is older; and what was made is to be seen by then."""
