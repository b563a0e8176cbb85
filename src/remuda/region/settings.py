"""Settings of the region service."""

from dataclasses import dataclass, field
from datetime import timedelta

from remuda.providers.circuit_breaker import CallSettings
from remuda.region.kinds.regions import RegionSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfiguredRegion:
    """Region of the configuration."""

    name: str
    """Display name; the id is derived from it."""
    spec: RegionSpec
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionSettings:
    """Settings that an operator chooses."""

    url: str = "http://127.0.0.1:8080/region"
    identity_url: str = "http://127.0.0.1:8080/identity"
    regions: tuple[ConfiguredRegion, ...] = ()
    calls: CallSettings = field(default_factory=CallSettings)
    """Limits of the calls to each provider."""
    absence_delay: timedelta = timedelta(seconds=5)
    """Delay between two reads that confirm an absence at a provider; longer than a read can be stale."""
    removal_delay: timedelta = timedelta(minutes=1)
    """Delay before a region is removed; longer than a request can take."""
    create_attempts: int = 3
    """Attempts to create a server that fails at the provider."""
    poll_idle: timedelta = timedelta(minutes=5)
    initial_polls_per_second: int = 3
    """Rate of initial polls: of servers whose last observed version is not known."""
    checks_per_second: int = 10
    """Rate at which the monitor compares provider resources with objects."""
    addresses_low_percent: int = 10
    """Share of free addresses below which a network is reported as low."""
    poll_busy: timedelta = timedelta(seconds=2)
    """Requeue delay for a resource that its provider is changing, if the provider sends no events."""
    image_size_gib: int = 30
    cloud_targets: tuple[str, ...] = ()
    """Networks in which clouds may be, besides the public Internet and the private networks of RFC 1918 and 4193."""
    image_targets: tuple[str, ...] = ()
    """Private networks from which images may be imported."""
