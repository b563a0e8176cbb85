"""The one server of an instance: found by where the instance is and by the tag, and never guessed."""

from collections.abc import Sequence
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter

from remuda.compute.instances.rules import place_of
from remuda.compute.kinds.instances import ComputeInstance
from remuda.compute.ports import RegionPort
from remuda.compute.seen import ServerSeen
from remuda.kernel.errors import Inconsistent, Malformed
from remuda.resources.regional import network_of, region_of

__all__ = ["Matches", "servers_of"]


async def servers_of(region: RegionPort, instance: ComputeInstance) -> Sequence[ServerSeen]:
    """Return the servers that say they belong to an instance, where it is; not those of an earlier one of its name."""
    found = await region.servers_of(instance.name, place_of(instance), region_of(instance), network_of(instance))
    return [server for server in found if server.incarnation in {"", instance.uid}]


@dataclass(frozen=True, slots=True)
class Matches:
    """Finds the one server of an instance, and counts where there is another number of them."""

    region: RegionPort
    odd: Counter

    @classmethod
    def over(cls, region: RegionPort, registry: CollectorRegistry) -> "Matches":
        """Return one that counts in a registry, in which all counts begin at nought."""
        text = "Requests that found no server of an instance that has one, or several."
        odd = Counter("remuda_compute_odd_matches", text, ["found"], registry=registry)
        for found in ("none", "several"):
            odd.labels(found)
        return cls(region, odd)

    async def one(self, instance: ComputeInstance) -> ServerSeen:
        """Return the server of an instance, or raise Inconsistent; an instance that has none yet is told so."""
        found = await servers_of(self.region, instance)
        if len(found) == 1:
            return found[0]
        if not found and (instance.is_marked or not instance.status.has_server):
            raise Malformed("instance has no server at the moment: wait until it is provisioned")
        self.odd.labels("several" if found else "none").inc()
        raise Inconsistent("instance", instance.name, part="server", found=len(found))
