"""The end of instances that nobody asked for by name: their network goes, and takes them along."""

from contextlib import suppress

import structlog

from remuda.compute.kinds.instances import ComputeInstance
from remuda.kernel.errors import Conflict, NotFound, Unreadable, Unsealable
from remuda.kernel.randomness import Randomness
from remuda.reconcile.results import Run
from remuda.reconcile.sources import names
from remuda.resources.conventions import NETWORK
from remuda.resources.crud import find
from remuda.store.contract import Store


async def end_instances_on(store: Store, network: str, randomness: Randomness, *, controller: str) -> int:
    """Ask for every instance on a network to go, and return of how many that was asked. To ask twice is fine."""
    count = 0
    async for name in names(store, ComputeInstance, labels={NETWORK: network}):
        try:
            instance = await find(store, ComputeInstance, name, marked=False)
        except (Unreadable, Unsealable):
            structlog.get_logger().exception("instance not ended", instance=name, network=network)
            continue
        if instance is None:
            continue
        run = Run(controller=controller, key=name, cause="event", registry=store.registry, randomness=randomness)
        entry = run.entry(instance, "NetworkDeleted", network=network, why="its network goes, and takes it along")
        with suppress(NotFound, Conflict):  # it went meanwhile, or is another one by now, which is told anew
            await store.delete(ComputeInstance, name, uid=instance.uid, log=[entry])
            count += 1
    return count
