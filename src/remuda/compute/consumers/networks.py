"""The end of a network is the end of the instances on it: that is how a project's end reaches them, too.

An instance looks at its network once more when it is there, so once a network is marked no new one comes to stay, and
to look once after the mark is enough. To ask twice is fine, so every process asks, whoever leads. A network that went
while nobody watched is not told of. But its instances have no server any more, which is noticed at once (`following`),
and the monitor ends them.
"""

from contextlib import aclosing
from dataclasses import dataclass

from remuda.compute.instances.ending import end_instances_on
from remuda.compute.instances.server_watch import followed
from remuda.compute.ports import ComputePorts


@dataclass(frozen=True, slots=True)
class NetworkConsumer:
    """Watches networks end. Have `keep` done as a duty."""

    ports: ComputePorts

    async def keep(self) -> None:
        """Watch for ever: a duty. Whatever goes wrong, all networks are looked at again."""
        ports = self.ports
        networks = followed(ports.region.networks, "networks", ports.clock, ports.randomness)
        async with aclosing(networks):
            async for seen in networks:
                if seen.is_marked or seen.is_gone:
                    await end_instances_on(ports.store, seen.id, ports.randomness, controller="networks")
