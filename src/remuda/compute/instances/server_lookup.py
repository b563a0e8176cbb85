"""Which of the servers that name an instance are its own.

A server says by its tags to which instance it belongs, and to which incarnation of it. One that names an incarnation of
before is a leftover. One that names none was tagged by an existing cluster, which had no incarnations; it is ours if it
is the server that the instance is linked to, or if the instance has no link either. Else it is not clear whose it is:
nothing is done then, as if there were two of its own, and it is not removed with the instance.

Servers are looked for where the labels of the instance say that it is. One of its own that is elsewhere tells that
these labels are damaged: then nothing is done, and above all the instance is not let go without it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from remuda.compute.instances.damage import broken_link, displaced, missing_labels, wrong_labels
from remuda.compute.instances.rules import place_of
from remuda.compute.kinds.instances import ComputeInstance
from remuda.compute.ports import RegionPort
from remuda.compute.seen import ServerSeen


@dataclass(frozen=True, slots=True, kw_only=True)
class Linked:
    """The servers that name an instance."""

    standing: Sequence[ServerSeen]
    """Those that may be its own, but for those that are being deleted: there must be one."""
    going: Sequence[ServerSeen]
    """Those that may be its own and are being deleted."""
    own: Sequence[ServerSeen] = ()
    """Those of these that surely are."""
    leftovers: Sequence[ServerSeen]
    """Those of an earlier instance of its name."""
    elsewhere: Sequence[ServerSeen] = ()
    """Its own that are not where its labels say that it is."""
    damage: str = ""
    """What is wrong with its labels, if anything."""


async def linked_to(region: RegionPort, instance: ComputeInstance) -> Linked:
    """Look for the servers of an instance, and whether its labels are whole; if one is missing, nobody is asked."""
    if missing := missing_labels(instance):
        return Linked(standing=(), going=(), leftovers=(), damage=missing)
    linked = sorted_out(instance, await servers_naming(region, instance))
    if linked.elsewhere and not linked.own:
        return replace(linked, damage=displaced(instance, linked.elsewhere[0]))
    return replace(linked, damage=broken_link(instance))


async def servers_naming(region: RegionPort, instance: ComputeInstance) -> Sequence[ServerSeen]:
    """Return the servers that name an instance: all of them where it is, and its own elsewhere."""
    found = await region.servers_anywhere(instance.name, place_of(instance))
    return [each for each in found if is_here(instance, each) or _is_linked(instance, each)]


def sorted_out(instance: ComputeInstance, servers: Iterable[ServerSeen]) -> Linked:
    """Tell servers that name an instance apart."""
    servers = list(servers)
    here = [each for each in servers if is_here(instance, each)]
    claiming = [each for each in here if each.incarnation in {"", instance.uid}]
    return Linked(
        standing=[each for each in claiming if not each.is_marked],
        going=[each for each in claiming if each.is_marked],
        own=[each for each in claiming if _is_own(instance, each)],
        leftovers=[each for each in here if each.incarnation not in {"", instance.uid}],
        elsewhere=[each for each in servers if each not in here and _is_linked(instance, each)],
    )


def is_here(instance: ComputeInstance, server: ServerSeen) -> bool:
    """Tell whether a server is where the labels of an instance say that it is."""
    return not wrong_labels(instance, server)


def is_ambiguous(instance: ComputeInstance, standing: Sequence[ServerSeen]) -> bool:
    """Tell whether it is not clear which server is its own: several may be, or one that it is not linked to."""
    return len(standing) > 1 or any(instance.spec.server_id not in {"", each.id} for each in standing)


def _is_own(instance: ComputeInstance, server: ServerSeen) -> bool:
    """Tell whether a server that names an instance surely belongs to this incarnation of it."""
    if server.incarnation:
        return server.incarnation == instance.uid
    return instance.spec.server_id in {"", server.id}


def _is_linked(instance: ComputeInstance, server: ServerSeen) -> bool:
    """Tell whether a server is of this incarnation wherever it is: it says so, or is the very one."""
    return server.incarnation == instance.uid or (not server.incarnation and server.id == instance.spec.server_id)
