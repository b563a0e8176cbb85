"""What must hold of instances at every moment, whatever is going on."""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from remuda.compute.kinds import ComputeInstance
from remuda.compute.names import INCARNATION
from remuda.quota.lifecycle import is_quota_confirmed
from remuda.region.kinds.servers import Server
from remuda.resources.conventions import ORGANIZATION, PROJECT, RESOURCE_ID, network_of
from tests.kit.sim_compute.history import ComputeHistory
from tests.kit.sim_compute.quiescence import cost_of, held_by, instances, rows_of, tags_of
from tests.kit.sim_identity.facts import UNKNOWN
from tests.kit.sim_identity.history import GONE
from tests.kit.sim_region.snapshot import RegionSnapshot

READ: Mapping[str, Callable[[ComputeInstance], Hashable]] = {
    "instance flavor": lambda instance: instance.spec.flavor_id,
    "instance image": lambda instance: instance.spec.image_id,
    "instance authority": lambda instance: instance.spec.ssh_certificate_authority_id,
    "instance public": lambda instance: bool(instance.spec.networking.public_ip),
    "instance groups": lambda instance: instance.spec.networking.security_group_ids,
    "instance kept": lambda instance: instance.spec.protection.deletion,
    "instance planned": lambda instance: instance.spec.protection.plan,
    "instance data": lambda instance: "" if instance.spec.user_data is None else instance.spec.user_data.reveal(),
}
"""How facts are read from instances."""
_RECREATED = ("flavor_id", "image_id", "ssh_certificate_authority_id")
"""What makes a server again if it becomes another, in the order in which the book has it."""


def check_instances(seen: RegionSnapshot, history: ComputeHistory, late: AbstractSet[str]) -> None:
    """No invariant of one moment is broken."""
    check_servers(seen, late)
    check_paid(seen)
    check_told(seen, history)


def check_servers(seen: RegionSnapshot, late: AbstractSet[str]) -> None:
    """An instance has one server at most, where it is itself, and pays for it, unless that came late (`Lives.late`)."""
    tagged = [each for each in seen.of("server").values() if INCARNATION in tags_of(each)]
    counts = Counter(tags_of(each)[INCARNATION] for each in tagged)
    assert not [uid for uid, count in counts.items() if count > 1], f"an instance has two servers: {tagged}"
    owners = {each.uid: each for each in instances(seen).values()}
    paid = {row.metadata.labels[RESOURCE_ID] for row in rows_of(seen)}
    for server in tagged:
        owner = owners.get(tags_of(server)[INCARNATION])
        if owner is None:
            continue  # `_check_last` says when that may be
        is_late = owner.is_deleting and server.uid in late
        assert is_late or owner.name in paid, f"the server of the instance {owner.name} is there, and not paid for"
        for label in (ORGANIZATION, PROJECT):
            farm, there = owner.metadata.labels[label], server.metadata.labels[label]
            assert farm == there, f"the instance {owner.name} is in {farm}, and its server in {there}"


def check_paid(seen: RegionSnapshot) -> None:
    """For every instance whose cost is held, at least that is held: more before it costs more, and less after."""
    held = {row.metadata.labels[RESOURCE_ID]: held_by(row) for row in rows_of(seen)}
    for instance in instances(seen).values():
        if instance.is_deleting or not is_quota_confirmed(instance):
            continue
        cost, found = cost_of(instance), held.get(instance.name, {})
        is_held = all(found.get(kind, 0) >= count for kind, count in cost.items())
        assert is_held, f"the instance {instance.name} costs {cost}, and {found} is held"


def check_told(seen: RegionSnapshot, history: ComputeHistory) -> None:
    """What customers were told is so: what was made is there until somebody asks for it to go, and as it was wanted."""
    for id_ in history.known["instance"]:
        found = instances(seen).get(id_)
        is_there = found is not None and not found.is_deleting
        assert is_there or history.may_go(("instance", id_)), f"the instance {id_} was made, and nobody asked it to go"
        is_gone = history.facts["there", "instance", id_].is_surely(GONE)
        assert not (is_there and is_gone), f"the instance {id_} is not going"
    for (what, kind, id_), fact in list(history.facts.items()):
        found = instances(seen).get(id_) if kind == "instance" and what in READ else None
        if found is None or found.is_deleting or UNKNOWN in fact.possible:
            continue
        actual = READ[what](found)
        assert actual in fact.possible, f"{what} of {id_} is {actual!r}, and can be {set(fact.possible)}"


