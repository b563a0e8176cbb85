"""Design section 7 as a rule for identity, which is where organizations and projects are.

Nobody we know is 401. A path that names an organization or project outside the caller's permissions is 403, existing or
not; what is not there is 404 to everybody else, and so is what belongs elsewhere than the path says. What everybody may
ask (`acl`, `version`, the platform's providers) is never refused.
"""

from collections.abc import Iterator

from tests.kit.proofs.authorization.matrix import (
    ABROAD,
    HOME,
    LENT,
    NEXT_DOOR,
    NO_PROJECT,
    NOWHERE,
    PLACES,
    Caller,
    Right,
    Row,
    Scope,
    Target,
)
from tests.kit.proofs.authorization.trial import Rule

SPARE = Scope(HOME.organization, "a spare project")
"""A project of the home organization that nobody needs."""
SPARE_ORGANIZATION = Scope("a spare organization", "")
SOMEBODY, UNKNOWN = "user@example.com", "unknown@example.com"
READ_USERS: Right = ("identity:users", "read")

NEEDS_NO_PLACE = frozenset({"list_audit", "list_roles"})
"""What can be asked of an organization that is not there: its past, and what is the same for all."""
BEARER = frozenset({"read_userinfo", "post_userinfo"})
"""What is about the bearer of a token, so that there must be one."""
BY_BEARER = frozenset({"revoke_token", "introspect_token"})
"""Whoever shows a token here asks as its bearer, so it has to be good; others ask as the client that the form names."""
FOR_SERVICES = frozenset({"introspect_token"})
"""What a bearer is answered only if it is a service."""
NAMES_ONLY = frozenset({"list_projects"})
"""Lists for which it is enough to belong to the organization: they show what one may see of it, perhaps nothing."""
ITSELF = frozenset({"list_service_accounts"})
"""Lists that show a service account at least itself."""
READS_PROJECT = frozenset({"get_project_quotas"})
"""What is the organization's right, and about a project that one has to be able to read besides: what somebody may have
there, and uses, is not for who is refused the project itself."""
READ_PROJECTS: Right = ("identity:projects", "read")
DESTROYS = {"delete_organization": SPARE_ORGANIZATION, "delete_project": SPARE}


def targets(row: Row) -> Iterator[Target]:
    """Yield everything that a request of this operation could be about."""
    if row.operation == "list_organizations":
        yield Target(label="")
        yield from (Target(label=email, query=(("email", email),)) for email in (SOMEBODY, UNKNOWN))
    elif row.names == "nothing":
        yield Target(label="there", holder=HOME if row.thing else None)
        if row.thing:
            yield Target(label="absent")
    else:
        yield from _in_places(row)


def _in_places(row: Row) -> Iterator[Target]:
    has_project = "{projectID}" in row.path
    places = {"home": HOME, "abroad": ABROAD, "nowhere": NOWHERE}
    if has_project:
        places |= {"next door": NEXT_DOOR, "no such project": NO_PROJECT, "lent project": LENT}
    for label, place in places.items():
        yield Target(label=label, named=place, holder=place if row.thing and place in PLACES else None)
    if row.operation in DESTROYS:
        yield Target(label="spare", named=DESTROYS[row.operation])
    if row.thing:
        yield Target(label="absent", named=HOME)
        yield Target(label="a foreigner's through home", named=HOME, holder=ABROAD)
        yield Target(label="home's through abroad", named=ABROAD, holder=HOME)
        if has_project:
            yield Target(label="next door's through home", named=HOME, holder=NEXT_DOOR)


def expected(row: Row, caller: Caller, target: Target) -> int:
    """Return the status that this request must have."""
    if row.scope == "public":
        return _public(row, caller)
    if not caller.is_known:
        return 401
    if row.operation == "list_organizations":
        return _organizations(caller, target)
    if row.right is None:
        return row.success
    if not _is_allowed(row.right, row, caller, target):
        return 403
    return row.success if _is_found(row, target) else 404


def _public(row: Row, caller: Caller) -> int:
    """Nobody is asked who it is, except by what is about that."""
    has_bearer = caller.is_known and caller.own is None
    if row.operation in BEARER:
        return row.success if has_bearer else 401
    shows_bad_one = not caller.is_known and caller.name != "anonymous"
    if row.operation in BY_BEARER and shows_bad_one:
        return 401
    if row.operation in FOR_SERVICES and has_bearer and caller.sort != "system":
        return 401
    return row.success


def _organizations(caller: Caller, target: Target) -> int:
    """Everybody has a list, but for services, which belong nowhere; of somebody else it is for who may read users."""
    email = dict(target.query).get("email")
    if caller.sort == "account":
        return 200  # what it asks for is ignored
    if email is None:
        return 404 if caller.sort == "system" else 200
    if READ_USERS not in caller.everywhere and email != f"{caller.name}@example.com":
        return 403
    return 404 if email == UNKNOWN else 200


def _is_allowed(right: Right, row: Row, caller: Caller, target: Target) -> bool:
    if row.scope == "everywhere":
        return right in caller.everywhere
    place = target.named
    assert place is not None, "everything else is in a place"
    if row.operation in NAMES_ONLY:
        return caller.knows(right, place.organization)
    if row.operation in ITSELF and caller.sort == "account" and place == _home_of(caller):
        return True
    if row.operation in READS_PROJECT and not caller.may(READ_PROJECTS, place):
        return False
    if row.scope == "organization":
        return caller.may_in_all_of(right, place.organization)
    return caller.may(right, place)


def _home_of(account: Caller) -> Scope:
    return ABROAD if account.name == "foreign account" else HOME


def _is_found(row: Row, target: Target) -> bool:
    if row.thing and target.holder is None:
        return False
    if row.names == "nothing" or row.operation in NEEDS_NO_PLACE:
        return True
    there = target.named
    if there not in {*PLACES, SPARE, SPARE_ORGANIZATION}:
        return False
    if not row.thing:
        return True
    return target.holder == there


def missing(row: Row, caller: Caller, target: Target) -> Right | None:
    """Return the right that whoever is refused does not have."""
    if row.operation in READS_PROJECT and row.right is not None and target.named is not None:
        has_right = caller.may_in_all_of(row.right, target.named.organization)
        return READ_PROJECTS if has_right else row.right
    return READ_USERS if row.operation == "list_organizations" else row.right


def is_spared(row: Row, target: Target) -> bool:
    """Tell whether everybody needs what this would destroy."""
    return row.operation in DESTROYS and target.label != "spare"


RULE = Rule(targets=targets, expected=expected, missing=missing, is_spared=is_spared)
