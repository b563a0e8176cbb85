"""Client certificates: which service, for whom, and never with more than both may do."""

from datetime import timedelta
from itertools import product
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from remuda.access.checks import is_allowed_in_project
from remuda.access.principal import AccessList, Permission, Principal
from remuda.identity.kinds.users import Role, ServiceAccount, User
from remuda.identity.rbac.roles import role_id
from remuda.identity.settings import RoleBinding, SystemAccount
from remuda.kernel.errors import Malformed, Unauthenticated
from tests.kit.certificates import authority, version_1
from tests.kit.environment import options
from tests.kit.identity.authenticator import YEAR, AuthenticatorEnvironment, certificate_of, claim, run_authenticator
from tests.kit.identity.builtin_roles import EXPECTED

COMPUTE = "unikorn-compute"
ELSEWHERE = "https://login.example.com"
SECOND = timedelta(seconds=1)


async def test_a_certificate_is_the_service_whose_name_it_has_acting_for_the_one_it_names(
    authentication: AuthenticatorEnvironment,
) -> None:
    acme = await authentication.organization()
    said = claim("ann@example.com", type="user", organization=acme, project="p", organizations=(acme,))
    assert await authentication.let_in(certificate=authentication.certificate(COMPUTE), claim=said) == Principal(
        subject=COMPUTE,
        type="system",
        access=AccessList(everywhere=EXPECTED["compute-service"].everywhere),
        actor="ann@example.com",
        organization=acme,
        project="p",
        organizations=(acme,),
        service=COMPUTE,
        expires=authentication.whole_second() + YEAR,
    )


@pytest.mark.parametrize(
    ("begins", "ends", "holds"),
    [
        (-YEAR, 90 * SECOND, True),
        (-SECOND, 2 * SECOND, True),
        (-YEAR, -SECOND, False),
        (SECOND, YEAR, False),
    ],
)
async def test_a_certificate_holds_between_its_times(
    authentication: AuthenticatorEnvironment, begins: timedelta, ends: timedelta, *, holds: bool
) -> None:
    shown = {
        "certificate": authentication.certificate(COMPUTE, begins=begins, ends=ends),
        "claim": claim("ann@example.com"),
    }
    if not holds:
        with pytest.raises(Unauthenticated, match="certificate has expired or is not yet valid"):
            await authentication.let_in(**shown)  # type: ignore[arg-type]  # credentials by name
        return
    await authentication.let_in(**shown)  # type: ignore[arg-type]  # credentials by name
    await authentication.clock.sleep(ends.total_seconds())
    with pytest.raises(Unauthenticated, match="certificate has expired"):
        await authentication.let_in(**shown)  # type: ignore[arg-type]  # credentials by name


async def test_a_certificate_that_is_nobodys_is_refused(authentication: AuthenticatorEnvironment) -> None:
    now = authentication.clock.now()
    nonsense = "-----BEGIN CERTIFICATE-----\nbm9uc2Vuc2U=\n-----END CERTIFICATE-----\n"
    for pem, sentence in [
        (authentication.certificate("unikorn-dispute"), "certificate is not known"),
        (certificate_of((), now - YEAR, now + YEAR), "certificate is not valid"),
        (certificate_of((COMPUTE, "unikorn-region"), now - YEAR, now + YEAR), "certificate is not valid"),
        (authority().subordinate(COMPUTE).own.pem, "certificate is that of an authority"),
        (version_1(authority().issue(COMPUTE), authority()).pem, "certificate has no extensions"),
        (nonsense, "certificate is not valid"),
        ("", "certificate is not valid"),
    ]:
        with pytest.raises(Unauthenticated, match=sentence):
            await authentication.let_in(certificate=pem, claim=claim("ann@example.com"))


@options(system_accounts={COMPUTE: SystemAccount(role="compute-service", public_key="PEM")})
async def test_m27_a_certificate_is_not_accepted_for_an_account_that_has_a_key(
    authentication: AuthenticatorEnvironment,
) -> None:
    with pytest.raises(Unauthenticated, match="this account has a key and needs a signed assertion"):
        await authentication.let_in(certificate=authentication.certificate(COMPUTE), claim=claim("ann@example.com"))


