"""Who may give which role."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.access.principal import AccessList, OrganizationAccess, Permission, Principal, Verb
from remuda.identity.kinds.users import Grant, Role, RoleScopes, RoleSpec
from remuda.identity.rbac.roles import BUILT_IN, is_grantable, permissions_of, role_id
from remuda.kernel.errors import Forbidden, Malformed, RemudaError
from remuda.store.objects import Metadata
from tests.kit.identity.permissions import PermissionEnvironment
from tests.kit.identity.resource_api import ORG, OTHER_ORG, PROJECT

GRANTABLE = ["administrator", "auditor", "reader", "user"]
EVERY_ROLE = list(BUILT_IN)


def role(name: str) -> Role:
    return Role(metadata=Metadata(name=role_id(name)), spec=BUILT_IN[name])


def holder(name: str, organization: str = ORG) -> Principal:
    """Return whoever has a role in full: through a group that a project lists."""
    held = permissions_of(BUILT_IN[name])
    inside = OrganizationAccess(held.organization, {PROJECT: held.project})
    access = AccessList(everywhere=held.everywhere, organizations={organization: inside})
    return Principal(subject=name, type="user", access=access)


LATTICE = {
    "administrator": {"administrator", "auditor", "user", "reader"},
    "auditor": {"auditor", "reader"},
    "user": {"user", "reader"},
    "reader": {"reader"},
}


@pytest.mark.parametrize("holds", LATTICE)
def test_the_roles_of_an_organization_are_a_lattice(holds: str) -> None:
    assert {name for name in EVERY_ROLE if is_grantable(holder(holds), role(name), ORG)} == LATTICE[holds]


def test_a_platform_administrator_may_give_every_role_that_groups_can_have() -> None:
    given_ = {name for name in EVERY_ROLE if is_grantable(holder("platform-administrator"), role(name), ORG)}
    assert given_ == set(GRANTABLE)


@pytest.mark.parametrize("holds", LATTICE)
def test_what_one_has_in_one_organization_gives_nothing_in_another(holds: str) -> None:
    assert not any(is_grantable(holder(holds), role(name), OTHER_ORG) for name in EVERY_ROLE)


VERBS: list[Verb] = ["create", "read", "update", "delete"]
permissions = st.frozensets(
    st.builds(Permission, st.sampled_from(["a:x", "a:y", "b:z"]), st.sampled_from(VERBS)), max_size=6
)


@st.composite
def access_lists(draw: st.DrawFn) -> AccessList:
    projects = draw(st.dictionaries(st.sampled_from(["p", "q"]), permissions))
    inside = draw(st.dictionaries(st.sampled_from([ORG, OTHER_ORG]), permissions))
    return AccessList(
        everywhere=draw(permissions),
        organizations={name: OrganizationAccess(held, projects) for name, held in inside.items()},
    )


def grants(held: frozenset[Permission]) -> tuple[Grant, ...]:
    names = sorted({each.endpoint for each in held})
    return tuple(
        Grant(name=name, operations=tuple(verb for verb in VERBS if Permission(name, verb) in held)) for name in names
    )


@given(access=access_lists(), everywhere=permissions, organization=permissions, project=permissions)
def test_nobody_gives_more_than_they_have(
    access: AccessList,
    everywhere: frozenset[Permission],
    organization: frozenset[Permission],
    project: frozenset[Permission],
) -> None:
    scopes = RoleScopes(everywhere=grants(everywhere), organization=grants(organization), project=grants(project))
    wanted = Role(metadata=Metadata(name="r"), spec=RoleSpec(scopes=scopes))
    principal = Principal(subject="ann@example.com", type="user", access=access)
    farm = access.organizations.get(ORG, OrganizationAccess())
    missing = (
        [each for each in everywhere if each not in access.everywhere]
        + [each for each in organization if each not in access.everywhere and each not in farm.permissions]
        + [
            each
            for each in project
            if each not in access.everywhere
            and each not in farm.permissions
            and all(each not in held for held in farm.projects.values())
        ]
    )
    assert is_grantable(principal, wanted, ORG) == (not missing)
    protected = Role(metadata=Metadata(name="r"), spec=RoleSpec(scopes=scopes, protected=True))
    assert not is_grantable(principal, protected, ORG)


@given(access=access_lists(), name=st.sampled_from(GRANTABLE))
def test_whoever_has_more_may_give_no_less(access: AccessList, name: str) -> None:
    whole = AccessList(access.everywhere, {**access.organizations, **holder(name).access.organizations})
    assert is_grantable(Principal(subject="ann@example.com", type="user", access=whole), role(name), ORG)


@pytest.mark.parametrize(
    ("holds", "asked", "error", "sentence"),
    [
        ("administrator", ["user", "reader", "administrator", "auditor"], None, ""),
        ("administrator", [], None, ""),
        ("administrator", ["user", "never-was"], Malformed, f"role ID {role_id('never-was')} does not exist"),
        ("administrator", ["platform-reader"], Forbidden, "requested role is protected"),
        ("platform-administrator", ["platform-reader"], Forbidden, "requested role is protected"),
        ("user", ["user", "auditor"], Forbidden, "requested role cannot be granted"),
        ("auditor", ["user"], Forbidden, "requested role cannot be granted"),
    ],
)
async def test_every_role_that_is_asked_for_is_checked(
    permissions: PermissionEnvironment, holds: str, asked: list[str], error: type[RemudaError] | None, sentence: str
) -> None:
    ids = [role_id(name) for name in asked]
    if error is None:
        await permissions.permissions.check_grantable(holder(holds), ids, ORG)
        return
    with pytest.raises(error) as caught:
        await permissions.permissions.check_grantable(holder(holds), ids, ORG)
    assert caught.value.message == sentence


@pytest.mark.parametrize("odd", ["", "no id at all", "../roles", "x" * 300])
async def test_what_is_no_id_is_no_role(permissions: PermissionEnvironment, odd: str) -> None:
    with pytest.raises(Malformed, match="does not exist"):
        await permissions.permissions.check_grantable(holder("administrator"), [odd], ORG)