class Lives:
    """What was seen of instances so far: each may be recreated once for every request, and keeps its addresses."""

    def __init__(self, history: ComputeHistory) -> None:
        self.late: set[str] = set()
        """Servers that came when their instance was going or gone, since one of two controllers had asked, by uid.

        The other may have found none and let the instance go: the monitor removes them, and at rest there is none.
        """
        self._history = history
        self._requests: Counter[str] = Counter()
        """How often something was wanted of an instance that makes its server again, by uid."""
        self._granted: Counter[str] = Counter()
        """For how many of these its server was recreated."""
        self._without: set[str] = set()
        """Servers that were to have no public address at some time, by uid."""
        self._past: defaultdict[str, set[tuple[str, ...]]] = defaultdict(set)
        """What instances were made of before, by uid: an operation that is undone takes them back to that."""

    def check_step(self, before: RegionSnapshot, after: RegionSnapshot, *, are_two: bool) -> None:
        """No invariant of two moments is broken, one after the other. `are_two` tells whether two controllers run."""
        if are_two:
            self.late |= _come_late(before, after)
        for was, found in _changes(instances(before), instances(after)):
            is_recreated = _made_of(was) != _made_of(found)
            self._requests[found.uid] += is_recreated
            self._check_addresses(was, found)
            if is_recreated and was.spec.protection.plan:
                is_agreed = _made_of(found) in self._history.agreed[found.name] | self._past[found.uid]
                assert is_agreed, f"the instance {found.name} becomes another, and nobody has agreed to a plan for that"
            self._past[found.uid].add(_made_of(was))
        _check_protected(before, after)
        _check_last(before, after, self.late)
        servers: Mapping[str, Server] = after.of("server")
        self._without.update(each.uid for each in servers.values() if not each.spec.has_public_ip)
        for earlier, server in _changes(before.of("server"), servers):
            self._check_recreated(earlier, server)
            self._check_public(earlier, server)

    def _check_addresses(self, was: ComputeInstance, found: ComputeInstance) -> None:
        """An instance keeps its address and its MAC, unless somebody removed its server with its port (C10)."""
        for what in ("private_ip", "mac_address"):
            one, other = getattr(was.status, what), getattr(found.status, what)
            is_kept = not one or one == other or found.name in self._history.undercut
            assert is_kept, f"{what} of the instance {found.name} was {one} and is {other}"

    def _check_recreated(self, was: Server, found: Server) -> None:
        """No server of an instance is recreated without a request."""
        incarnation = tags_of(found).get(INCARNATION)
        is_repeated = was.spec.replacement != found.spec.replacement or was.spec.image != found.spec.image
        if incarnation is None or not is_repeated:
            return
        self._granted[incarnation] += 1
        requests, granted = self._requests[incarnation], self._granted[incarnation]
        assert granted <= requests, f"the server {found.name} is recreated, and nobody asked for that: {granted}"

    def _check_public(self, was: Server, found: Server) -> None:
        """A server keeps its public address for as long as it is to have one (C10)."""
        one, other = was.status.public_ip, found.status.public_ip
        is_kept = not one or one == other or found.uid in self._without or found.is_deleting
        assert is_kept, f"the public address of the server {found.name} was {one} and is {other}"


def _check_protected(before: RegionSnapshot, after: RegionSnapshot) -> None:
    """What is protected from deletion goes with its network or project, and never alone."""
    for name, was in instances(before).items():
        if was.is_deleting or not was.spec.protection.deletion:
            continue
        found = instances(after).get(name)
        is_there = found is not None and found.uid == was.uid and not found.is_deleting
        homes = (after.of("network").get(network_of(was)), after.of("project").get(was.metadata.labels[PROJECT]))
        is_ending = any(home is None or home.is_deleting for home in homes)
        assert is_there or is_ending, f"the instance {name} is protected, and was deleted all the same"


def _come_late(before: RegionSnapshot, after: RegionSnapshot) -> set[str]:
    """Return the servers that came now, and whose instance goes or is gone."""
    known = {each.uid for each in before.of("server").values()}
    staying = {each.uid for each in instances(after).values() if not each.is_deleting}
    new = [each for each in after.of("server").values() if each.uid not in known and INCARNATION in tags_of(each)]
    return {each.uid for each in new if tags_of(each)[INCARNATION] not in staying}


def _check_last(before: RegionSnapshot, after: RegionSnapshot, late: AbstractSet[str]) -> None:
    """An instance outlives its server, unless that came late."""
    gone = {each.uid for each in instances(before).values()} - {each.uid for each in instances(after).values()}
    for name, server in after.of("server").items() if gone else ():
        was = before.of("server").get(name)
        is_last = was is not None and was.uid == server.uid and tags_of(server).get(INCARNATION) in gone
        assert not is_last or server.uid in late, f"the server {name} has outlived its instance"


def _made_of(instance: ComputeInstance) -> tuple[str, ...]:
    return tuple(getattr(instance.spec, each) for each in _RECREATED)


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[tuple[Any, Any]]:
    """Return what was and what is, of everything that is another now."""
    if before is after:
        return []
    pairs = [(before.get(name), found) for name, found in after.items()]
    return [(was, found) for was, found in pairs if was is not None and was is not found and was.uid == found.uid]
