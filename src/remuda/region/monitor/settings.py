"""What an operator may set about the monitor."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorSettings:
    """How often, and how fast at most: a look at 100,000 servers is spread over hours."""

    every: timedelta = timedelta(minutes=5)
    """From the end of a look to the beginning of the next."""
    first_looks_per_s: float = 3.0
    """How many servers are looked at each second of which nothing is remembered."""
    judged_per_s: float = 10.0
    """How many things at a provider are held against our objects each second."""
    low_share: float = 0.1
    """A network of whose addresses a smaller share is free runs low."""
