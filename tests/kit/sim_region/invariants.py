"""What must hold in region and at its clouds at every moment, whatever is going on (I1 to I9 of the proofs)."""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from functools import cache
from ipaddress import IPv4Address
from typing import Any, cast

from remuda.identity.quotas.schema import allocation_id
from remuda.quota.lifecycle import is_quota_confirmed
from remuda.region.kinds.common import is_abandoned
from remuda.resources.conventions import NAME, NETWORK, ORGANIZATION, PROJECT, RESOURCE_ID, identity_of, network_of
from tests.kit.sim_identity.facts import UNKNOWN
from tests.kit.sim_identity.history import GONE
from tests.kit.sim_identity.invariants import check_head
from tests.kit.sim_identity.snapshot import IdentitySnapshot as IdentitySeen
from tests.kit.sim_region.history import KINDS, RegionHistory
from tests.kit.sim_region.snapshot import RegionSnapshot, Row

CHARGED = ("networks", "balancers", "storages")
"""What costs something, by the tables of a cloud."""
REFERENCE = "objectstorageendpoints.storage.unikorn-cloud.org/one"
"""By what another service says that it uses a network."""


def check_always(seen: RegionSnapshot, history: RegionHistory) -> None:
    """No invariant of one moment is broken."""
    check_owners(seen, history)
    check_addresses(seen)
    check_paid(seen)
    check_tenants(seen)
    check_operations(seen)
    check_told(seen, history)
    check_images(seen, history)


def check_owners(seen: RegionSnapshot, history: RegionHistory) -> None:
    """I1, I8: whatever is at a cloud is somebody's, who was written down before it was made and is still there.

    Only what an operator released may be nobody's.
    """
    for row in seen.rows.values():
        is_known = seen.owner_of(row) is not None or row.owner[2] in history.abandoned
        assert is_known, f"{row.table} has {row.name}, which is nobody's"
    servers = Counter(row.owner for row in seen.at_cloud("servers"))
    assert not [owner for owner, count in servers.items() if count > 1], f"a server is there twice: {servers}"


def check_addresses(seen: RegionSnapshot) -> None:
    """Whoever has an address at a cloud holds it in our store, unless its network is going; nobody holds two."""
    held = {each.spec.holder_uid: each.spec.ip for each in seen.of("address").values()}
    assert len(held) == len(seen.of("address")), f"somebody holds two addresses: {seen.of('address')}"
    for row in (*seen.at_cloud("ports"), *seen.at_cloud("balancers")):
        uid, network = row.owner[2], seen.of("network").get(row.network)
        if network is None or network.is_deleting:
            continue
        assert held.get(uid) == row.address, f"{row.name} has {row.address} and holds {held.get(uid)}"
    _check_storage_apart(seen)


def _check_storage_apart(seen: RegionSnapshot) -> None:
    """No storage is reached at an address that something else holds."""
    held = [(each.metadata.labels[NETWORK], IPv4Address(each.spec.ip)) for each in seen.of("address").values()]
    for storage in seen.of("storage").values():
        for each in storage.spec.attachments:
            first, last = IPv4Address(each.ip_range.start_ip), IPv4Address(each.ip_range.end_ip)
            both = [ip for network, ip in held if network == each.network_id and first <= ip <= last]
            assert not both, f"the storage {storage.name} is where something else is: {both}"


def check_paid(seen: RegionSnapshot) -> None:
    """I2: what is used is what the rows say, within the limits; and what is somebody's at a cloud is paid for."""
    for head in seen.heads.values():
        check_head(cast("IdentitySeen", seen), head)
    paid = {row.metadata.labels[RESOURCE_ID] for row in seen.row.values() if row.spec.state != "released"}
    for table in CHARGED:
        for row in seen.at_cloud(table):
            owner = seen.owner_of(row)
            is_released = owner is None or is_abandoned(owner)
            is_paid = is_released or owner.name in paid or not is_quota_confirmed(owner)
            assert is_paid, f"{row.name} is at the cloud, and not paid for"


def check_tenants(seen: RegionSnapshot) -> None:
    """I6: nothing names what is somebody else's. And nothing outlives what it is in."""
    for kind, each in seen.controlled:
        # What is going releases its project before it is gone itself.
        has_project = each.is_deleting or each.metadata.labels[PROJECT] in seen.of("project")
        assert has_project, f"the {kind} {each.name} has outlived its project"
        for other, name in _named(kind, each):
            found = seen.of(other).get(name)
            assert found is not None, f"the {kind} {each.name} has outlived the {other} {name}"
            where, there = _place(each), _place(found)
            assert where == there, f"the {kind} {each.name} in {where} names the {other} {name} in {there}"


def check_operations(seen: RegionSnapshot) -> None:
    """I7: at most one operation makes something. (Which of those that change it is at work is written on it.)"""
    at_work = Counter(
        (each.spec.subject_kind, each.spec.subject)
        for each in seen.operations.values()
        if each.is_open and each.spec.saga.endswith(".create")
    )
    assert not [subject for subject, count in at_work.items() if count > 1], f"two operations at once: {at_work}"
    begun = {
        intent.allocation for head in seen.heads.values() for intent in head.spec.intents if intent.action == "reserve"
    }
    for each in seen.operations.values() if begun else ():
        is_held = each.status.phase == "undone" and not begun.isdisjoint(_allocations(each.name))
        assert not is_held, f"the operation {each.name} was undone, and something is still being held for it"


@cache
def _allocations(operation: str) -> frozenset[str]:
    return frozenset(allocation_id(service, operation) for service in ("unikorn-region", "unikorn-compute"))


