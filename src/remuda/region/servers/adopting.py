"""The address of a server that was at its provider before its object was: it keeps the one that it has there."""

from ipaddress import IPv4Address

from remuda.region.kinds.addresses import Address
from remuda.region.kinds.networks import Network
from remuda.region.kinds.servers import Server
from remuda.region.networks.addresses import take_this_address
from remuda.store.contract import Store


async def take_adopted_address(store: Store, network: Network, server: Server) -> Address | None:
    """Give an adopted server the address that it has, or return None if another has it.

    If it is still held for the object that was lost, it is this one's: both have the same uid at the provider.
    """
    assert server.spec.adopted is not None, "it was adopted"
    return await take_this_address(store, network, server, IPv4Address(server.spec.adopted.address))
