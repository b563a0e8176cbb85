"""Access lists: every way in which they come about, by hand, and any number of them against a second opinion."""

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from remuda.access.principal import AccessList, OrganizationAccess, Permission
from remuda.identity.kinds.tenancy import Project
from remuda.identity.kinds.users import Group, OrganizationUser, Role, ServiceAccount, Subject
from remuda.identity.rbac.roles import role_id
from remuda.identity.rbac.service import Permissions
from remuda.identity.settings import RoleBinding, SystemAccount
from remuda.kernel.errors import Unauthenticated
from remuda.store.contract import Store
from remuda.store.sqlite.store import SqliteStore
from tests.kit.environment import options
from tests.kit.identity.builtin_roles import EXPECTED
from tests.kit.identity.permissions import PermissionEnvironment, run_permissions

USER, READER, ADMINISTRATOR = EXPECTED["user"], EXPECTED["reader"], EXPECTED["administrator"]
ELSEWHERE = "https://login.example"


async def test_a_member_has_the_organization_blocks_of_its_groups_and_the_project_blocks_where_a_project_lists_them(
    permissions: PermissionEnvironment,
) -> None:
    acme = await permissions.organization()
    ann = await permissions.user("ann@example.com", acme)
    users, readers = (
        await permissions.group(acme, "user", users=[ann]),
        await permissions.group(acme, "reader", users=[ann]),
    )
    of_others = await permissions.group(acme, "user")
    both, read, foreign = (
        await permissions.project(acme, users, readers),
        await permissions.project(acme, readers),
        await permissions.project(acme, of_others),
    )

    standing = await permissions.standing(ann)

    inside = OrganizationAccess(
        USER.organization | READER.organization, {both: USER.project | READER.project, read: READER.project}
    )
    assert standing.access == AccessList(organizations={acme: inside})
    assert foreign not in standing.access.organizations[acme].projects
    assert standing.organizations == (acme,)


async def test_organizations_do_not_see_into_each_other(permissions: PermissionEnvironment) -> None:
    acme, blue = await permissions.organization("acme"), await permissions.organization("blue")
    ann = await permissions.user("ann@example.com", acme, blue)
    group = await permissions.group(acme, "user", users=[ann])
    await permissions.project(blue, group)
    mixed = await permissions.store.get(Group, await permissions.group(blue, "administrator"))
    in_acme = (await permissions.store.get(Group, group)).spec.user_ids
    await permissions.store.update(replace(mixed, spec=replace(mixed.spec, user_ids=in_acme)))

    access = (await permissions.standing(ann)).access

    assert access.organizations[acme] == OrganizationAccess(USER.organization)
    assert access.organizations[blue] == OrganizationAccess(), "neither a foreign group nor a foreign membership"


async def test_an_organization_in_which_one_has_no_permissions_is_still_named(
    permissions: PermissionEnvironment,
) -> None:
    acme = await permissions.organization()
    ann = await permissions.user("ann@example.com", acme)
    assert (await permissions.standing(ann)).access == AccessList(organizations={acme: OrganizationAccess()})


@pytest.mark.parametrize("state", ["pending", "suspended"])
async def test_only_an_active_membership_counts(permissions: PermissionEnvironment, state: str) -> None:
    acme = await permissions.organization()
    ann = await permissions.user("ann@example.com")
    await permissions.membership(ann, acme, state)  # type: ignore[arg-type]  # one of the states
    await permissions.group(acme, "administrator", users=[ann])
    standing = await permissions.standing(ann)
    assert (standing.access, standing.organizations) == (AccessList(), ())


async def test_only_an_active_user_is_anybody(permissions: PermissionEnvironment) -> None:
    ann = await permissions.user("ann@example.com")
    with pytest.raises(Unauthenticated, match="user identity not found or inactive"):
        await permissions.standing(await permissions.suspend(ann))


async def test_a_membership_whose_organization_is_gone_does_not_stand_in_the_way_of_others(
    permissions: PermissionEnvironment,
) -> None:
    acme = await permissions.organization()
    ann = await permissions.user("ann@example.com", acme, permissions.new_id())
    assert (await permissions.standing(ann)).organizations == (acme,)