async def test_whom_a_service_impersonates_must_be_somebody_who_is_active(
    authentication: AuthenticatorEnvironment,
) -> None:
    certificate = authentication.certificate(COMPUTE)
    ann, robot = (
        await authentication.user("ann@example.com"),
        await authentication.account(await authentication.organization()),
    )

    async def impersonate(actor: str, kind: str | None) -> Principal:
        said = claim(actor, type=kind)
        return await authentication.let_in(certificate=certificate, claim=said, impersonate=True)

    assert (await impersonate("ann@example.com", "user")).actor_name == "ann@example.com"
    assert (await impersonate(robot.name, "service")).actor_name == robot.name
    for kind in ("system", None):
        with pytest.raises(Malformed, match="X-Impersonate needs an actor of type user or service"):
            await impersonate("ann@example.com", kind)
    for actor, kind in [("bob@example.com", "user"), ("ann@example.com", "service"), (robot.name, "user")]:
        with pytest.raises(Unauthenticated, match="the actor in X-Principal is not known"):
            await impersonate(actor, kind)
    await authentication.suspend(ann)
    with pytest.raises(Unauthenticated, match="user identity not found or inactive"):
        await impersonate("ann@example.com", "user")
    await authentication.remove(ServiceAccount, robot.name)
    with pytest.raises(Unauthenticated, match="the actor in X-Principal is not known"):
        await impersonate(robot.name, "service")


async def test_without_impersonation_nobody_asks_who_the_actor_is(authentication: AuthenticatorEnvironment) -> None:
    principal = await authentication.let_in(certificate=authentication.certificate(COMPUTE), claim=claim("ci-fixtures"))
    assert (principal.actor_name, principal.caller) == ("ci-fixtures", f"{COMPUTE} for ci-fixtures")


@options(platform_administrators=("root@example.com",))
async def test_whom_one_organization_vouches_for_is_impersonated_there_alone(
    authentication: AuthenticatorEnvironment,
) -> None:
    acme, blue = await authentication.organization("acme"), await authentication.organization("blue")
    ann, root = [await authentication.user(f"{name}@example.com", acme, blue) for name in ("ann", "root")]
    for organization in (acme, blue):
        await authentication.group(organization, "administrator", users=[ann, root])
    certificate = authentication.certificate(COMPUTE)

    async def impersonated(who: User, **said: Any) -> AccessList:
        as_them = claim(who.spec.subject, type="user", **said)
        return (await authentication.let_in(certificate=certificate, claim=as_them, impersonate=True)).access

    assert set((await impersonated(ann)).organizations) == {acme, blue}
    assert set((await impersonated(ann, member_of_only=acme)).organizations) == {acme}
    assert await impersonated(ann, member_of_only=acme, organizations=(blue,)) == AccessList()
    assert await impersonated(ann, member_of_only=authentication.new_id()) == AccessList()
    assert (await impersonated(root)).everywhere
    assert not (await impersonated(root, member_of_only=acme)).everywhere


@options(
    platform_administrators=("root@example.com",),
    role_bindings=(RoleBinding(issuer=ELSEWHERE, subject="root@example.com", roles=("platform-reader",)),),
)
async def test_whom_another_issuer_knows_is_impersonated_as_its_own_and_not_as_ours(
    authentication: AuthenticatorEnvironment,
) -> None:
    await authentication.user("root@example.com")
    certificate = authentication.certificate(COMPUTE)
    reads = {}
    for name in ("", ELSEWHERE, "https://unknown.example.com"):
        as_root = claim("root@example.com", type="user", issuer=name)
        principal = await authentication.let_in(certificate=certificate, claim=as_root, impersonate=True)
        reads[name] = {each.verb for each in principal.access.everywhere}
    assert reads[""] > {"read"}
    assert reads[ELSEWHERE] == {"read"}
    assert reads["https://unknown.example.com"] == set()


async def test_a_token_that_a_service_carries_keeps_who_vouches_for_its_holder_and_for_the_actor(
    authentication: AuthenticatorEnvironment,
) -> None:
    acme = await authentication.organization()
    ann = await authentication.user("ann@example.com", acme)
    token, _ = await authentication.log_in(ann)
    of_acme = claim("bob@example.com", type="user", issuer="https://login.example.com", member_of_only=acme)
    carried = await authentication.let_in(token, certificate=authentication.certificate(COMPUTE), claim=of_acme)
    assert (carried.issuer, carried.member_of_only) == ("https://login.example.com", acme)
    carried = await authentication.let_in(
        token, certificate=authentication.certificate(COMPUTE), claim=claim("ann@example.com")
    )
    assert (carried.issuer, carried.member_of_only) == ("", None)


async def test_a_service_that_acts_for_somebody_keeps_who_vouches_for_that_one(
    authentication: AuthenticatorEnvironment,
) -> None:
    acme = await authentication.organization()
    of_acme = claim("bob@example.com", type="user", issuer="https://login.example.com", member_of_only=acme)
    acting = await authentication.let_in(certificate=authentication.certificate(COMPUTE), claim=of_acme)
    assert (acting.service, acting.issuer, acting.member_of_only) == (COMPUTE, "https://login.example.com", acme)


