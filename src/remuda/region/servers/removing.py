"""How what a server has at its provider goes: one thing after the other, each until it is really gone."""

from collections.abc import Awaitable, Callable, Sequence

from remuda.providers.contract.common import Handle, InUse, id_in, server_name, uid_in
from remuda.quota.reservation import SOON_S
from remuda.reconcile.results import Again, Result
from remuda.region.catalogue.provider_registry import Cloud, need
from remuda.region.deletion import going
from remuda.region.kinds.identities import Identity
from remuda.region.kinds.server_parts import Replacement
from remuda.region.kinds.servers import Server
from remuda.region.servers.provider_spec import number_in, port_handle, server_handle

_Find = Callable[[Handle], Awaitable[object | None]]
_Remove = Callable[[Handle], Awaitable[None]]
Thing = tuple[Handle, _Find, _Remove]
"""Something at a provider: its name there, how to look for it, and how to remove it."""


def things_of(server: Server, cloud: Cloud, home: Identity) -> list[Thing]:
    """Return what a server may have at its provider, in the order in which it can be removed."""
    turn = server.status.replacement or Replacement()
    servers, ports = need(cloud.provider.servers), need(cloud.provider.ports)

    async def remove_port(port: Handle) -> None:
        try:
            await ports.remove_port(port)
        except InUse:
            await remove_late(port, cloud)
            raise

    made = [server_handle(server, home, number) for number in range(turn.done, turn.counter + 1)]
    things: list[Thing] = [(each, servers.find_server, servers.remove_server) for each in made]
    return [*things, (port_handle(server, home), ports.find_port, remove_port)]


async def remove_late(port: Handle, cloud: Cloud, *, older_than: str | None = None) -> None:
    """Remove the server behind a port, if it is `older_than` the one of that name.

    Somebody who slept asked for it when it had long been replaced, and everybody had looked and seen it gone.
    """
    found = await need(cloud.provider.ports).find_port(port)
    behind = number_in(found.server) if found is not None else None
    last = number_in(older_than) if older_than is not None else None
    if found is None or behind is None or (last is not None and behind >= last):
        return
    if found.server == server_name(id_in(port.name), uid_in(port.name), behind):  # it is of the same server as the port
        await need(cloud.provider.servers).remove_server(Handle(port.tenancy, found.server))


async def all_gone(things: Sequence[Thing], cloud: Cloud) -> Result | None:
    """Remove things one after the other; return what to wait for, or None when all are gone.

    That one is gone is known until all are: else it would be looked for anew at each step of the next one.
    """
    for handle, find_, remove in things:
        left = await _gone(handle, find_, remove, cloud)
        if left is not None:
            return left
    for handle, _, _ in things:
        cloud.absences.is_there(handle)
    return None


async def _gone(handle: Handle, find_: _Find, remove: _Remove, cloud: Cloud) -> Result | None:
    try:
        return await going(handle, find_, remove, cloud)
    except InUse:
        return Again(SOON_S, "Deprovisioning", "the provider still uses it")
