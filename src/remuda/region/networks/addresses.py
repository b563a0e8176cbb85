"""Addresses of a network, each given to one holder at a time, in our own store before any provider hears of it.

To try is cheap and to list is not, so an address is tried for where few others look; only where that fails again and
again is it worked out which are free. An address goes with its network, and before that when its holder gives it back:
after the provider has let go of it, so that nobody else can have it too soon. It is held under the uid that the names
at the provider carry, so that whatever is found there, by whomever, tells whose address it has.
"""

from contextlib import suppress
from ipaddress import IPv4Address
from itertools import islice

from remuda.kernel.errors import AlreadyExists, Conflict, NotFound, OwnerRefused
from remuda.reconcile.sources import names
from remuda.region.kinds.addresses import Address, AddressSpec, address_name
from remuda.region.kinds.networks import NETWORK, Network
from remuda.region.kinds.servers import cloud_uid_of
from remuda.region.networks.address_plan import free_address, mac_of, probe_order
from remuda.region.networks.rules import plan_of
from remuda.resources import conventions as regional
from remuda.resources.conventions import ORGANIZATION, PROJECT
from remuda.resources.crud import find
from remuda.store.contract import Store
from remuda.store.objects import Metadata, ResourceT

_TRIES = 8


async def find_address(store: Store, holder: ResourceT) -> Address | None:
    """Return the address that a server or load balancer has; what another of its name had is none of its own."""
    return await find_held(store, holder.name, cloud_uid_of(holder))


async def find_held(store: Store, holder: str, uid: str) -> Address | None:
    """Return the address that is held for a holder, by its name and its uid at the cloud, even if that is gone."""
    found = (await store.list(Address, index=("holder", holder))).items
    return next((each for each in found if each.spec.holder_uid == uid), None)


async def take_address(store: Store, network: Network, holder: ResourceT) -> Address | None:
    """Give a holder that has none an address of a network, or return None if all are taken."""
    pool = plan_of(network).dhcp_pool
    for ip in islice(probe_order(pool, holder.uid), _TRIES):
        taken = await take_this_address(store, network, holder, ip)
        if taken is not None:
            return taken
    while (free := free_address(pool, holder.uid, await _used(store, network))) is not None:
        taken = await take_this_address(store, network, holder, free)
        if taken is not None:
            return taken
    return None


async def take_this_address(store: Store, network: Network, holder: ResourceT, ip: IPv4Address) -> Address | None:
    """Give a holder this address of a network, or return None if another has it."""
    where = {label: network.metadata.labels[label] for label in (ORGANIZATION, PROJECT, regional.REGION)}
    metadata = Metadata(
        name=address_name(network.name, ip),
        labels=where | {regional.NETWORK: network.name},
        owner_references=(NETWORK.owner(network),),
    )
    uid = cloud_uid_of(holder)
    spec = AddressSpec(ip=str(ip), mac=mac_of(network.name, ip), holder=holder.name, holder_uid=uid)
    try:
        return await store.create(Address(metadata=metadata, spec=spec))
    except OwnerRefused:
        raise Conflict(Network.__name__, network.name) from None  # it is to go since it was read, and its holder too
    except AlreadyExists:
        found = await find(store, Address, metadata.name)
        return found if found is not None and found.spec.holder_uid == uid else None


async def give_address_back(store: Store, holder: ResourceT) -> None:
    """Let others have the address of a holder that has no more use for it."""
    await give_held_back(store, holder.name, cloud_uid_of(holder))


async def give_held_back(store: Store, holder: str, uid: str) -> None:
    """Let others have the address that is held for a holder, by its name and its uid at the cloud."""
    found = await find_held(store, holder, uid)
    if found is not None:
        with suppress(NotFound):  # it went with its network meanwhile
            await store.delete(Address, found.name, uid=found.uid)


async def _used(store: Store, network: Network) -> set[IPv4Address]:
    """Return which addresses are taken, by the names of the objects that stand for them."""
    return {
        IPv4Address(name.rpartition(".")[2].replace("-", "."))
        async for name in names(store, Address, labels={regional.NETWORK: network.name})
    }
