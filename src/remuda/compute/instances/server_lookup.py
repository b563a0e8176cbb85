"""Which of the servers that name an instance are its own.

A server says by its tags to which instance it belongs, and to which incarnation of it. One that names an incarnation of
before is a leftover. One that names none was tagged by an existing cluster, which had no incarnations; it is ours if it
is the server that the instance is linked to, or if the instance has no link either. Else it is not clear whose it is:
nothing is done then, as if there were two of its own, and it is not removed with the instance.

Servers are looked for where the labels of the instance say that it is. One of its own that is elsewhere tells that
these labels are damaged: then nothing is done, and above all the instance is not let go without it.

What can be wrong with a stored instance: its labels and its spec can be damaged behind our back.

Nothing is done to one that is damaged, and nothing is destroyed: its controller says what is wrong, and so does the
monitor. What is wrong with its spec alone keeps nobody from deleting it.

The one server of an instance: found by where the instance is and by the tag, and never guessed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from prometheus_client import CollectorRegistry, Counter

from remuda.compute.instances.rules import SCOPE, incarnation_of, instance_id, place_of, source_prefix
from remuda.compute.kinds import ComputeInstance
from remuda.compute.ports import RegionClient, is_deleting
from remuda.kernel.errors import Inconsistent, Malformed, NotFound
from remuda.region.servers.schema import ServerRead
from remuda.resources import conventions as labels
from remuda.resources import conventions as regional

_DAMAGED = "its labels are damaged: "


def missing_labels(instance: ComputeInstance) -> str:
    """Return which of the labels are missing that say where an instance is; nothing, if none is."""
    missing = [label for label in SCOPE if not instance.metadata.labels.get(label)]
    return f"{_DAMAGED}{', '.join(missing)} is missing" if missing else ""


def wrong_labels(instance: ComputeInstance, server: ServerRead) -> Mapping[str, str]:
    """Return the labels that an instance where this server is would have, and this one has not."""
    there = {
        labels.ORGANIZATION: server.metadata.organization_id,
        labels.PROJECT: server.metadata.project_id,
        regional.REGION: server.status.region_id,
        regional.NETWORK: server.status.network_id,
    }
    found = instance.metadata.labels
    return {label: value for label, value in there.items() if found.get(label) != value}


def displaced(instance: ComputeInstance, server: ServerRead) -> str:
    """Return what is wrong with an instance whose own server is elsewhere than its labels say."""
    found, right = instance.metadata.labels, wrong_labels(instance, server)
    told = [f"{label} is {found.get(label, '')} and should be {value}" for label, value in right.items()]
    return f"{_DAMAGED}{', '.join(told)}, as its server has it"


def broken_link(instance: ComputeInstance) -> str:
    """Return what is wrong with an instance that is linked to a server of another network or name."""
    found, linked = instance.metadata.labels, instance.spec.server_id
    if not linked or linked == instance_id(found[regional.NETWORK], found[labels.NAME]):
        return ""
    return f"{_DAMAGED}network and name are not those that its id follows from"


def broken_spec(instance: ComputeInstance) -> str:
    """Return what is wanted of an instance that no server can be asked for; nothing, if all of it can."""
    broken = [repr(each) for each in instance.spec.networking.allowed_source_addresses if source_prefix(each) is None]
    if not broken:
        return ""
    what = "which is no IPv4 prefix: replace what is in it"
    return f"its spec is damaged: networking.allowedSourceAddresses has {', '.join(broken)}, {what}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Linked:
    """The servers that name an instance."""

    standing: Sequence[ServerRead]
    """Those that may be its own, but for those that are being deleted: there must be one."""
    going: Sequence[ServerRead]
    """Those that may be its own and are being deleted."""
    own: Sequence[ServerRead] = ()
    """Those of these that surely are."""
    leftovers: Sequence[ServerRead]
    """Those of an earlier instance of its name."""
    elsewhere: Sequence[ServerRead] = ()
    """Its own that are not where its labels say that it is."""
    damage: str = ""
    """What is wrong with its labels, if anything."""


async def linked_to(region: RegionClient, instance: ComputeInstance) -> Linked:
    """Look for the servers of an instance, and whether its labels are whole; if one is missing, nobody is asked."""
    if missing := missing_labels(instance):
        return Linked(standing=(), going=(), leftovers=(), damage=missing)
    linked = sorted_out(instance, await servers_naming(region, instance))
    if linked.elsewhere and not linked.own:
        return replace(linked, damage=displaced(instance, linked.elsewhere[0]))
    return replace(linked, damage=broken_link(instance))


async def servers_naming(region: RegionClient, instance: ComputeInstance) -> Sequence[ServerRead]:
    """Return the servers that name an instance: all of them where it is, and its own elsewhere."""
    found = await region.list_servers(instance.name, place_of(instance))
    return [each for each in found if is_here(instance, each) or _is_linked(instance, each)]


def sorted_out(instance: ComputeInstance, servers: Iterable[ServerRead]) -> Linked:
    """Tell servers that name an instance apart."""
    servers = list(servers)
    here = [each for each in servers if is_here(instance, each)]
    claiming = [each for each in here if incarnation_of(each) in {"", instance.uid}]
    return Linked(
        standing=[each for each in claiming if not is_deleting(each)],
        going=[each for each in claiming if is_deleting(each)],
        own=[each for each in claiming if _is_own(instance, each)],
        leftovers=[each for each in here if incarnation_of(each) not in {"", instance.uid}],
        elsewhere=[each for each in servers if each not in here and _is_linked(instance, each)],
    )


def is_here(instance: ComputeInstance, server: ServerRead) -> bool:
    """Tell whether a server is where the labels of an instance say that it is."""
    return not wrong_labels(instance, server)


def is_ambiguous(instance: ComputeInstance, standing: Sequence[ServerRead]) -> bool:
    """Tell whether it is not clear which server is its own: several may be, or one that it is not linked to."""
    return len(standing) > 1 or any(instance.spec.server_id not in {"", each.metadata.id} for each in standing)


def _is_own(instance: ComputeInstance, server: ServerRead) -> bool:
    """Tell whether a server that names an instance surely belongs to this incarnation of it."""
    if incarnation := incarnation_of(server):
        return incarnation == instance.uid
    return instance.spec.server_id in {"", server.metadata.id}


def _is_linked(instance: ComputeInstance, server: ServerRead) -> bool:
    """Tell whether a server is of this incarnation wherever it is: it says so, or is the very one."""
    incarnation = incarnation_of(server)
    return incarnation == instance.uid or (not incarnation and server.metadata.id == instance.spec.server_id)


@dataclass(frozen=True, slots=True)
class Matches:
    """Finds the one server of an instance, and counts where there is another number of them."""

    region: RegionClient
    odd: Counter

    @classmethod
    def over(cls, region: RegionClient, registry: CollectorRegistry) -> "Matches":
        """Return one that counts in a registry, in which all counts begin at nought."""
        text = "Requests that found no server of an instance that has one, or several."
        odd = Counter("remuda_compute_odd_matches", text, ["found"], registry=registry)
        for found in ("none", "several"):
            odd.labels(found)
        return cls(region, odd)

    async def one(self, instance: ComputeInstance) -> ServerRead:
        """Return the server of an instance, or raise Inconsistent; an instance that has none yet is told so.

        One whose labels are damaged, so that its server is elsewhere, is nobody's: it is not found.
        """
        linked = sorted_out(instance, await servers_naming(self.region, instance))
        found = linked.standing or linked.going
        if len(found) == 1 and not is_ambiguous(instance, found):
            return found[0]
        if linked.elsewhere and not found:
            self.odd.labels("none").inc()
            raise NotFound("ComputeInstance", instance.name)
        if not found and (instance.is_deleting or not instance.status.has_server):
            raise Malformed("instance has no server at the moment: wait until it is provisioned")
        count = len(found) if len(found) > 1 else 0  # a single one that it is not linked to is none of its own
        self.odd.labels("several" if count else "none").inc()
        raise Inconsistent("instance", instance.name, part="server", found=count)
