"""The room's handlers: each asks the service and renders what it says."""

from remuda.http.responses import Collection, Rendered, Shown, untag
from remuda.http.routes import Call, Nothing
from remuda.region.kinds.networks import Network
from remuda.region.networks import rules
from remuda.region.networks import schema as wire
from remuda.region.networks.service import Networks
from remuda.resources.query import RegionalQuery


async def list_all(
    networks: Networks, call: Call[Nothing, RegionalQuery, Nothing]
) -> Collection[Network, list[wire.NetworkRead]]:
    return await networks.list(call.context, call.query)


async def create(networks: Networks, call: Call[Nothing, Nothing, wire.NetworkCreate]) -> Shown[wire.NetworkRead]:
    return Shown(rules.NETWORK_VIEW, await networks.create(call.context, call.body))


async def get(networks: Networks, call: Call[wire.NetworkPath, Nothing, Nothing]) -> Rendered[wire.NetworkRead]:
    found = await networks.get(call.context, call.path.network)
    return untag(await networks.store.get_view(Network, found.name, rules.NETWORK_VIEW))


async def update(
    networks: Networks, call: Call[wire.NetworkPath, Nothing, wire.NetworkUpdate]
) -> Shown[wire.NetworkRead]:
    return Shown(rules.NETWORK_VIEW, await networks.update(call.context, call.path.network, call.body))


async def delete(networks: Networks, call: Call[wire.NetworkPath, Nothing, Nothing]) -> None:
    """Give a network up."""
    await networks.delete(call.context, call.path.network)


async def add_reference(networks: Networks, call: Call[wire.ReferencePath, Nothing, Nothing]) -> None:
    await networks.add_reference(call.context, call.path.network, call.path.reference)


async def remove_reference(networks: Networks, call: Call[wire.ReferencePath, Nothing, Nothing]) -> None:
    """Keep a network no longer."""
    await networks.remove_reference(call.context, call.path.network, call.path.reference)