async def test_a_role_that_is_gone_allows_nothing_and_the_others_stay(permissions: PermissionEnvironment) -> None:
    acme = await permissions.organization()
    ann = await permissions.user("ann@example.com", acme)
    await permissions.group(acme, "reader", "never-was", users=[ann])
    assert (await permissions.standing(ann)).access.organizations[acme].permissions == READER.organization
    await permissions.remove(Role, role_id("reader"))
    assert (await permissions.standing(ann)).access.organizations[acme].permissions == set()


async def test_groups_never_give_what_a_role_allows_everywhere(permissions: PermissionEnvironment) -> None:
    acme = await permissions.organization()
    ann = await permissions.user("ann@example.com", acme)
    group = await permissions.group(acme, "platform-administrator", users=[ann])
    await permissions.project(acme, group)
    assert (await permissions.standing(ann)).access == AccessList(organizations={acme: OrganizationAccess()})


@options(
    lambda: {
        "role_bindings": tuple(
            RoleBinding(subject=f"{name}@example.com", roles=("platform-reader",)) for name in ("ann", "bob")
        )
    },
    platform_administrators=("bob@example.com",),
)
async def test_a_binding_replaces_everything_that_groups_give(permissions: PermissionEnvironment) -> None:
    acme = await permissions.organization()
    ann, bob = [await permissions.user(f"{name}@example.com", acme) for name in ("ann", "bob")]
    await permissions.group(acme, "administrator", users=[ann, bob])
    standing = await permissions.standing(ann)
    assert standing.access == AccessList(everywhere=EXPECTED["platform-reader"].everywhere)
    assert standing.organizations == (acme,), "she is a member all the same"
    both = EXPECTED["platform-reader"].everywhere | EXPECTED["platform-administrator"].everywhere
    assert (await permissions.standing(bob)).access == AccessList(everywhere=both)


async def test_a_user_of_another_issuer_is_in_the_groups_that_name_them_there(
    permissions: PermissionEnvironment,
) -> None:
    acme = await permissions.organization()
    ann = await permissions.user("ann@example.com", acme)
    subject = Subject(id="ann@example.com", issuer=ELSEWHERE)
    await permissions.group(acme, "reader", subjects=[subject])
    foreign = await permissions.organization("foreign")
    await permissions.group(foreign, "administrator", subjects=[subject])
    there = (await permissions.standing(ann, issuer=ELSEWHERE)).access
    assert there == AccessList(organizations={acme: OrganizationAccess(READER.organization)}), "members only"
    for issuer in ("", "uni", "https://other.example"):
        assert (await permissions.standing(ann, issuer=issuer)).access.organizations[acme] == OrganizationAccess()


async def test_a_service_account_has_the_permissions_of_its_groups_in_its_one_organization(
    permissions: PermissionEnvironment,
) -> None:
    acme = await permissions.organization()
    robot = await permissions.account(acme)
    nothing = await permissions.permissions.of_account(robot)
    assert (nothing.access, nothing.organizations) == (AccessList(), (acme,)), "not even the organization"
    group = await permissions.group(acme, "user", accounts=[robot])
    project = await permissions.project(acme, group)
    inside = OrganizationAccess(USER.organization, {project: USER.project})
    assert (await permissions.permissions.of_account(robot)).access == AccessList(organizations={acme: inside})


async def test_a_service_account_whose_organization_is_gone_has_nothing(permissions: PermissionEnvironment) -> None:
    robot = await permissions.account(permissions.new_id())
    await permissions.group(robot.metadata.labels["unikorn-cloud.org/organization"], "user", accounts=[robot])
    standing = await permissions.permissions.of_account(robot)
    assert (standing.access, standing.organizations) == (AccessList(), ())


@options(system_accounts={"unikorn-compute": SystemAccount(role="compute-service")})
async def test_a_service_has_what_its_role_allows_everywhere_and_a_stranger_is_nobody(
    permissions: PermissionEnvironment,
) -> None:
    standing = await permissions.permissions.of_system("unikorn-compute")
    assert standing.access == AccessList(everywhere=EXPECTED["compute-service"].everywhere)
    with pytest.raises(Unauthenticated, match="service is not known"):
        await permissions.permissions.of_system("unikorn-dispute")


