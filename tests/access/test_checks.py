"""The checks: who may, who may not, and the exact text that says why."""

import pytest

from remuda.access.checks import (
    is_allowed_in_project,
    require_everywhere,
    require_for_object,
    require_in_organization,
    require_in_project,
    require_new_in_project,
    require_organization_access,
)
from remuda.access.principal import AccessList, OrganizationAccess, Permission, Principal
from remuda.kernel.errors import Forbidden, NotFound

RIGHT = Permission("identity:groups", "create")
OTHER = Permission("identity:groups", "read")
REFUSED = "operation is not allowed by rbac: operation 'create' on endpoint 'identity:groups'"
NOT_PERMITTED = f"{REFUSED} is not permitted"
NO_ORGANIZATION = f"{REFUSED} — organization is not in this principal's accessible set"
NO_PROJECT = f"{REFUSED} — project is not in this principal's accessible set"
NOT_GLOBAL = f"{REFUSED} — no global-scope permissions are granted to this principal"


def holding(access: AccessList) -> Principal:
    return Principal(subject="anna", type="user", access=access)


def in_organization(*permissions: Permission, **projects: Permission) -> Principal:
    held = {project: frozenset({permission}) for project, permission in projects.items()}
    return holding(AccessList(organizations={"o": OrganizationAccess(frozenset(permissions), held)}))


EVERYWHERE = holding(AccessList(everywhere=frozenset({RIGHT})))
NOBODY = holding(AccessList())


def rejection_of(function: object, *arguments: object) -> str | None:
    try:
        function(*arguments)  # type: ignore[operator]  # one of the checks
    except Forbidden as error:
        return error.message
    return None


@pytest.mark.parametrize(
    ("principal", "everywhere", "organization", "project"),
    [
        (EVERYWHERE, None, None, None),
        (NOBODY, NOT_GLOBAL, NO_ORGANIZATION, NO_ORGANIZATION),
        (in_organization(RIGHT), NOT_GLOBAL, None, None),
        (in_organization(OTHER), NOT_GLOBAL, NOT_PERMITTED, NO_PROJECT),
        (in_organization(p=RIGHT), NOT_GLOBAL, NOT_PERMITTED, None),
        (in_organization(p=OTHER), NOT_GLOBAL, NOT_PERMITTED, NOT_PERMITTED),
        (in_organization(q=RIGHT), NOT_GLOBAL, NOT_PERMITTED, NO_PROJECT),
        (holding(AccessList(everywhere=frozenset({OTHER}))), NOT_PERMITTED, NOT_PERMITTED, NOT_PERMITTED),
    ],
)
def test_a_right_holds_downwards_and_a_rejection_says_why(
    principal: Principal, everywhere: str | None, organization: str | None, project: str | None
) -> None:
    assert rejection_of(require_everywhere, principal, RIGHT) == everywhere
    assert rejection_of(require_in_organization, principal, RIGHT, "o") == organization
    assert rejection_of(require_in_project, principal, RIGHT, "o", "p") == project
    assert is_allowed_in_project(principal, RIGHT, "o", "p") == (project is None)


def test_permissions_in_one_organization_say_nothing_about_another() -> None:
    principal = in_organization(RIGHT, p=RIGHT)
    assert rejection_of(require_in_organization, principal, RIGHT, "elsewhere") == NO_ORGANIZATION
    assert rejection_of(require_in_project, principal, RIGHT, "elsewhere", "p") == NO_ORGANIZATION


class Projects:
    """Knows which projects there are, and who asked."""

    def __init__(self, *known: str) -> None:
        self.known, self.asked = known, 0

    async def exist(self, organization: str, project: str) -> bool:
        self.asked += 1
        return organization == "o" and project in self.known


@pytest.mark.parametrize(
    ("principal", "asks"), [(EVERYWHERE, 0), (in_organization(p=RIGHT), 0), (in_organization(RIGHT), 1)]
)
async def test_only_a_holder_for_the_whole_organization_has_the_project_looked_for(
    principal: Principal, asks: int
) -> None:
    projects = Projects("p")
    await require_new_in_project(principal, RIGHT, "o", "p", exists=projects.exist)
    assert projects.asked == asks


async def test_a_project_that_is_not_there_is_not_found() -> None:
    with pytest.raises(NotFound):
        await require_new_in_project(in_organization(RIGHT), RIGHT, "o", "p", exists=Projects().exist)


async def test_nobody_learns_of_a_project_without_the_right() -> None:
    projects = Projects("p")
    for principal, told in ((NOBODY, NO_ORGANIZATION), (in_organization(OTHER), NO_PROJECT)):
        with pytest.raises(Forbidden) as caught:
            await require_new_in_project(principal, RIGHT, "o", "p", exists=projects.exist)
        assert caught.value.message == told
    assert projects.asked == 0


async def test_a_named_project_without_the_right_is_looked_for_by_a_holder_for_the_organization() -> None:
    projects = Projects()
    with pytest.raises(NotFound):
        await require_new_in_project(in_organization(RIGHT, q=RIGHT), RIGHT, "o", "p", exists=projects.exist)


READER_EVERYWHERE = holding(AccessList(everywhere=frozenset({OTHER})))


@pytest.mark.parametrize(
    ("principal", "told"),
    [
        (EVERYWHERE, None),
        (in_organization(p=RIGHT), None),
        (in_organization(p=OTHER), NOT_PERMITTED),
        (in_organization(), NO_PROJECT),
        (READER_EVERYWHERE, NOT_PERMITTED),
    ],
)
def test_who_may_see_an_object_is_told_which_right_to_it_is_missing(principal: Principal, told: str | None) -> None:
    def check() -> None:
        require_for_object(principal, RIGHT, "o", "p", kind="Group", name="g")

    assert rejection_of(check) == told


@pytest.mark.parametrize("principal", [NOBODY, holding(AccessList(organizations={"q": OrganizationAccess()}))])
def test_for_a_stranger_the_object_of_another_organization_does_not_exist(principal: Principal) -> None:
    with pytest.raises(NotFound):
        require_for_object(principal, RIGHT, "o", "p", kind="Group", name="g")


def test_an_organization_may_be_named_by_those_who_belong_to_it() -> None:
    for principal in (EVERYWHERE, READER_EVERYWHERE, in_organization()):
        require_organization_access(principal, RIGHT, "o")
    for principal in (NOBODY, in_organization()):
        assert rejection_of(require_organization_access, principal, RIGHT, "elsewhere") == NO_ORGANIZATION


def test_who_gets_everywhere_is_told_that_the_right_is_missing_and_not_the_place() -> None:
    elsewhere = holding(AccessList(everywhere=frozenset({Permission("region:servers", "read")})))
    assert rejection_of(require_organization_access, elsewhere, RIGHT, "o") == NOT_PERMITTED
    inside = AccessList(everywhere=frozenset({OTHER}), organizations={"o": OrganizationAccess()})
    assert rejection_of(require_in_project, holding(inside), RIGHT, "o", "p") == NOT_PERMITTED
