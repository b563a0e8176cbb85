"""Which of the servers that name an instance are its own.

A server says by its tags to which instance it belongs, and to which incarnation of it. One that names an incarnation of
before is a leftover. One that names none was tagged by an existing cluster, which had no incarnations; it is ours if it
is the server that the instance is linked to, or if the instance has no link either.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from remuda.compute.instances.rules import SCOPE, instance_id, place_of
from remuda.compute.kinds.instances import ComputeInstance
from remuda.compute.ports import RegionPort
from remuda.compute.seen import ServerSeen
from remuda.resources import labels, regional

__all__ = ["Linked", "damage_of", "is_own", "servers_naming", "sorted_out"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Linked:
    """The servers that name an instance."""

    standing: Sequence[ServerSeen]
    """Its own, but for those that are being deleted: there must be one."""
    going: Sequence[ServerSeen]
    """Its own that are being deleted."""
    leftovers: Sequence[ServerSeen]
    """Those of an earlier instance of its name."""


async def servers_naming(region: RegionPort, instance: ComputeInstance) -> Sequence[ServerSeen]:
    """Return the servers where an instance is that name it, whichever incarnation of it they mean."""
    where = place_of(instance), regional.region_of(instance), regional.network_of(instance)
    return await region.servers_of(instance.name, *where)


def sorted_out(instance: ComputeInstance, servers: Iterable[ServerSeen]) -> Linked:
    """Tell servers that name an instance apart."""
    servers = list(servers)
    own = [each for each in servers if is_own(instance, each)]
    return Linked(
        standing=[each for each in own if not each.is_marked],
        going=[each for each in own if each.is_marked],
        leftovers=[each for each in servers if each.incarnation not in {"", instance.uid}],
    )


def is_own(instance: ComputeInstance, server: ServerSeen) -> bool:
    """Tell whether a server that names an instance belongs to this incarnation of it."""
    if server.incarnation:
        return server.incarnation == instance.uid
    return instance.spec.server_id in {"", server.id}


def damage_of(instance: ComputeInstance) -> str:
    """Return what is wrong with the labels that say where an instance is; nothing, if they are whole."""
    found = instance.metadata.labels
    missing = [label for label in SCOPE if not found.get(label)]
    if missing:
        return f"its labels are damaged: {', '.join(missing)} is missing"
    linked = instance.spec.server_id
    if linked and linked != instance_id(found[regional.NETWORK], found[labels.NAME]):
        return "its labels are damaged: network and name are not those that its id follows from"
    return ""