async def test_m27_no_service_is_known_unless_it_is_configured(permissions: PermissionEnvironment) -> None:
    for name in ("unikorn-region", "unikorn-kubernetes", "unikorn-compute", "uni-storage"):
        with pytest.raises(Unauthenticated, match="service is not known"):
            await permissions.permissions.of_system(name)
    inside = await permissions.permissions.of_role("compute-service")
    assert inside.access == AccessList(everywhere=EXPECTED["compute-service"].everywhere)


async def test_every_change_shows_at_once(permissions: PermissionEnvironment) -> None:
    acme = await permissions.organization()
    ann = await permissions.user("ann@example.com", acme)
    group = await permissions.group(acme, "user", users=[ann])
    project = await permissions.project(acme, group)

    async def inside() -> OrganizationAccess | None:
        return (await permissions.standing(ann)).access.organizations.get(acme)

    whole = OrganizationAccess(USER.organization, {project: USER.project})
    assert await inside() == whole
    found = await permissions.store.get(Project, project)
    found = await permissions.store.update(replace(found, spec=replace(found.spec, group_ids=())))
    assert await inside() == OrganizationAccess(USER.organization)
    await permissions.store.update(replace(found, spec=replace(found.spec, group_ids=(group,))))
    assert await inside() == whole
    changed = await permissions.store.get(Group, group)
    changed = await permissions.store.update(replace(changed, spec=replace(changed.spec, role_ids=())))
    assert await inside() == OrganizationAccess()
    await permissions.remove(Group, group)
    assert await inside() == OrganizationAccess()
    (membership,) = (await permissions.store.list(OrganizationUser)).items
    await permissions.store.update(replace(membership, spec=replace(membership.spec, state="suspended")))
    assert await inside() is None


def test_what_was_worked_out_while_something_changed_is_not_kept() -> None:
    async def scenario(permissions: PermissionEnvironment) -> None:
        acme = await permissions.organization()
        ann = await permissions.user("ann@example.com", acme)
        group = await permissions.group(acme, "administrator", users=[ann])
        await asyncio.gather(permissions.remove(Group, group), *(permissions.standing(ann) for _ in range(5)))
        assert (await permissions.standing(ann)).access.organizations[acme] == OrganizationAccess()

    for seed in range(20):
        run_permissions(scenario, seed=seed)


async def test_asking_again_reads_nothing(permissions: PermissionEnvironment) -> None:
    acme = await permissions.organization()
    ann, robot = await permissions.user("ann@example.com", acme), await permissions.account(acme)
    first = (await permissions.standing(ann), await permissions.permissions.of_account(robot))
    await permissions.store.close()
    again = (await permissions.standing(ann), await permissions.permissions.of_account(robot))
    assert all(one is other for one, other in zip(first, again, strict=True))


# A second opinion, on any system: straight from the sentences of the reference, over plain sets.

ROLES = ["administrator", "auditor", "user", "reader", "platform-reader", "gone"]
STATES = ["active", "active", "suspended"]


@dataclass(frozen=True)
class Plan:
    """Who is where: memberships by organization, groups as (organization, roles, members), projects by their groups."""

    memberships: dict[int, str]
    groups: list[tuple[int, list[str], bool]]
    projects: list[tuple[int, list[int]]]


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    organizations = st.integers(0, 2)
    memberships = draw(st.dictionaries(organizations, st.sampled_from(STATES)))
    group = st.tuples(organizations, st.lists(st.sampled_from(ROLES), max_size=3, unique=True), st.booleans())
    groups = draw(st.lists(group, max_size=6))
    listed = st.lists(st.integers(0, len(groups) - 1), max_size=3, unique=True) if groups else st.just([])
    return Plan(memberships, groups, draw(st.lists(st.tuples(organizations, listed), max_size=5)))


def expected(plan: Plan, organizations: list[str], projects: list[str]) -> AccessList:
    def block(number: int, where: str) -> frozenset[Permission]:
        roles = [EXPECTED[role] for role in plan.groups[number][1] if role in EXPECTED]
        return frozenset().union(*(getattr(role, where) for role in roles))

    found = {}
    for organization, state in plan.memberships.items():
        if state != "active":
            continue
        mine = [n for n, (home, _, is_in) in enumerate(plan.groups) if home == organization and is_in]
        inside = {
            projects[number]: frozenset[Permission]().union(*(block(n, "project") for n in listed if n in mine))
            for number, (home, listed) in enumerate(plan.projects)
            if home == organization
        }
        found[organizations[organization]] = OrganizationAccess(
            frozenset[Permission]().union(*(block(n, "organization") for n in mine)),
            {name: permissions for name, permissions in inside.items() if permissions},
        )
    return AccessList(organizations=found)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(plan=plans(), is_account=st.booleans())
