"""What must hold in identity at every moment, whatever is going on."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

from remuda.identity.kinds.quotas import Allocation, Amounts, Limits, Quota
from remuda.identity.kinds.tenancy import Organization, Project
from remuda.identity.kinds.users import user_id
from remuda.resources.conventions import NAME, ORGANIZATION, PROJECT, RESOURCE_ID, RESOURCE_KIND, USER
from tests.kit.sim_identity.facts import UNKNOWN
from tests.kit.sim_identity.guarded import check_guarded
from tests.kit.sim_identity.history import GONE, THERE, IdentityHistory, Key
from tests.kit.sim_identity.snapshot import IdentitySnapshot

Sums = Mapping[tuple[str, str], int]
"""How much of each kind, committed and reserved apart."""


def check_always(seen: IdentitySnapshot, history: IdentityHistory) -> None:
    """No invariant is broken."""
    for head in seen.heads.values():
        check_head(seen, head)
    check_tenants(seen)
    check_users(seen)
    check_facts(seen, history)
    check_guarded(seen, history.guarded)


def check_head(seen: IdentitySnapshot, head: Quota) -> None:
    """A head counts what its rows and intents hold, no more than it may, and nothing twice for the same owner."""
    rows = living(seen, head.name)
    under_way = {intent.allocation for intent in head.spec.intents}
    settled = [row for row in rows if row.name not in under_way]
    parts = [(intent.project, intent.amounts) for intent in head.spec.intents]
    parts += [(row.metadata.labels[PROJECT], row.spec.allocations) for row in settled]
    counted = sums(amounts for _, amounts in parts)
    said = sums([head.spec.totals])
    assert said == counted, f"the head {head.name} says {said} and there is {counted}: {head.spec}, {rows}"
    for project in {project for project, _ in parts} | {each.project for each in head.spec.projects}:
        ledger = next((each for each in head.spec.projects if each.project == project), None)
        counted = sums(amounts for of, amounts in parts if of == project)
        said = sums([ledger.totals]) if ledger else {}
        assert said == counted, f"the head {head.name} says {said} of {project} and there is {counted}"
        check_limits(said, {} if ledger is None else limits(ledger.quotas), f"the project {project}")
    defaults = {each.name: each.spec.default for each in seen.catalogue.values()}
    check_limits(sums([head.spec.totals]), {**defaults, **limits(head.spec.quotas)}, f"the organization {head.name}")
    owners = Counter(_owner(row) for row in rows)
    assert not [owner for owner, times in owners.items() if times > 1], f"an owner holds twice: {owners}"


def check_limits(totals: Sums, allowed: Mapping[str, int], who: str) -> None:
    """Nobody holds more than is allowed."""
    for kind in {kind for kind, _ in totals}:
        held = totals.get((kind, "committed"), 0) + totals.get((kind, "reserved"), 0)
        assert min(totals.values()) >= 0, f"{who} holds less than nothing: {totals}"
        assert held <= allowed.get(kind, held), f"{who} holds {held} of {allowed[kind]} {kind}"


def check_tenants(seen: IdentitySnapshot) -> None:
    """Nothing outlives its organization, and no project goes while something is held in it."""
    for kind in ("project", "group", "user", "account", "provider", "row"):
        for each in seen.of(kind).values():
            if isinstance(each, Allocation) and each.spec.state == "released":
                continue  # usage is remembered
            organization = each.metadata.labels[ORGANIZATION]
            assert organization in seen.organization, f"the {kind} {each.name} has outlived {organization}"
    for row in seen.row.values():
        project = row.metadata.labels[PROJECT]
        assert row.spec.state == "released" or project in seen.project, (
            f"{row.name} is held in {project}, which is gone"
        )
    tenants: tuple[Organization | Project, ...] = (*seen.organization.values(), *seen.project.values())
    for tenant in tenants:
        assert tenant.status.observed_generation <= tenant.metadata.generation, f"{tenant.name} is ahead of itself"


def check_users(seen: IdentitySnapshot) -> None:
    """A person is one user, and nobody is a member without being one."""
    for person in seen.users_api.values():
        assert person.name == user_id(person.spec.subject), f"{person.spec.subject} has another's id"
    for membership in seen.user.values():
        assert membership.metadata.labels[USER] in seen.users_api, f"the membership {membership.name} is nobody's"


def check_facts(seen: IdentitySnapshot, history: IdentityHistory) -> None:
    """Everything is one of the things that it can be by what customers were told."""
    for key, fact in history.facts.items():
        possible = fact.possible
        if UNKNOWN in possible:
            continue
        found = actual(seen, key)
        if found is None or found in possible:
            continue
        if (found == GONE or key[0] != THERE) and any(history.may_be_gone(*each) for each in _about(key)):
            continue
        raise AssertionError(f"{' '.join(key)} is {found} and should be {' or '.join(map(str, possible))}")


def actual(seen: IdentitySnapshot, key: Key) -> Hashable | None:
    """Return what a fact is by what is stored; None if it is nothing, since what it is about is not there."""
    what, kind, id_ = key[0], key[1], key[-1]
    if what == THERE:
        return THERE if is_there(seen.of(kind).get(id_)) else GONE
    if what == "limits":
        return frozenset(limits(seen.heads[id_].spec.quotas).items()) if id_ in seen.heads else frozenset()
    found = seen.group.get(key[2]) if what == "member" else seen.of(kind).get(id_) if what in _READ else None
    if found is None or found.is_deleting:
        return None
    return id_ in {*found.spec.user_ids, *found.spec.service_account_ids} if what == "member" else _READ[what](found)


def _amounts(row: Allocation) -> Hashable | None:
    return None if row.spec.state == "released" else frozenset(sums([row.spec.allocations]).items())


_READ: Mapping[str, Callable[[Any], Hashable]] = {
    "name": lambda found: found.metadata.labels[NAME],
    "state": lambda found: found.spec.state,
    "amounts": _amounts,
    "suspended": lambda found: found.spec.suspension is not None,
}
"""How facts are read from objects. Of secrets nothing is stored that could be compared: customers see if they hold."""


def _about(key: Key) -> list[tuple[str, str]]:
    """Return what a fact is about, by kind and id."""
    what, kind, *ids = key
    if kind == "users_api":
        return []  # whoever is there from the beginning stays
    return [("group", ids[0]), (kind, ids[1])] if what == "member" else [(kind, ids[0])]


def is_there(found: Any) -> bool:
    """Tell whether something is there for customers."""
    if found is None or (found.is_deleting and not isinstance(found, Allocation)):
        return False
    return not (isinstance(found, Allocation) and found.spec.state == "released")


def living(seen: IdentitySnapshot, organization: str) -> list[Allocation]:
    """Return the rows of an organization that hold something."""
    return [
        row
        for row in seen.row.values()
        if row.metadata.labels[ORGANIZATION] == organization and row.spec.state != "released"
    ]


def sums(parts: Iterable[Amounts]) -> Sums:
    """Return how much all of it is together, without what is nothing."""
    counted: Counter[tuple[str, str]] = Counter()
    for amounts in parts:
        for amount in amounts:
            counted[amount.kind, "committed"] += amount.committed
            counted[amount.kind, "reserved"] += amount.reserved
    return {kind: number for kind, number in counted.items() if number}


def limits(quotas: Limits) -> Mapping[str, int]:
    """Return limits by kind."""
    return {limit.kind: limit.quantity for limit in quotas}


def _owner(row: Allocation) -> str:
    return f"{row.metadata.labels[RESOURCE_KIND]}/{row.metadata.labels[RESOURCE_ID]}"
