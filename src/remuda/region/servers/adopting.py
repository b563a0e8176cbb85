"""The address of a server that was at its provider before its object was: it keeps the one that it has there."""

from ipaddress import IPv4Address

import msgspec

from remuda.region.kinds.addresses import Address, address_name
from remuda.region.kinds.networks import Network
from remuda.region.kinds.servers import Server
from remuda.region.networks.addresses import take_this_address
from remuda.resources.reading import find
from remuda.store.contract import Store

__all__ = ["take_adopted_address"]

replace = msgspec.structs.replace


async def take_adopted_address(store: Store, network: Network, server: Server) -> Address | None:
    """Give an adopted server the address that it has, or return None if another has it.

    If it is still held for the object that was lost, it is handed over in one write, so that nobody gets it in between.
    """
    assert server.spec.adopted is not None, "it was adopted"
    ip = IPv4Address(server.spec.adopted.address)
    held = await find(store, Address, address_name(network.name, ip))
    if held is not None and held.spec.holder_uid == server.spec.adopted.uid:
        return await store.update(replace(held, spec=replace(held.spec, holder_uid=server.uid)))
    return await take_this_address(store, network, server, ip)