async def test_asking_again_reads_nothing_and_a_changed_role_is_seen_at_once(
    authentication: AuthenticatorEnvironment,
) -> None:
    shown = {"certificate": authentication.certificate(COMPUTE), "claim": claim("ann@example.com")}
    first = await authentication.let_in(**shown)  # type: ignore[arg-type]  # credentials by name
    assert await authentication.let_in(**shown) is first  # type: ignore[arg-type]  # credentials by name
    await authentication.remove(Role, role_id("compute-service"))
    assert (await authentication.let_in(**shown)).access == AccessList()  # type: ignore[arg-type]  # credentials by name


async def test_a_token_that_a_service_carries_gives_its_holders_permissions_and_no_more(
    authentication: AuthenticatorEnvironment,
) -> None:
    acme = await authentication.organization()
    ann, bob = [await authentication.user(f"{name}@example.com", acme) for name in ("ann", "bob")]
    await authentication.group(acme, "user", users=[ann])
    await authentication.group(acme, "reader", users=[bob])
    token, _ = await authentication.log_in(ann)
    alone = await authentication.let_in(token)
    certificate = authentication.certificate(COMPUTE, ends=timedelta(minutes=5))
    carried = await authentication.let_in(
        token, certificate=certificate, claim=claim("bob@example.com", type="user", organization=acme)
    )
    assert (carried.subject, carried.type, carried.access) == (alone.subject, "user", alone.access)
    assert (carried.service, carried.actor_name, carried.organization) == (COMPUTE, "bob@example.com", acme)
    assert carried.expires == authentication.whole_second() + timedelta(minutes=5), "whichever ends first"
    as_bob = await authentication.let_in(
        token, certificate=certificate, claim=claim("bob@example.com", type="user"), impersonate=True
    )
    assert as_bob.access.organizations[acme].permissions == EXPECTED["reader"].organization
    with pytest.raises(Unauthenticated, match="certificate is not known"):
        await authentication.let_in(
            token, certificate=authentication.certificate("unikorn-dispute"), claim=claim("ann@example.com")
        )
    with pytest.raises(Unauthenticated, match="token"):
        await authentication.let_in("nonsense", certificate=certificate, claim=claim("ann@example.com"))


# Whatever a service and the one it acts for may do, impersonation never gives more than either has.

EVERY_RIGHT = sorted(
    {each for held in EXPECTED.values() for each in held.everywhere | held.organization | held.project},
    key=lambda each: (each.endpoint, each.verb),
)
SERVICES = {name: SystemAccount(role=name) for name in EXPECTED}
GROUP_ROLES = ["administrator", "auditor", "user", "reader"]


def reach(principal: Principal, places: list[tuple[str, str]]) -> set[tuple[str, str, Permission]]:
    """Return every right that somebody has anywhere."""
    return {
        (*place, right)
        for place, right in product(places, EVERY_RIGHT)
        if is_allowed_in_project(principal, right, *place)
    }


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    service=st.sampled_from(sorted(SERVICES)),
    roles=st.lists(st.sampled_from(GROUP_ROLES), max_size=2, unique=True),
    named=st.sampled_from(["none", "own", "foreign"]),
    kind=st.sampled_from(["user", "service"]),
    is_bound=st.booleans(),
)
def test_impersonation_gives_what_both_may_do(
    service: str, roles: list[str], named: str, kind: str, *, is_bound: bool
) -> None:
    async def scenario(authentication: AuthenticatorEnvironment) -> None:
        acme, blue = await authentication.organization("acme"), await authentication.organization("blue")
        ann, robot = await authentication.user("ann@example.com", acme), await authentication.account(acme)
        group = await authentication.group(acme, *roles, users=[ann], accounts=[robot])
        project = await authentication.project(acme, group)
        other = await authentication.project(acme)
        places = [(acme, project), (acme, other), (blue, "p")]
        actor, token = (
            ("ann@example.com", (await authentication.log_in(ann))[0])
            if kind == "user"
            else (robot.name, await authentication.new_token(robot))
        )
        organizations = {"none": (), "own": (acme,), "foreign": (blue,)}[named]
        said = claim(actor, type=kind, organizations=organizations)
        certificate = authentication.certificate(service)

        alone = reach(await authentication.let_in(certificate=certificate, claim=said), places)
        theirs = reach(await authentication.let_in(token), places)
        both = reach(await authentication.let_in(certificate=certificate, claim=said, impersonate=True), places)

        assert both <= alone
        assert both <= theirs
        is_everywhere = kind == "user" and is_bound
        assert both == (alone & theirs if named != "foreign" or is_everywhere else set())

    bound = ("ann@example.com",) if is_bound else ()
    run_authenticator(scenario, system_accounts=SERVICES, platform_administrators=bound)
