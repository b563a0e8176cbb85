"""Things that only operators can help: a deletion that does not get on, a server without its object, and an orphan."""

from itertools import count

from msgspec.structs import replace

from remuda.kernel.clock import SystemClock
from remuda.providers.contract.common import Handle
from remuda.region.kinds.networks import Identity
from remuda.region.kinds.orphans import new_orphan
from remuda.region.kinds.securitygroups import SecurityGroup
from remuda.region.kinds.servers import Server
from remuda.region.servers.provider_spec import server_handle
from remuda.resources.conventions import identity_of, region_of
from remuda.store.contract import Store
from remuda.store.objects import ResourceT

STUCK = "things.example.org/stuck"
"""A finalizer that nobody takes away."""

_numbers = count()


async def strand_group(store: Store, group: str) -> None:
    """Ask for a security group to go, which it never will."""
    found = await store.get(SecurityGroup, group)
    await store.update(_kept_by(found, (*found.metadata.finalizers, STUCK)))
    await store.delete(SecurityGroup, group, uid=found.uid)


async def lose_server(store: Store, server: str) -> str:
    """Take a server's object away behind everybody's back, and return the id of the record of what is left."""
    found = await store.get(Server, server)
    home = await store.get(Identity, identity_of(found))
    handle, now = server_handle(found, home, 0), SystemClock().now()
    await store.update(_kept_by(found, ()))
    await store.delete(Server, server, uid=found.uid)
    return (await store.create(new_orphan(region_of(found), "server", handle, "ObjectUnknown", now))).name


async def make_orphan(store: Store, region: str) -> str:
    """Make the record of a network that is nobody's, and return its id."""
    handle, now = Handle("nobody's", f"network-{next(_numbers)}"), SystemClock().now()
    return (await store.create(new_orphan(region, "network", handle, "ObjectUnknown", now))).name


def _kept_by(found: ResourceT, finalizers: tuple[str, ...]) -> ResourceT:
    return replace(found, metadata=replace(found.metadata, finalizers=finalizers))
