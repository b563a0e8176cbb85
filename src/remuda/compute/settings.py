"""Settings of compute."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeSettings:
    """Settings that an operator can choose."""

    url: str = "http://127.0.0.1:8080/compute"
    identity_url: str = "http://127.0.0.1:8080/identity"
    absence_delay: timedelta = timedelta(seconds=1)
    """The time between two reads that confirm the absence of a server."""
    monitor_interval: timedelta = timedelta(minutes=5)
    stalled_after: timedelta = timedelta(minutes=30)
    """The time without progress after which the monitor reports an instance."""
