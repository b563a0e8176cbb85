"""Roles from the configuration: what is refused, and how little the rest can do."""

from typing import Any

import pytest

from remuda.access.principal import Verb
from remuda.identity.kinds.users import Grant, RoleScopes
from remuda.identity.rbac.roles import BUILT_IN
from remuda.identity.rbac.service import Permissions
from remuda.identity.settings import GroupBinding, IdentitySettings, RoleBinding, SystemAccount
from remuda.kernel.errors import Invalid
from tests.kit.environment import options
from tests.kit.identity.builtin_roles import EXPECTED
from tests.kit.identity.permissions import PermissionEnvironment, run_permissions
from tests.kit.identity.resource_api import permission_set

OURS = "https://identity.example"
OTHERS = "https://login.example/"

GUARDED = ["users", "groups", "roles", "serviceaccounts", "oauth2providers"]


def user(subject: str, *roles: str, issuer: str = OTHERS) -> dict[str, Any]:
    return {"role_bindings": (RoleBinding(subject=subject, roles=roles, issuer=issuer),)}


def group(name: str, *roles: str, issuer: str = OTHERS) -> dict[str, Any]:
    return {"group_bindings": (GroupBinding(issuer=issuer, group=name, roles=roles),)}


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            user("*", "platform-reader", issuer="uni"),
            r"role_bindings\[0\].subject matches all users of our own issuer: name",
        ),
        (user("*", "platform-reader", issuer=OURS), r"role_bindings\[0\].subject matches all users of our own issuer"),
        (
            user("Ann@example.com", "platform-reader"),
            r"role_bindings\[0\].subject has capital letters: write it in low",
        ),
        (user(" ann@example.com", "platform-reader"), r"role_bindings\[0\].subject is empty or has surrounding spaces"),
        (user("", "platform-reader"), r"role_bindings\[0\].subject is empty"),
        (user("ann@example.com"), r"role_bindings\[0\].roles names no role: name one"),
        (
            user("ann@example.com", "platform-reader", issuer="login"),
            r"role_bindings\[0\].issuer is not an issuer: write uni",
        ),
        ({"platform_administrators": ("Ann@example.com",)}, r"platform_administrators\[0\] has capital letters"),
        ({"platform_administrators": ("ann@example.com", "*")}, r"platform_administrators\[1\] matches all users"),
        (group("ops", "platform-reader", issuer="uni"), r"group_bindings\[0\].issuer is our own: name an external"),
        (group("ops", "platform-reader", issuer=OURS), r"group_bindings\[0\].issuer is our own"),
        (group("ops", "platform-reader", issuer="login"), r"group_bindings\[0\].issuer is not an issuer"),
        (group("*", "platform-reader"), r"group_bindings\[0\].group is not the name of one group: name one group"),
        (group("", "platform-reader"), r"group_bindings\[0\].group is not the name of one group"),
        (group("ops"), r"group_bindings\[0\].roles names no role"),
        (
            group("ops", "platform-administrator"),
            r"group_bindings\[0\].roles binds a group to the role platform-administrator, which writes identity:",
        ),
        ({"system_accounts": {"robot": SystemAccount(role="")}}, r"system_accounts.robot.role names no role"),
    ],
)
async def test_a_configuration_that_binds_wrongly_is_refused_when_it_is_read(
    permissions: PermissionEnvironment, settings: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(Invalid, match=sentence):
        Permissions(store=permissions.store, settings=IdentitySettings(issuer=OURS, **settings))


@pytest.mark.parametrize(
    ("settings", "place"),
    [
        (user("ann@example.com", "platform-reader", "plattform-reader"), r"role_bindings\[0\].roles"),
        (group("ops", "plattform-reader"), r"group_bindings\[0\].roles"),
        ({"system_accounts": {"robot": SystemAccount(role="plattform-reader")}}, "system_accounts.robot.role"),
    ],
)
@options(lambda settings: settings)
async def test_a_role_that_there_is_not_is_refused_at_the_start(permissions: PermissionEnvironment, place: str) -> None:
    known = "administrator, auditor, compute-service"
    with pytest.raises(Invalid, match=f"{place} names the role plattform-reader, which does not exist: .*{known}"):
        await permissions.permissions.check()


@options(**user("ann@example.com", "night-watch"))
async def test_the_defaults_and_an_operators_own_role_are_fine_at_the_start(permissions: PermissionEnvironment) -> None:
    await permissions.role("night-watch", RoleScopes())
    await permissions.permissions.check()


@pytest.mark.parametrize("resource", GUARDED)
def test_a_group_of_another_issuer_never_writes_to_who_may_do_what(resource: str) -> None:
    async def scenario(permissions: PermissionEnvironment) -> None:
        operations: tuple[Verb, ...] = ("read", "update")
        grants = (Grant(name=f"identity:{resource}", operations=operations), Grant(name="a:b", operations=operations))
        role = await permissions.role("late", RoleScopes(everywhere=grants))
        with pytest.raises(Invalid, match=f"binds a group to the role late, which writes identity:{resource}"):
            await Permissions(store=permissions.store, settings=late).check()

        standing = await Permissions(store=permissions.store, settings=late).of_outsider(
            "x", issuer=OTHERS, groups=["ops"]
        )
        assert role.spec.scopes.everywhere == grants
        assert standing.access.everywhere == permission_set(f"identity:{resource} R, a:b RU")

    late = IdentitySettings(**group("ops", "late"))
    run_permissions(scenario)


@options(lambda: {**user("*", "platform-administrator")})
async def test_what_is_bound_to_everybody_only_reads(permissions: PermissionEnvironment) -> None:

    assert any(len(grant.operations) > 1 for grant in BUILT_IN["platform-administrator"].scopes.everywhere)
    ann = await permissions.user("ann@example.com")
    everything = EXPECTED["platform-administrator"].everywhere
    access = (await permissions.standing(ann, issuer=OTHERS)).access
    assert access.everywhere == {each for each in everything if each.verb == "read"}
    assert not (await permissions.standing(ann)).access.everywhere, "she did not come from there"


@options(**user("ann@example.com", "platform-reader"))
async def test_an_issuer_speaks_for_its_own_users_alone(permissions: PermissionEnvironment) -> None:
    ann = await permissions.user("ann@example.com")
    bound = EXPECTED["platform-reader"].everywhere
    for issuer, expected in [(OTHERS, bound), (OTHERS.rstrip("/"), set()), ("uni", set()), ("", set())]:
        assert (await permissions.standing(ann, issuer=issuer)).access.everywhere == expected


@pytest.mark.parametrize("issuer", ["uni", OURS])
@options(lambda issuer: user("ann@example.com", "platform-reader", issuer=issuer), issuer=OURS)
async def test_our_own_issuer_goes_by_its_short_name_and_by_its_url(permissions: PermissionEnvironment) -> None:
    ann = await permissions.user("Ann@Example.com")
    for shown in ("", "uni", OURS):
        access = (await permissions.standing(ann, issuer=shown)).access
        assert access.everywhere == EXPECTED["platform-reader"].everywhere
    assert not (await permissions.standing(ann, issuer=OTHERS)).access.everywhere


@options(**group("Ops", "platform-reader"))
async def test_group_names_are_compared_letter_by_letter(permissions: PermissionEnvironment) -> None:
    ann = await permissions.user("ann@example.com")
    assert (await permissions.standing(ann, issuer=OTHERS, groups=["dev", "Ops"])).access.everywhere
    assert not (await permissions.standing(ann, issuer=OTHERS, groups=["ops"])).access.everywhere
    assert not (await permissions.standing(ann, issuer="uni", groups=["Ops"])).access.everywhere


@options(**user("ann@example.com", "platform-reader"))
async def test_somebody_whom_only_an_issuer_knows_has_what_is_bound_and_nothing_else(
    permissions: PermissionEnvironment,
) -> None:
    bound = await permissions.permissions.of_outsider("ann@example.com", issuer=OTHERS)
    assert (bound.access.everywhere, bound.organizations) == (EXPECTED["platform-reader"].everywhere, ())
    assert not (await permissions.permissions.of_outsider("bob@example.com", issuer=OTHERS)).access.everywhere
