"""What an operator can choose about compute."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeSettings:
    """Everything."""

    url: str = "http://127.0.0.1:8080/compute"
    """Our own URL as clients reach it."""
    identity_url: str = "http://127.0.0.1:8080/identity"
    """Where tokens come from."""
    absence_delay: timedelta = timedelta(seconds=1)
    """How far two looks are apart that find a server gone which was there before."""
    monitor_interval: timedelta = timedelta(minutes=5)
    """How often the monitor looks whether instances, servers and what is held for them agree."""
    stalled_after: timedelta = timedelta(minutes=30)
    """For how long the state of an instance may not move before the monitor says so."""
