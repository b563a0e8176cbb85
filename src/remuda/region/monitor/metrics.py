"""What the monitor finds, for Prometheus. The only id among the labels is the region's: all others are few.

::

    remuda_region_servers{region,phase}                  servers by how they are
    remuda_region_servers_drifted{region}                servers that are others at the provider than they were made
    remuda_region_server_scheduling_seconds{region}      from create to being taken on by the provider
    remuda_region_server_running_seconds{region}         from create to the first run
    remuda_region_server_gone_seconds{region}            from the request to delete to being gone
    remuda_region_orphans{region,subject}                what a provider has of ours that is nobody's
    remuda_region_networks_low{region}                   networks of whose addresses few are free
    remuda_region_networks_exhausted{region}             networks without a free address
    remuda_region_networks_low_free_addresses{region}    what is free on all of those together
    remuda_region_flavor_free{region,flavor}             so many more servers fit, where the provider tells
    remuda_region_vlans_taken{region}                    where networks are VLANs
    remuda_region_vlans_free{region}                     likewise
"""

from collections.abc import Mapping
from typing import Final

from prometheus_client import CollectorRegistry, Gauge, Histogram

from remuda.region.monitor.inventory import SUBJECTS

PHASES: Final = ("pending", "queued", "building", "running", "stopping", "stopped")
"""The phases of servers, in the lower case in which metrics have them."""

_RUNNING_S = (5, 15, 30, 60, 120, 300, 600, 900, 1800, 3600)
_SCHEDULING_S = (1, 5, 10, 30, 60, 120, 300)


class MonitorMetrics:
    """Counts, in a registry that it is given. Only the process that leads says anything."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def gauge(name: str, text: str, *labels: str) -> Gauge:
            return Gauge(f"remuda_region_{name}", text, ["region", *labels], registry=registry)

        def histogram(name: str, text: str, buckets: tuple[int, ...]) -> Histogram:
            return Histogram(f"remuda_region_{name}", text, ["region"], buckets=buckets, registry=registry)

        self.servers = gauge("servers", "Servers by how they are.", "phase")
        self.drifted = gauge("servers_drifted", "Servers that are others at the provider than they were made.")
        self.scheduling = histogram("server_scheduling_seconds", "From create to being taken on.", _SCHEDULING_S)
        self.running = histogram("server_running_seconds", "From create to the first run.", _RUNNING_S)
        self.gone = histogram("server_gone_seconds", "From the request to delete to being gone.", _RUNNING_S)
        self.orphans = gauge("orphans", "What a provider has of ours that is nobody's.", "subject")
        self.low = gauge("networks_low", "Networks of whose addresses few are free.")
        self.exhausted = gauge("networks_exhausted", "Networks without a free address.")
        self.low_free = gauge("networks_low_free_addresses", "Free addresses of all networks that run low.")
        self.flavors = gauge("flavor_free", "So many more servers fit.", "flavor")
        self.vlans_taken = gauge("vlans_taken", "VLANs that networks have.")
        self.vlans_free = gauge("vlans_free", "VLANs that are left.")
        self._offered: dict[str, set[str]] = {}

    def open(self, region: str) -> None:
        """Begin all metrics of a region at nought."""
        for phase in PHASES:
            self.servers.labels(region, phase)
        for subject in SUBJECTS:
            self.orphans.labels(region, subject)
        for metric in (self.drifted, self.scheduling, self.running, self.gone, self.low, self.exhausted, self.low_free):
            metric.labels(region)

    def show_orphans(self, region: str, counts: Mapping[str, int]) -> None:
        """Show how many orphans of each sort there are."""
        for subject in SUBJECTS:
            self.orphans.labels(region, subject).set(counts.get(subject, 0))

    def show_flavors(self, region: str, free: Mapping[str, int]) -> None:
        """Show how many more servers of each flavor fit, by its name; those no longer on offer are not shown."""
        for name in self._offered.get(region, set()) - free.keys():
            self.flavors.remove(region, name)
        for name, count in free.items():
            self.flavors.labels(region, name).set(count)
        self._offered[region] = set(free)

    def fall_silent(self) -> None:
        """Show nothing that only the process knows that leads."""
        gauges = (self.servers, self.drifted, self.orphans, self.low, self.exhausted, self.low_free, self.flavors)
        for gauge in (*gauges, self.vlans_taken, self.vlans_free):
            gauge.clear()
        self._offered.clear()