def test_any_system_gives_what_a_second_reckoning_says(plan: Plan, *, is_account: bool) -> None:
    async def scenario(permissions: PermissionEnvironment) -> None:
        organizations = [await permissions.organization(f"o{number}") for number in range(3)]
        ann = await permissions.user("ann@example.com")
        for number, state in plan.memberships.items():
            await permissions.membership(ann, organizations[number], state)  # type: ignore[arg-type]  # one of the states
        robot = await permissions.account(organizations[0])
        groups = [
            await permissions.group(
                organizations[home], *roles, users=[ann] if is_in else [], accounts=[robot] if is_in else []
            )
            for home, roles, is_in in plan.groups
        ]
        projects = [
            await permissions.project(organizations[home], *(groups[number] for number in listed))
            for home, listed in plan.projects
        ]
        if is_account:
            at_home = replace_memberships(plan, {0: "active"})
            is_in_a_group = any(home == 0 and is_in for home, _, is_in in plan.groups)
            wanted = expected(at_home, organizations, projects) if is_in_a_group else AccessList()
            assert (await permissions.permissions.of_account(robot)).access == wanted
        else:
            assert (await permissions.standing(ann)).access == expected(plan, organizations, projects)

    run_permissions(scenario)


def replace_memberships(plan: Plan, memberships: dict[int, str]) -> Plan:
    return Plan(memberships, plan.groups, plan.projects)


class Counting:
    """A store that counts what is read from it."""

    def __init__(self, store: SqliteStore) -> None:
        self._store, self.read = store, 0

    def change_counter(self, dependencies: Any = None) -> int:
        return self._store.change_counter(dependencies)

    async def get(self, kind: Any, name: str) -> Any:
        self.read += 1
        return await self._store.get(kind, name)

    async def list(self, kind: Any, **filters: Any) -> Any:
        page = await self._store.list(kind, **filters)
        self.read += 1 + len(page.items)
        return page


def test_the_cost_is_that_of_ones_own_memberships() -> None:
    found: list[int] = []

    async def scenario(permissions: PermissionEnvironment, others: int) -> None:
        acme = await permissions.organization()
        ann = await permissions.user("ann@example.com", acme)
        await permissions.project(acme, await permissions.group(acme, "user", users=[ann]))
        for number in range(others):
            other = await permissions.organization()
            bob = await permissions.user(f"bob{number}@example.com", other, acme)
            await permissions.group(acme, "reader", users=[bob])
            await permissions.project(other, await permissions.group(other, "user", users=[bob]))
        store = Counting(permissions.store)
        await Permissions(store=cast("Store", store), settings=permissions.settings).of_user(ann, proof="password")
        found.append(store.read)

    for others in (1, 20):
        run_permissions(partial(scenario, others=others))
    assert found[0] == found[1]


async def test_who_or_what_is_being_deleted_gives_nothing_any_more(permissions: PermissionEnvironment) -> None:
    acme = await permissions.organization()
    robot = await permissions.account(acme)
    kept = replace(robot, metadata=replace(robot.metadata, finalizers=("example.com/kept",)))
    robot = await permissions.store.update(kept)
    await permissions.remove(ServiceAccount, robot.name)
    with pytest.raises(Unauthenticated, match="service account not found"):
        await permissions.permissions.of_account(await permissions.store.get(ServiceAccount, robot.name))
    ann = await permissions.user("ann@example.com", acme)
    group = await permissions.store.get(Group, await permissions.group(acme, "user", users=[ann]))
    await permissions.store.update(replace(group, metadata=replace(group.metadata, finalizers=("example.com/kept",))))
    await permissions.remove(Group, group.name)
    access = (await permissions.standing(ann)).access
    assert access == AccessList(organizations={acme: OrganizationAccess()})
