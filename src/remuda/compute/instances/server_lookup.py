"""Lookup of the server that belongs to an instance.

The tags of a server name the instance and its incarnation (uid). A server of another incarnation is a previous one. A
server without an incarnation was tagged by an existing cluster; it belongs to the instance if the instance is linked to
it or to none. Otherwise the server is ambiguous: nothing is done to it, and it is not deleted with the instance.

Servers are looked up in the scope of the instance's labels. A server of this incarnation outside that scope shows that
the labels are damaged. A damaged instance is reported and left alone; damage of the spec alone does not prevent its
deletion.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from prometheus_client import CollectorRegistry, Counter

from remuda.compute.instances.rules import SCOPE, incarnation_of, instance_id, source_prefix
from remuda.compute.kinds import ComputeInstance
from remuda.compute.ports import RegionClient, is_deleting
from remuda.kernel.errors import Inconsistent, Malformed, NotFound
from remuda.quota.lifecycle import project_ref
from remuda.region.servers.schema import ServerRead
from remuda.resources.conventions import NAME, NETWORK, ORGANIZATION, PROJECT, REGION

_DAMAGED = "its labels are damaged: "


def missing_labels(instance: ComputeInstance) -> str:
    """Return a message about missing scope labels, or an empty string."""
    missing = [label for label in SCOPE if not instance.metadata.labels.get(label)]
    return f"{_DAMAGED}{', '.join(missing)} is missing" if missing else ""


def wrong_labels(instance: ComputeInstance, server: ServerRead) -> Mapping[str, str]:
    """Return the labels that differ from the scope of a server, with their right values."""
    expected = {
        ORGANIZATION: server.metadata.organization_id,
        PROJECT: server.metadata.project_id,
        REGION: server.status.region_id,
        NETWORK: server.status.network_id,
    }
    found = instance.metadata.labels
    return {label: value for label, value in expected.items() if found.get(label) != value}


def displacement(instance: ComputeInstance, server: ServerRead) -> str:
    """Return a message about an instance whose server is outside the scope of its labels."""
    found, expected = instance.metadata.labels, wrong_labels(instance, server)
    differences = [f"{label} is {found.get(label, '')} and should be {value}" for label, value in expected.items()]
    return f"{_DAMAGED}{', '.join(differences)}, as its server has it"


def broken_link(instance: ComputeInstance) -> str:
    """Return a message about an instance that is linked to a server of another network or name, or an empty string."""
    found, linked = instance.metadata.labels, instance.spec.server_id
    if not linked or linked == instance_id(found[NETWORK], found[NAME]):
        return ""
    return f"{_DAMAGED}network and name are not those that its id follows from"


def broken_spec(instance: ComputeInstance) -> str:
    """Return a message about a spec for which no server can be requested, or an empty string."""
    broken = [repr(each) for each in instance.spec.networking.allowed_source_addresses if source_prefix(each) is None]
    if not broken:
        return ""
    what = "which is not an IPv4 prefix: replace it"
    return f"its spec is damaged: networking.allowedSourceAddresses has {', '.join(broken)}, {what}"


def is_new(instance: ComputeInstance) -> bool:
    """Return whether an instance was never reconciled with a result, and is not damaged: so it has no known server."""
    status, spec = instance.status, instance.spec
    is_first = not status.conditions and not status.has_server and instance.metadata.generation == 1
    return (
        is_first
        and bool(spec.server_id)
        and not (missing_labels(instance) or broken_link(instance) or broken_spec(instance))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedServers:
    """The servers that are tagged with an instance."""

    candidates: Sequence[ServerRead]
    """Those that may belong to it and are not being deleted: there must be one."""
    deleting: Sequence[ServerRead]
    """Those that may belong to it and are being deleted."""
    own: Sequence[ServerRead] = ()
    """Those of both that certainly belong to it."""
    previous: Sequence[ServerRead]
    """Those of a previous incarnation."""
    displaced: Sequence[ServerRead] = ()
    """Its own outside the scope of its labels."""
    damage: str = ""
    """A message about damaged labels, or an empty string."""


async def find_linked(region: RegionClient, instance: ComputeInstance) -> LinkedServers:
    """Look up the servers of an instance, and check its labels. If a label is missing, region is not called."""
    if missing := missing_labels(instance):
        return LinkedServers(candidates=(), deleting=(), previous=(), damage=missing)
    linked = classified(instance, await list_tagged(region, instance))
    if linked.displaced and not linked.own:
        return replace(linked, damage=displacement(instance, linked.displaced[0]))
    return replace(linked, damage=broken_link(instance))


async def list_tagged(region: RegionClient, instance: ComputeInstance) -> Sequence[ServerRead]:
    """Return the servers that are tagged with an instance: all in its scope, and its own elsewhere."""
    found = await region.list_servers(instance.name, project_ref(instance))
    return [each for each in found if is_in_scope(instance, each) or _is_linked(instance, each)]


def classified(instance: ComputeInstance, servers: Iterable[ServerRead]) -> LinkedServers:
    servers = list(servers)
    here = [each for each in servers if is_in_scope(instance, each)]
    claiming = [each for each in here if incarnation_of(each) in {"", instance.uid}]
    return LinkedServers(
        candidates=[each for each in claiming if not is_deleting(each)],
        deleting=[each for each in claiming if is_deleting(each)],
        own=[each for each in claiming if _is_own(instance, each)],
        previous=[each for each in here if incarnation_of(each) not in {"", instance.uid}],
        displaced=[each for each in servers if each not in here and _is_linked(instance, each)],
    )


def is_in_scope(instance: ComputeInstance, server: ServerRead) -> bool:
    return not wrong_labels(instance, server)


def is_ambiguous(instance: ComputeInstance, candidates: Sequence[ServerRead]) -> bool:
    """Return whether several servers may belong to an instance, or one that it is not linked to."""
    return len(candidates) > 1 or any(instance.spec.server_id not in {"", each.metadata.id} for each in candidates)


def _is_own(instance: ComputeInstance, server: ServerRead) -> bool:
    """Return whether a tagged server certainly belongs to this incarnation."""
    if incarnation := incarnation_of(server):
        return incarnation == instance.uid
    return instance.spec.server_id in {"", server.metadata.id}


def _is_linked(instance: ComputeInstance, server: ServerRead) -> bool:
    """Return whether a server is of this incarnation, in any scope."""
    incarnation = incarnation_of(server)
    return incarnation == instance.uid or (not incarnation and server.metadata.id == instance.spec.server_id)


@dataclass(frozen=True, slots=True)
class ServerLookup:
    """Finds the one server of an instance, and counts failures."""

    region: RegionClient
    failures: Counter

    @classmethod
    def create(cls, region: RegionClient, registry: CollectorRegistry) -> "ServerLookup":
        text = "Requests that found no server of an instance that has one, or several."
        failed = Counter("remuda_compute_server_lookups_failed", text, ["found"], registry=registry)
        for found in ("none", "several"):
            failed.labels(found)
        return cls(region, failed)

    async def get(self, instance: ComputeInstance) -> ServerRead:
        """Return the server of an instance, or raise Inconsistent, or Malformed if it has none yet."""
        linked = classified(instance, await list_tagged(self.region, instance))
        found = linked.candidates or linked.deleting
        if len(found) == 1 and not is_ambiguous(instance, found):
            return found[0]
        if linked.displaced and not found:
            self.failures.labels("none").inc()
            raise NotFound("ComputeInstance", instance.name)
        if not found and (instance.is_deleting or not instance.status.has_server):
            raise Malformed("instance has no server at the moment: wait until it is provisioned")
        count = len(found) if len(found) > 1 else 0  # a single one that it is not linked to does not belong to it
        self.failures.labels("several" if count else "none").inc()
        raise Inconsistent("instance", instance.name, part="server", found=count)