def check_told(seen: RegionSnapshot, history: RegionHistory) -> None:
    """What customers were told is so: what was made is there until somebody asks for it to go, and as it was wanted."""
    for kind in (*KINDS, "project"):
        for id_ in history.known[kind]:
            found = seen.of(kind).get(id_)
            is_there = found is not None and not found.is_deleting
            assert is_there or history.may_go((kind, id_)), f"the {kind} {id_} was made, and nobody asked for it to go"
            assert not (is_there and history.facts["there", kind, id_].is_surely(GONE)), (
                f"the {kind} {id_} is not going"
            )
    for (what, kind, id_), fact in list(history.facts.items()):
        found = seen.of(kind).get(id_) if what in READ else None
        if found is None or found.is_deleting or UNKNOWN in fact.possible:
            continue
        actual = READ[what](found)
        assert actual in fact.possible, f"{what} of the {kind} {id_} is {actual!r}, and can be {set(fact.possible)}"


def check_images(seen: RegionSnapshot, history: RegionHistory) -> None:
    """An image that somebody was promised is at its cloud, or on its way there; and when it was given up, neither."""
    for id_ in history.known["image"]:
        on_its_way, fact = seen.of("import").get(id_), history.facts["there", "image", id_]
        is_coming = on_its_way is not None and not on_its_way.is_deleting
        is_there = is_coming or id_ in seen.images
        assert is_there or history.may_go(("image", id_)), f"the image {id_} was made, and nobody gave it up"
        # What is being given up may still arrive, and is removed then.
        is_left = is_coming or (on_its_way is None and id_ in seen.images)
        assert not (is_left and fact.is_surely(GONE)), f"the image {id_} was given up, and is there"


READ: Mapping[str, Callable[[Any], Hashable]] = {
    "name": lambda found: found.metadata.labels[NAME],
    "servers": lambda network: network.spec.dns_nameservers,
    "held": lambda network: REFERENCE in network.metadata.finalizers,
    "ports": lambda group: tuple(rule.port.number for rule in group.spec.rules),
    "image": lambda server: server.spec.image.id,
    "public": lambda found: found.spec.has_public_ip if hasattr(found.spec, "flavor_id") else found.spec.public_ip,
    "size": lambda storage: storage.spec.size,
}
"""How facts are read from objects."""


def check_step(before: RegionSnapshot, after: RegionSnapshot, history: RegionHistory) -> None:
    """No invariant of two moments is broken, one after the other in the life of one process."""
    for kind, objects in after.objects.items():
        earlier = before.objects[kind]
        if earlier is objects:
            continue
        for name, found in objects.items():
            was = earlier.get(name)
            if was is not None and was.uid == found.uid and was is not found:
                _check_object(kind, was, found)
                if kind == "network":
                    _check_kept(after, was, found)
    if before.rows is not after.rows:
        for key in before.rows.keys() - after.rows.keys():
            _check_removed(before, after, history, before.rows[key])


def _check_object(kind: str, was: Any, found: Any) -> None:
    """I3, I4, I5: versions and generations only grow, and what is marked gets no new hold."""
    if was.version == found.version:
        assert was == found, f"two states of the {kind} {found.name} have the version {found.version}"
        return
    assert int(found.version) > int(was.version), f"the {kind} {found.name} went back in time"
    assert found.metadata.generation >= was.metadata.generation, f"the {kind} {found.name} is wanted as before"
    observed = getattr(getattr(found, "status", None), "observed_generation", 0)
    earlier = getattr(getattr(was, "status", None), "observed_generation", 0)
    assert earlier <= observed <= found.metadata.generation, f"the {kind} {found.name} is ahead of itself, or forgets"
    if was.is_deleting:
        assert found.is_deleting, f"the {kind} {found.name} is no longer to go"
        new = set(found.metadata.finalizers) - set(was.metadata.finalizers)
        assert not new, f"the {kind} {found.name} is going, and is newly held by {new}"


def _check_kept(seen: RegionSnapshot, was: Any, found: Any) -> None:
    """A network that another service uses goes with its project, and never alone."""
    if found.is_deleting and not was.is_deleting and REFERENCE in found.metadata.finalizers:
        project = seen.of("project").get(found.metadata.labels[PROJECT])
        is_ending = project is None or project.is_deleting
        assert is_ending, f"the network {found.name} is used, and was deleted all the same"


def _check_removed(before: RegionSnapshot, after: RegionSnapshot, history: RegionHistory, row: Row) -> None:
    """I9: what went from a cloud was to go, or to be replaced, or never came up, or was taken behind our back."""
    owner = before.owner_of(row)
    if owner is None or owner.is_deleting or row.name in history.disturbed:
        return
    kind, name, _ = row.owner
    if row.table == "servers":
        counter = int(row.name.rpartition(".")[2])
        is_failed = row.state in {"failed", "removing"} and not row.was_up
        is_replaced = counter < owner.cloud_number(owner.spec.replacement)
        assert is_failed or is_replaced, f"{row.name} was removed, and nobody asked for that"
        return
    raise AssertionError(f"{row.name} was removed, and the {kind} {name} is to stay: {after.owner_of(row)}")


def _named(kind: str, each: Any) -> list[tuple[str, str]]:
    """Return what something names, by kind and name."""
    named = []
    if kind in {"network", "group", "balancer", "server"}:
        named.append(("identity", identity_of(each)))
    if kind in {"group", "balancer", "server"}:
        named.append(("network", network_of(each)))
    if kind == "server":
        named += [("group", group.id) for group in each.spec.security_groups]
        if each.spec.ssh_certificate_authority_id:
            named.append(("authority", each.spec.ssh_certificate_authority_id))
    if kind == "storage":
        named += [("network", attached.network_id) for attached in each.spec.attachments]
    return named


def _place(each: Any) -> tuple[str, str]:
    return each.metadata.labels[ORGANIZATION], each.metadata.labels[PROJECT]
