"""What both may do, as an algebra: validated by what is allowed, not by how the list looks."""

from hypothesis import given
from hypothesis import strategies as st

from remuda.access.checks import is_allowed_in_project
from remuda.access.principal import ANONYMOUS, AccessList, OrganizationAccess, Permission, Principal, intersection

ORGANIZATIONS = ("o1", "o2")
PROJECTS = ("p1", "p2")
PERMISSIONS = (Permission("x", "read"), Permission("x", "update"), Permission("y", "read"))
SETS = st.frozensets(st.sampled_from(PERMISSIONS))
IN_ORGANIZATION = st.builds(OrganizationAccess, SETS, st.dictionaries(st.sampled_from(PROJECTS), SETS))
ACCESS = st.builds(AccessList, SETS, st.dictionaries(st.sampled_from(ORGANIZATIONS), IN_ORGANIZATION))

Fact = tuple[str, str, Permission]


def allowed(access: AccessList) -> set[Fact]:
    """Return everything that a list allows, in every place there is, and in places that no list names."""
    return {
        *everywhere(access),
        *in_organizations(access),
        *(
            (organization, project, permission)
            for organization in (*ORGANIZATIONS, "elsewhere")
            for project in (*PROJECTS, "another")
            for permission in PERMISSIONS
            if is_allowed_in_project(
                Principal(subject="s", type="user", access=access), permission, organization, project
            )
        ),
    }


def everywhere(access: AccessList) -> set[Fact]:
    return {("*", "*", permission) for permission in access.everywhere}


def in_organizations(access: AccessList) -> set[Fact]:
    return {
        (organization, "*", permission)
        for organization in ORGANIZATIONS
        for permission in PERMISSIONS
        if permission in access.everywhere
        or (organization in access.organizations and permission in access.organizations[organization].permissions)
    }


@given(ACCESS, ACCESS)
def test_both_may_do_what_each_may_and_nothing_else(one: AccessList, other: AccessList) -> None:
    assert allowed(intersection(one, other)) == allowed(one) & allowed(other)


@given(ACCESS, ACCESS)
def test_it_does_not_matter_who_comes_first(one: AccessList, other: AccessList) -> None:
    assert allowed(intersection(one, other)) == allowed(intersection(other, one))


@given(ACCESS, ACCESS, ACCESS)
def test_it_does_not_matter_which_two_come_first(one: AccessList, two: AccessList, three: AccessList) -> None:
    assert allowed(intersection(intersection(one, two), three)) == allowed(intersection(one, intersection(two, three)))


@given(ACCESS)
def test_with_itself_it_stays_and_with_nothing_it_is_nothing(access: AccessList) -> None:
    assert allowed(intersection(access, access)) == allowed(access)
    assert allowed(intersection(access, AccessList())) == set()


def reached(access: AccessList) -> set[tuple[str, str]]:
    """Return the organizations and projects that a list names, or may name because it holds a right above them."""
    organizations = {
        organization for organization in ORGANIZATIONS if access.everywhere or organization in access.organizations
    }
    return {(organization, "*") for organization in organizations} | {
        (organization, project)
        for organization in organizations
        for project in PROJECTS
        if access.everywhere
        or access.organizations[organization].permissions
        or project in access.organizations[organization].projects
    }


def named(access: AccessList) -> set[tuple[str, str]]:
    """Return the organizations and projects that a list names."""
    return {(organization, "*") for organization in access.organizations} | {
        (organization, project) for organization, inside in access.organizations.items() for project in inside.projects
    }


@given(ACCESS, ACCESS)
def test_both_name_only_what_each_reaches(one: AccessList, other: AccessList) -> None:
    assert named(intersection(one, other)) <= reached(one) & reached(other)


@given(ACCESS, ACCESS)
def test_what_each_names_is_named_by_both(one: AccessList, other: AccessList) -> None:
    assert named(one) & named(other) <= named(intersection(one, other))


def test_a_stranger_cannot_be_impersonated_into_an_organization() -> None:
    service = AccessList(organizations={"o1": OrganizationAccess(projects={"p1": frozenset(PERMISSIONS)})})
    user = AccessList(organizations={"o1": OrganizationAccess(projects={"p2": frozenset(PERMISSIONS)})})
    assert named(intersection(service, user)) == {("o1", "*")}
    assert (
        named(intersection(service, AccessList(organizations={"o2": OrganizationAccess(frozenset(PERMISSIONS))})))
        == set()
    )


def test_a_right_in_a_project_meets_one_that_holds_everywhere() -> None:
    right = PERMISSIONS[0]
    service = AccessList(everywhere=frozenset({right}))
    user = AccessList(organizations={"o1": OrganizationAccess(projects={"p1": frozenset(PERMISSIONS)})})
    assert intersection(service, user).organizations["o1"].projects["p1"] == {right}
    assert intersection(service, user).everywhere == frozenset()


def test_the_cause_is_the_actor_or_else_the_subject() -> None:
    assert Principal(subject="compute", type="system", actor="anna").actor_name == "anna"
    assert Principal(subject="anna", type="user").actor_name == "anna"
    assert ANONYMOUS.actor_name == ""


def test_a_service_that_acts_for_somebody_is_another_caller_than_that_one() -> None:
    anna = Principal(subject="anna", type="user")
    service = Principal(subject="compute", type="system", actor="anna", service="compute")
    assert (anna.caller, service.caller) == ("anna", "compute for anna")
