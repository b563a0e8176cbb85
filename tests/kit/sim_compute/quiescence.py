"""What must hold of instances when everything has come to rest."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from remuda.compute.kinds import INSTANCE, ComputeInstance
from remuda.compute.names import INCARNATION, INSTANCE_TAG
from remuda.kernel.conditions import Condition, find_condition
from remuda.region.kinds.servers import Server
from remuda.region.servers.rules import read_server
from remuda.resources.conventions import NAME, RESOURCE_ID, RESOURCE_KIND, network_of, region_of
from tests.kit.sim_compute.history import ComputeHistory
from tests.kit.sim_region.quiescence import SAID
from tests.kit.sim_region.snapshot import RegionSnapshot

_NOTHING = Condition(
    type="Available",
    status="Unknown",
    reason="nothing",
    message="",
    last_transition_time=datetime.min.replace(tzinfo=UTC),
)

INSTANCE_OPERATIONS = "instance operations"
"""Operations on instances, as what is seen calls them."""


def unrest_of_instances(seen: RegionSnapshot, history: ComputeHistory, *, is_empty: bool) -> list[str]:
    """Return what keeps instances from being at rest; if it `is_empty`, whatever is there does."""
    left = [*_operations(seen), *_going(seen), *_servers(seen), *_paid(seen), *_policies(seen)]
    for instance in instances(seen).values():
        left += [f"the instance {instance.name} {what}" for what in _unsettled(seen, instance, history)]
    if is_empty:
        left += [f"the instance {name} is left" for name in instances(seen)]
    return left


def instances(seen: RegionSnapshot) -> Mapping[str, ComputeInstance]:
    """Return all instances by id."""
    return seen.of("instance")


def tags_of(server: Server) -> Mapping[str, str]:
    """Return the tags of a server."""
    return {tag.name: tag.value for tag in server.spec.tags}


def servers_of(seen: RegionSnapshot, instance: ComputeInstance) -> list[Server]:
    """Return the servers that say they belong to this very instance."""
    return [each for each in seen.of("server").values() if tags_of(each).get(INCARNATION) == instance.uid]


def rows_of(seen: RegionSnapshot) -> list[Any]:
    """Return what is held for instances."""
    living = [row for row in seen.row.values() if row.spec.state != "released"]
    return [row for row in living if row.metadata.labels[RESOURCE_KIND] == INSTANCE.qualified]


def cost_of(instance: ComputeInstance) -> Mapping[str, int]:
    """Return what an instance costs: what is wanted, or what its server still has, whichever is more."""
    spec, status = instance.spec, instance.status
    gpus = max(spec.gpus, status.applied.gpus if status.applied else 0)
    cost = {"servers": 1, "gpus": gpus, "floatingips": int(bool(spec.networking.public_ip))}
    return {kind: count for kind, count in cost.items() if count}


def held_by(row: Any) -> Mapping[str, int]:
    """Return what a row holds."""
    return {each.kind: each.committed for each in row.spec.allocations}


def available(thing: Any) -> Condition:
    """Return what something says of itself."""
    found = find_condition(thing.status.conditions, "Available")
    return found or _NOTHING


def _operations(seen: RegionSnapshot) -> Iterator[str]:
    for each in seen.of(INSTANCE_OPERATIONS).values():
        if each.is_open:
            yield f"the operation {each.spec.saga} {each.name} is {each.phase}"


def _going(seen: RegionSnapshot) -> Iterator[str]:
    """Deletes end."""
    for instance in instances(seen).values():
        if instance.is_deleting:
            yield f"the instance {instance.name} is still going: {available(instance)}"


def _policies(seen: RegionSnapshot) -> Iterator[str]:
    """A policy goes with its project."""
    for name in seen.of("policy").keys() - seen.of("project").keys():
        yield f"the policy of the project {name} is left"


def _servers(seen: RegionSnapshot) -> Iterator[str]:
    """No server says that it belongs to an instance which is not there, or is another one."""
    for server in seen.of("server").values():
        tags = tags_of(server)
        named = tags.get(INSTANCE_TAG)
        owner = None if named is None else instances(seen).get(named)
        if named is not None and (owner is None or owner.uid != tags.get(INCARNATION)):
            yield f"the server {server.name} belongs to the instance {named}, which is not there"


def _paid(seen: RegionSnapshot) -> Iterator[str]:
    """What is held is what there is."""
    rows = rows_of(seen)
    for row in rows:
        name = row.metadata.labels[RESOURCE_ID]
        if name not in instances(seen):
            yield f"the row {row.name} holds something for the instance {name}, which is gone"
        if row.spec.state != "confirmed":
            yield f"the row {row.name} of the instance {name} is {row.spec.state}"
    for instance in instances(seen).values():
        held = [held_by(row) for row in rows if row.metadata.labels[RESOURCE_ID] == instance.name]
        wanted = [] if available(instance).reason == "QuotaExceeded" else [cost_of(instance)]
        if held != wanted:
            yield f"the instance {instance.name} costs {wanted}, and {held} is held"


def _unsettled(seen: RegionSnapshot, instance: ComputeInstance, history: ComputeHistory) -> Iterator[str]:
    """An instance has one server, is what that is, and is as it is wanted or says why not."""
    reason, own = available(instance).reason, servers_of(seen, instance)
    if instance.is_deleting:
        return
    if len(own) not in _numbers_of_servers(reason, seen, instance, history):
        yield f"has {len(own)} servers, and says {available(instance)}"
        return
    if not own:
        return
    server = own[0]
    if server.name != instance.spec.server_id or tags_of(server)[INSTANCE_TAG] != instance.name:
        yield f"is linked to {instance.spec.server_id}, and its server is {server.name}"
    yield from _shown(instance, server)
    if reason == "Provisioned":
        yield from _made_of(instance, server)
    elif reason not in {*SAID, available(server).reason, "Errored", "DependencyNotFound"}:
        yield f"says {available(instance)}, and its server {available(server)}"
    if (reason == "Provisioned") != (available(server).reason == "Provisioned") and reason != "DependencyNotFound":
        yield f"says {available(instance)}, and its server {available(server)}"


def _numbers_of_servers(
    reason: str, seen: RegionSnapshot, instance: ComputeInstance, history: ComputeHistory
) -> set[int]:
    """Return how many servers an instance may have that says this."""
    other = seen.of("server").get(instance.name)
    is_taken = other is not None and INSTANCE_TAG not in tags_of(other) and other.name in history.known["server"]
    if reason == "DependencyNotFound":  # it wants a group that is gone: from the beginning, or since it was changed
        return {0, 1}
    return {0} if reason == "QuotaExceeded" or (reason == "NameTaken" and is_taken) else {1}


def _shown(instance: ComputeInstance, server: Server) -> Iterator[str]:
    """What an instance shows is what its server is."""
    farm = (region_of(instance), network_of(instance), instance.metadata.labels[NAME])
    there = (region_of(server), network_of(server), server.metadata.labels[NAME])
    if farm != there:
        yield f"is {farm}, and its server {there}"
    status, real = instance.status, server.status
    shown = (status.private_ip, status.public_ip, status.mac_address)
    if shown != (real.private_ip, real.public_ip, real.mac_address):
        yield f"shows {shown}, and its server has {real}"
    power = "Error" if _is_broken(server) else real.phase
    if status.power_state != power:
        yield f"shows that it is {status.power_state}, and its server is {power}: {available(server)}"


def _is_broken(server: Server) -> bool:
    """Tell whether a server has failed, and does not go on as it was until there is capacity for another."""
    healthy = find_condition(server.status.conditions, "Healthy")
    is_kept = available(server).reason == "NoCapacity" and server.status.phase in {"Running", "Stopping", "Stopped"}
    has_failed = read_server(server).metadata.provisioning_status == "error"
    return (healthy is not None and healthy.reason == "Errored") or (has_failed and not is_kept)


def _made_of(instance: ComputeInstance, server: Server) -> Iterator[str]:
    """What an instance wants is what its server was asked to be."""
    wanted, asked = instance.spec, server.spec
    pairs = {
        "flavor": (wanted.flavor_id, asked.flavor_id),
        "image": (wanted.image_id, asked.image.id),
        "authority": (wanted.ssh_certificate_authority_id, asked.ssh_certificate_authority_id),
        "public": (wanted.wants_public_ip, asked.has_public_ip),
        "groups": (set(wanted.networking.security_group_ids), {each.id for each in asked.security_groups}),
        "user data": (_text(wanted.user_data), _text(asked.user_data)),
    }
    for what, (one, other) in pairs.items():
        if one != other:
            yield f"wants {what} {one}, and its server was asked for {other}"


def _text(secret: Any) -> str:
    return "" if secret is None else str(secret.reveal())
