"""The one server of an instance: found by where the instance is and by the tag, and never guessed."""

from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter

from remuda.compute.instances.server_lookup import is_ambiguous, servers_naming, sorted_out
from remuda.compute.kinds.instances import ComputeInstance
from remuda.compute.ports import RegionPort
from remuda.compute.seen import ServerSeen
from remuda.kernel.errors import Inconsistent, Malformed, NotFound


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
        """Return the server of an instance, or raise Inconsistent; an instance that has none yet is told so.

        One whose labels are damaged, so that its server is elsewhere, is nobody's: it is not found.
        """
        linked = sorted_out(instance, await servers_naming(self.region, instance))
        found = linked.standing or linked.going
        if len(found) == 1 and not is_ambiguous(instance, found):
            return found[0]
        if linked.elsewhere and not found:
            self.odd.labels("none").inc()
            raise NotFound("ComputeInstance", instance.name)
        if not found and (instance.is_marked or not instance.status.has_server):
            raise Malformed("instance has no server at the moment: wait until it is provisioned")
        count = len(found) if len(found) > 1 else 0  # a single one that it is not linked to is none of its own
        self.odd.labels("several" if count else "none").inc()
        raise Inconsistent("instance", instance.name, part="server", found=count)
