"""What must hold in identity when everything has come to rest."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from remuda.identity.kinds.oauth import AuthorizationCode, BrowserLogin, DeviceGrant
from remuda.identity.kinds.tenancy import CONTROLLER_FINALIZER, Organization, Project, domain_id
from remuda.identity.kinds.tokens import Revocation
from remuda.identity.kinds.users import Group
from remuda.kernel.conditions import find_condition
from remuda.resources.conventions import NAME, ORGANIZATION, PROJECT, USER
from tests.kit.sim_identity.history import IdentityHistory
from tests.kit.sim_identity.invariants import actual, living, sums
from tests.kit.sim_identity.snapshot import IdentitySnapshot

_SOON = timedelta(minutes=1)
REMEMBERED = timedelta(days=1)
"""For how long past its end a revocation is there, in case a clock is put back."""


def unrest(seen: IdentitySnapshot, history: IdentityHistory, now: datetime, *, is_cleared: bool) -> list[str]:
    """Return what keeps identity from being at rest. What was `cleared` has nothing that keeps it from going."""
    return [
        *_operations(seen),
        *_orphans(seen, history),
        *_tenants(seen, is_cleared=is_cleared),
        *_domains(seen),
        *_ledgers(seen),
        *_groups(seen),
        *_tokens(seen, history, now),
        *_halves(seen, history),
    ]


def _operations(seen: IdentitySnapshot) -> Iterator[str]:
    for each in seen.operations.values():
        if each.is_open:
            yield f"the operation {each.spec.saga} {each.name} is {each.phase}"


def _halves(seen: IdentitySnapshot, history: IdentityHistory) -> Iterator[str]:
    """What was to be done together was done or not, whole."""
    for bundle in history.bundles:
        done = set()
        for key, number in bundle.items():
            before, found = history.facts[key].before(number), actual(seen, key)
            if before is not None and found is not None:
                wanted = history.facts[key].possible - {before}
                done |= {found != before} if wanted else set()
        if len(done) > 1:
            yield f"this was done in part: {sorted(bundle)}"


def _orphans(seen: IdentitySnapshot, history: IdentityHistory) -> Iterator[str]:
    """Nothing is there that was surely not made."""
    for kind in ("organization", "project", "group", "account", "provider", "client", "row"):
        for each in seen.of(kind).values():
            if each.metadata.labels.get(NAME) in history.refused:
                yield f"the {kind} {each.name} was refused and is there"
    for person in seen.users_api.values():
        if person.spec.subject not in history.subjects:
            yield f"the user {person.spec.subject} was refused and is there"


def _tenants(seen: IdentitySnapshot, *, is_cleared: bool) -> Iterator[str]:
    tenants: tuple[Organization | Project, ...] = (*seen.organization.values(), *seen.project.values())
    for each in tenants:
        if not each.is_deleting:
            yield from _not_provisioned(seen, each)
        elif is_cleared or not _is_kept(seen, each):
            yield f"the {type(each).__name__} {each.name} is still going: {each.metadata.finalizers}"
    needed = {each.spec.provider_id for each in seen.organization.values()}
    for kind in ("group", "user", "account", "provider", "client"):
        for each in seen.of(kind).values():
            home = seen.organization.get(_home(each))
            is_kept = each.name in needed or (home is not None and home.is_deleting and _is_kept(seen, home))
            if each.is_deleting and not is_kept:
                yield f"the {kind} {each.name} is still going"


def _home(each: object) -> str:
    return str(each.metadata.labels.get(ORGANIZATION, ""))  # type: ignore[attr-defined]  # all objects have labels


def _is_kept(seen: IdentitySnapshot, each: Organization | Project) -> bool:
    """Tell whether something may still wait to go, because somebody needs it or something in it."""
    if isinstance(each, Organization):
        return any(_home(project) == each.name and _is_kept(seen, project) for project in seen.project.values())
    if not each.is_deleting:
        return False
    has_rows = any(row.metadata.labels[PROJECT] == each.name for row in living(seen, _home(each)))
    return has_rows or any(finalizer != CONTROLLER_FINALIZER for finalizer in each.metadata.finalizers)


def _not_provisioned(seen: IdentitySnapshot, each: Organization | Project) -> Iterator[str]:
    available = find_condition(each.status.conditions, "Available")
    said = "nothing" if available is None else available.reason
    request = each.spec.domain if isinstance(each, Organization) else ""
    domain = seen.domains.get(domain_id(request)) if request else None
    is_late = domain is not None and _home(domain) != each.name
    if said != ("DomainTaken" if is_late else "Provisioned"):
        yield f"the {type(each).__name__} {each.name} says {said}"


def _domains(seen: IdentitySnapshot) -> Iterator[str]:
    """Every domain that somebody has proven is requested by whoever has it; no record is published for the others."""
    requests = {each.name: each.spec.domain for each in seen.organization.values() if not each.is_deleting}
    had = {domain.spec.domain: _home(domain) for domain in seen.domains.values()}
    for domain, organization in had.items():
        if organization in requests and requests[organization] != domain:
            yield f"{organization} has {domain} and does not request it"


def _ledgers(seen: IdentitySnapshot) -> Iterator[str]:
    for head in seen.heads.values():
        if head.spec.intents:
            yield f"the head {head.name} has intents: {head.spec.intents}"
        rows = living(seen, head.name)
        if sums([head.spec.totals]) != sums(row.spec.allocations for row in rows):
            yield f"the head {head.name} is not its rows"
        for each in head.spec.projects:
            if each.project not in seen.project:
                yield f"the head {head.name} remembers the project {each.project}"
    for row in seen.row.values():
        if row.spec.state == "unconfirmed":
            yield f"the row {row.name} is not confirmed"


def _groups(seen: IdentitySnapshot) -> Iterator[str]:
    for group in seen.group.values():
        if group.is_deleting:
            continue
        gone = [each for each in group.spec.user_ids if each not in seen.user]
        gone += [each for each in group.spec.service_account_ids if not _is_account(seen, each)]
        if gone:
            yield f"the group {group.name} has members that are gone: {gone}"
        if sorted(_subjects(seen, group)) != sorted(each.id for each in group.spec.subjects):
            yield f"the users and subjects of the group {group.name} are not the same users: {group.spec}"
    for project in seen.project.values():
        if not project.is_deleting and (left := set(project.spec.group_ids) - seen.group.keys()):
            yield f"the project {project.name} has groups that are gone: {left}"


def _is_account(seen: IdentitySnapshot, account: str) -> bool:
    return account in seen.account and not seen.account[account].is_deleting


def _subjects(seen: IdentitySnapshot, group: Group) -> Iterator[str]:
    for each in group.spec.user_ids:
        if each in seen.user:
            yield seen.users_api[seen.user[each].metadata.labels[USER]].spec.subject


def _tokens(seen: IdentitySnapshot, history: IdentityHistory, now: datetime) -> Iterator[str]:
    """What has ended is forgotten, and what was replaced is revoked."""
    for account in seen.account.values():
        if account.spec.replaced and not account.is_deleting:
            yield f"the account {account.name} has tokens to be revoked"
    passing: tuple[AuthorizationCode | DeviceGrant | BrowserLogin | Revocation, ...]
    passing = (*seen.codes.values(), *seen.grants.values(), *seen.logins.values(), *seen.revocations.values())
    for each in passing:
        longer = REMEMBERED if isinstance(each, Revocation) else timedelta()
        if each.spec.expires is None or each.spec.expires + longer <= now + _SOON:
            yield f"the {type(each).__name__} {each.name} has expired, or will any moment"
    for session in seen.sessions.values():
        if session.spec.ended is not None or session.spec.expires is None or session.spec.expires <= now + _SOON:
            yield f"the session {session.name} is over, or will be any moment"
        if session.spec.login in history.logged_out:
            yield f"the session {session.name} has outlived its login"
    for token in history.tokens:
        is_over = token.claims["exp"] + REMEMBERED.total_seconds() <= now.timestamp()
        if token.find_revocation and not is_over and token.claims["jti"] not in seen.revocations:
            yield f"the token {token.claims['jti']} was revoked and others are not told"
