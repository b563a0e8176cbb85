"""Bearer tokens: whose they are, and how soon they are nobody's."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from remuda.access.principal import AccessList, OrganizationAccess, Principal
from remuda.http.authentication import RequestCredentials
from remuda.identity.kinds.tokens import SigningKey
from remuda.identity.kinds.users import Group, OrganizationUser, ServiceAccount, User
from remuda.identity.rbac.authenticator import credentials_key
from remuda.identity.settings import GroupBinding, RoleBinding
from remuda.identity.tokens.bearer import Bearer
from remuda.kernel.errors import Malformed, Unauthenticated
from remuda.store.contract import named
from tests.kit.environment import options
from tests.kit.identity.authenticator import AuthenticatorEnvironment, claim
from tests.kit.identity.builtin_roles import EXPECTED
from tests.kit.simulation.runner import START

READER = EXPECTED["reader"].organization


async def is_refused(authentication: AuthenticatorEnvironment, token: str) -> bool:
    try:
        await authentication.let_in(token)
    except Unauthenticated:
        return True
    return False


async def test_a_users_token_is_the_user_with_all_permissions_of_the_moment(
    authentication: AuthenticatorEnvironment,
) -> None:
    acme = await authentication.organization()
    ann = await authentication.user("ann@example.com", acme)
    group = await authentication.group(acme, "reader", users=[ann])
    project = await authentication.project(acme, group)
    token, _ = await authentication.log_in(ann)
    assert await authentication.let_in(token) == Principal(
        subject="ann@example.com",
        type="user",
        access=AccessList(organizations={acme: OrganizationAccess(READER, {project: EXPECTED["reader"].project})}),
        organizations=(acme,),
        expires=authentication.whole_second() + timedelta(hours=1),
    )


async def test_a_service_accounts_token_is_the_account(authentication: AuthenticatorEnvironment) -> None:
    acme = await authentication.organization()
    robot = await authentication.account(acme)
    await authentication.group(acme, "reader", accounts=[robot])
    principal = await authentication.let_in(await authentication.new_token(robot))
    assert (principal.subject, principal.type, principal.organizations) == (robot.name, "service", (acme,))
    assert principal.access.organizations[acme].permissions == READER


async def test_a_services_token_is_the_service(authentication: AuthenticatorEnvironment) -> None:
    principal = await authentication.let_in(await authentication.service_token("unikorn-region"))
    assert (principal.subject, principal.type) == ("unikorn-region", "system")
    assert principal.access == AccessList(everywhere=EXPECTED["region-service"].everywhere)
    assert await is_refused(authentication, await authentication.service_token("unikorn-legion"))


async def test_an_operators_token_is_the_user_it_was_made_for(authentication: AuthenticatorEnvironment) -> None:
    ann = await authentication.user("ann@example.com")
    life = timedelta(minutes=5)
    issued = await authentication.tokens.tokens.issue_for_operator(ann, operator="root", lifetime=life)
    principal = await authentication.let_in(issued.token.reveal())
    assert (principal.subject, principal.type, principal.expires) == ("ann@example.com", "user", issued.expires)


async def test_asking_again_reads_nothing_and_checks_no_signature(authentication: AuthenticatorEnvironment) -> None:
    acme = await authentication.organization()
    ann, robot = await authentication.user("ann@example.com", acme), await authentication.account(acme)
    tokens = [
        (await authentication.log_in(ann))[0],
        await authentication.new_token(robot),
        await authentication.service_token("uni-storage"),
    ]
    first = [await authentication.let_in(token) for token in tokens]
    await authentication.store.close()
    again = [await authentication.let_in(token) for token in tokens]
    assert all(one is other for one, other in zip(first, again, strict=True))


async def test_a_token_ends_when_it_says_however_well_it_is_remembered(
    authentication: AuthenticatorEnvironment,
) -> None:
    token, _ = await authentication.log_in(await authentication.user("ann@example.com"))
    ends = (await authentication.let_in(token)).expires
    assert ends is not None
    await authentication.clock.sleep((ends - authentication.clock.now()).total_seconds() - 1)
    assert not await is_refused(authentication, token)
    await authentication.clock.sleep(1)
    assert await is_refused(authentication, token)


async def test_whatever_a_token_rests_on_is_looked_at_again_when_it_changes(
    authentication: AuthenticatorEnvironment,
) -> None:
    ann = await authentication.user("ann@example.com")

    async def revoke(token: str) -> None:
        claims = await authentication.tokens.tokens.verify(token)
        await authentication.tokens.tokens.revoke(claims.jti, expires=claims.expires)

    async def end(token: str) -> None:
        claims = await authentication.tokens.tokens.verify(token)
        await authentication.tokens.sessions.end(claims.sid)

    async def suspend(_token: str) -> None:
        await authentication.suspend(ann)

    async def lose_keys(_token: str) -> None:
        (keys,) = (await authentication.store.list(SigningKey)).items
        await authentication.remove(SigningKey, keys.name)

    for undo in (revoke, end, lose_keys, suspend):
        token, _ = await authentication.log_in(ann)
        await authentication.let_in(token)
        await undo(token)
        assert await is_refused(authentication, token), undo.__name__


async def test_ending_one_session_leaves_the_others(authentication: AuthenticatorEnvironment) -> None:
    ann = await authentication.user("ann@example.com")
    (one, session), (other, _) = await authentication.log_in(ann), await authentication.log_in(ann)
    await authentication.let_in(one)
    await authentication.let_in(other)
    await authentication.tokens.sessions.end(session)
    assert (await is_refused(authentication, one), await is_refused(authentication, other)) == (True, False)


async def test_only_the_newest_token_of_a_service_account_is_good_and_none_when_it_is_gone(
    authentication: AuthenticatorEnvironment,
) -> None:
    robot = await authentication.account(await authentication.organization())
    old = await authentication.new_token(robot)
    await authentication.let_in(old)
    new = await authentication.new_token(robot)
    assert (await is_refused(authentication, old), await is_refused(authentication, new)) == (True, False)
    await authentication.remove(ServiceAccount, robot.name)
    assert await is_refused(authentication, new)


async def test_a_right_that_was_taken_away_is_gone_with_the_next_request(
    authentication: AuthenticatorEnvironment,
) -> None:
    acme = await authentication.organization()
    ann = await authentication.user("ann@example.com", acme)
    group = await authentication.group(acme, "administrator", users=[ann])
    token, _ = await authentication.log_in(ann)
    assert (await authentication.let_in(token)).access.organizations[acme].permissions
    await authentication.remove(Group, group)
    assert not (await authentication.let_in(token)).access.organizations[acme].permissions
    (membership,) = (await authentication.store.list(OrganizationUser)).items
    await authentication.remove(OrganizationUser, membership.name)
    assert (await authentication.let_in(token)).access == AccessList()


async def test_another_users_changes_do_not_change_who_somebody_is(authentication: AuthenticatorEnvironment) -> None:
    acme = await authentication.organization()
    ann = await authentication.user("ann@example.com", acme)
    await authentication.group(acme, "reader", users=[ann])
    token, _ = await authentication.log_in(ann)
    before = await authentication.let_in(token)
    bob = await authentication.user("bob@example.com", acme)
    await authentication.group(acme, "administrator", users=[bob])
    await authentication.log_in(bob)
    assert await authentication.let_in(token) == before


@pytest.mark.parametrize("token", ["", "x", "a.b.c", "e30.e30.e30", "x" * 100_000])
async def test_what_is_no_token_of_ours_is_refused(authentication: AuthenticatorEnvironment, token: str) -> None:
    assert await is_refused(authentication, token)


async def test_a_users_token_makes_nothing_of_a_claim(authentication: AuthenticatorEnvironment) -> None:
    acme = await authentication.organization()
    ann = await authentication.user("ann@example.com", acme)
    robot = await authentication.account(acme)
    await authentication.group(acme, "administrator", accounts=[robot])
    for token in ((await authentication.log_in(ann))[0], await authentication.new_token(robot)):
        plain = await authentication.let_in(token)
        for said in (claim("bob@example.com", type="user", organization=acme), claim(type="system"), None):
            assert await authentication.let_in(token, claim=said, impersonate=True) == plain
            assert await authentication.let_in(token, claim=said) == plain


async def test_claims_that_count_for_nothing_are_not_remembered_and_spare_nobody_the_memory(
    authentication: AuthenticatorEnvironment,
) -> None:
    token, _ = await authentication.log_in(await authentication.user("ann@example.com"))
    await authentication.let_in(token, claim=claim("first"), impersonate=True)
    await authentication.store.close()
    for number in range(50):
        assert (await authentication.let_in(token, claim=claim(f"{number}" * 1000))).subject == "ann@example.com"
    assert (await authentication.let_in(token)).subject == "ann@example.com"
    assert len(authentication.authenticator._cache) == 1


def test_what_tells_credentials_apart_is_small_whatever_they_hold() -> None:
    said = [claim("x" * 60_000, organizations=("o",) * 1000), claim("x" * 60_000), claim("x" * 59_999), None]
    keys = {credentials_key(RequestCredentials(token="t", claim=each, impersonate=True)) for each in said}
    assert len(keys) == len(said)
    assert all(len(repr(key)) < 1000 for key in keys)


async def test_m27_a_token_of_ours_is_genuine_before_its_first_use_and_what_is_not_signed_is_not(
    authentication: AuthenticatorEnvironment,
) -> None:
    token, _ = await authentication.log_in(await authentication.user("ann@example.com"))
    head, payload, signature = token.split(".")
    forged = f"{head}.{payload}.{signature[::-1]}"
    for shown, is_genuine in ((token, True), (forged, False), ("garbage", False)):
        assert await authentication.authenticator.is_genuine(RequestCredentials(token=shown)) is is_genuine
    await authentication.let_in(token)
    for bad in (forged, "garbage"):
        with pytest.raises(Unauthenticated):
            await authentication.let_in(bad)
        assert not await authentication.authenticator.is_genuine(RequestCredentials(token=bad))
    await authentication.user("ben@example.com")
    assert await authentication.authenticator.is_genuine(RequestCredentials(token=token)), "whatever changed meanwhile"


async def test_a_services_token_acts_for_whom_it_claims_to(authentication: AuthenticatorEnvironment) -> None:
    acme = await authentication.organization()
    ann = await authentication.user("ann@example.com", acme)
    await authentication.group(acme, "user", users=[ann])
    token = await authentication.service_token("unikorn-compute")
    said = claim("ann@example.com", type="user", organization=acme, organizations=(acme,))
    acting = await authentication.let_in(token, claim=said)
    assert (acting.actor_name, acting.service, acting.organization) == ("ann@example.com", "unikorn-compute", acme)
    assert acting.access == AccessList(everywhere=EXPECTED["compute-service"].everywhere)
    impersonating = await authentication.let_in(token, claim=said, impersonate=True)
    shared = EXPECTED["compute-service"].everywhere & EXPECTED["user"].organization
    assert impersonating.access == AccessList(organizations={acme: OrganizationAccess(shared)})
    assert (await authentication.let_in(token)).actor_name == "unikorn-compute"
    for nobody in (None, claim("ann@example.com"), claim("unikorn-region", type="system"), claim(type="user")):
        with pytest.raises(Malformed, match="X-Impersonate needs an actor"):
            await authentication.let_in(token, claim=nobody, impersonate=True)


async def test_a_service_whose_claim_makes_no_sense_is_refused_and_from_everybody_else_it_is_ignored(
    authentication: AuthenticatorEnvironment,
) -> None:
    ann, robot = (
        await authentication.user("ann@example.com"),
        await authentication.account(await authentication.organization()),
    )
    service = await authentication.service_token("unikorn-compute")
    for token in ((await authentication.log_in(ann))[0], await authentication.new_token(robot)):
        assert await authentication.let_in(token, fault="it makes no sense") == await authentication.let_in(token)
        assert await authentication.let_in(token, fault="it makes no sense") == await authentication.let_in(token)
    await authentication.let_in(service)
    for _ in range(2):
        with pytest.raises(Malformed, match="it makes no sense"):
            await authentication.let_in(service, fault="it makes no sense")
    assert (await authentication.let_in(service)).actor_name == "unikorn-compute"


async def test_no_token_is_kept_in_memory_by_the_authenticator(authentication: AuthenticatorEnvironment) -> None:
    token, _ = await authentication.log_in(await authentication.user("ann@example.com"))
    await authentication.let_in(token)
    assert len(authentication.authenticator._cache) == 1
    assert token not in repr(authentication.authenticator._cache._entries)


ELSEWHERE = "https://login.example"


@pytest.fixture
def known() -> dict[str, Bearer]:
    return {}


def bearers_in(known: dict[str, Bearer]) -> Callable[[str], Awaitable[Bearer | None]]:
    async def external(token: str) -> Bearer | None:
        return known.get(token)

    return external


@options(
    lambda known: {
        "external": bearers_in(known),
        "group_bindings": (GroupBinding(issuer=ELSEWHERE, group="ops", roles=("platform-reader",)),),
    },
    role_bindings=(RoleBinding(issuer=ELSEWHERE, subject="joe@example.com", roles=("platform-reader",)),),
)
async def test_a_token_of_another_issuer_has_the_permissions_of_its_user_and_of_what_is_bound_to_its_groups(
    authentication: AuthenticatorEnvironment, known: dict[str, Bearer]
) -> None:
    acme = await authentication.organization()
    ann = await authentication.user("ann@example.com", acme)
    await authentication.group(acme, "reader", users=[ann])
    facts = {
        "type": "user",
        "expires": START + timedelta(hours=1),
        "issuer": ELSEWHERE,
        "dependencies": (named(User, ann.name),),
    }
    known["of-ann"] = Bearer(subject="ann@example.com", user=ann, **facts)  # type: ignore[arg-type]  # fields of a bearer
    known["of-ops"] = replace(known["of-ann"], groups=("ops",))
    known["of-eve"] = Bearer(subject="eve@example.com", **facts)  # type: ignore[arg-type]  # fields of a bearer
    known["of-joe"] = Bearer(subject="joe@example.com", **facts)  # type: ignore[arg-type]  # fields of a bearer
    everywhere = EXPECTED["platform-reader"].everywhere
    assert (await authentication.let_in("of-ann")).access.organizations[acme].permissions == READER
    assert (await authentication.let_in("of-ops")).access == AccessList(everywhere=everywhere)
    assert (await authentication.let_in("of-joe")).access == AccessList(everywhere=everywhere)
    assert (await authentication.let_in("of-eve")).access == AccessList()
    await authentication.suspend(ann)
    known["of-ann"] = replace(known["of-ann"], user=await authentication.store.get(User, ann.name))
    assert await is_refused(authentication, "of-ann")


def test_credentials_show_nothing_of_themselves() -> None:
    assert "canary" not in repr(RequestCredentials(token="canary", certificate="canary"))
