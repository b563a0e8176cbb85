"""What an operator can choose about region."""

from dataclasses import dataclass, field
from datetime import timedelta

from remuda.providers.circuit_breaker import CallSettings
from remuda.region.kinds.regions import RegionSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfiguredRegion:
    """A region as the configuration has it."""

    name: str
    """What people call it; its id is derived from this."""
    spec: RegionSpec
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionSettings:
    """Everything."""

    url: str = "http://127.0.0.1:8080/region"
    """Our own URL as clients reach it."""
    identity_url: str = "http://127.0.0.1:8080/identity"
    """Where tokens come from."""
    regions: tuple[ConfiguredRegion, ...] = ()
    """Which regions there are."""
    calls: CallSettings = field(default_factory=CallSettings)
    """What each provider bears."""
    look_again: timedelta = timedelta(seconds=5)
    """How far two looks at a provider are apart that find something gone; longer than its reads can be old."""
    create_attempts: int = 3
    """How often a server is made that the provider could not bring up."""
    poll_idle: timedelta = timedelta(minutes=5)
    """How often the monitor looks at a provider in which nothing is under way."""
    first_looks_per_s: int = 3
    """How many servers it looks at each second of which it does not know how they were."""
    judged_per_s: int = 10
    """How many things at a provider it holds against our objects each second."""
    addresses_low_percent: int = 10
    """A network of whose addresses a smaller share is free runs low."""
    poll_busy: timedelta = timedelta(seconds=2)
    """How often it looks while something is, where the provider tells nothing by itself."""
    image_size_gib: int = 30
    """The largest image that is imported."""
    image_targets: tuple[str, ...] = ()
    """Networks of the inside from which images may be imported all the same."""
