"""What a simulated cloud offers: flavors, images, networks, hosts, public addresses, and how long things take.

One TOML file describes several clouds: they offer the same, each on hosts and public addresses of its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from remuda.providers.contract.catalogue import ExternalNetwork, Flavor, Image
from remuda.providers.contract.filestorage import StorageClass
from remuda.providers.simulated.latency import INSTANT, Latency

NOWHERE = "https://console.sim.invalid"
"""Where consoles are of which nobody has said where they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """How long things take in a cloud, in seconds."""

    queue_s: float = 3.0
    """Bare metal waits so long for its machine."""
    boot_s: float = 2.0
    boot_jitter: float = 0.0
    """A boot is up to this share quicker or slower."""
    stop_s: float = 0.5
    rebuild_s: float = 2.0
    remove_s: float = 0.3
    """What was removed is gone after so long."""
    snapshot_s: float = 3.0
    balancer_s: float = 1.0
    console_s: float = 300.0
    """The address of a console is good for so long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hosts:
    """The machines on which the servers of a flavor run."""

    count: int
    size: int = 1
    """So many servers of the flavor fit on each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """What one cloud offers."""

    name: str
    flavors: tuple[Flavor, ...]
    hosts: Mapping[str, Hosts]
    """By the id of the flavor."""
    images: tuple[Image, ...]
    kernels: Mapping[str, str] = field(default_factory=dict)
    """The release of Linux on an image, by its id."""
    external_networks: tuple[ExternalNetwork, ...] = ()
    public_addresses: tuple[str, ...] = ()
    """Prefixes."""
    storage_classes: tuple[StorageClass, ...] = ()
    console_url: str = NOWHERE
    """Where somebody shows consoles."""
    times: Times = Times()
    latency: Latency = INSTANT
    faults: Mapping[str, float] = field(default_factory=dict)
    """How often what goes wrong, by the name of the fault, between 0 and 1."""

    def flavor(self, flavor: str) -> Flavor | None:
        return next((each for each in self.flavors if each.id == flavor), None)

    def image(self, image: str) -> Image | None:
        """Return a built-in image by its id."""
        return next((each for each in self.images if each.id == image), None)


_AT_ONCE = Times(queue_s=0, boot_s=0, stop_s=0, rebuild_s=0, remove_s=0, snapshot_s=0, balancer_s=0)


def instant(catalogue: Catalogue, *, size: int | None = None) -> Catalogue:
    """Return the same cloud, but everything happens at once; with `size`, so many servers fit on each host."""
    hosts = catalogue.hosts
    if size is not None:
        hosts = {flavor: Hosts(count=each.count, size=size) for flavor, each in hosts.items()}
    return replace(catalogue, times=_AT_ONCE, latency=INSTANT, hosts=hosts)
