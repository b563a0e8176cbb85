"""Bearer tokens: whose they are, and how soon they are nobody's."""

from dataclasses import replace
from datetime import timedelta

import pytest

from remuda.access.principal import AccessList, OrganizationAccess, Principal
from remuda.http.authentication import Credentials
from remuda.identity.kinds.tokens import SigningKey
from remuda.identity.kinds.users import Group, OrganizationUser, ServiceAccount, User
from remuda.identity.rbac.authenticator import credentials_key
from remuda.identity.settings import GroupBinding, RoleBinding
from remuda.identity.tokens.bearer import Bearer
from remuda.kernel.errors import Malformed, Unauthenticated
from remuda.store.contract import named
from tests.identity.rights_door import Door, at_the_door, claim
from tests.identity.test_rights_roles import EXPECTED
from tests.sim.runner import START

READER = EXPECTED["reader"].organization


async def is_refused(door: Door, token: str) -> bool:
    try:
        await door.let_in(token)
    except Unauthenticated:
        return True
    return False


def test_a_users_token_is_the_user_with_all_rights_of_the_moment() -> None:
    async def scenario(door: Door) -> None:
        acme = await door.organization()
        ann = await door.user("ann@example.com", acme)
        group = await door.group(acme, "reader", users=[ann])
        project = await door.project(acme, group)
        token, _ = await door.log_in(ann)
        assert await door.let_in(token) == Principal(
            subject="ann@example.com",
            type="user",
            access=AccessList(organizations={acme: OrganizationAccess(READER, {project: EXPECTED["reader"].project})}),
            organizations=(acme,),
            expires=door.whole_second() + timedelta(hours=1),
        )

    at_the_door(scenario)


def test_a_service_accounts_token_is_the_account() -> None:
    async def scenario(door: Door) -> None:
        acme = await door.organization()
        robot = await door.account(acme)
        await door.group(acme, "reader", accounts=[robot])
        principal = await door.let_in(await door.new_token(robot))
        assert (principal.subject, principal.type, principal.organizations) == (robot.name, "service", (acme,))
        assert principal.access.organizations[acme].permissions == READER

    at_the_door(scenario)


def test_a_services_token_is_the_service() -> None:
    async def scenario(door: Door) -> None:
        principal = await door.let_in(await door.service_token("unikorn-region"))
        assert (principal.subject, principal.type) == ("unikorn-region", "system")
        assert principal.access == AccessList(everywhere=EXPECTED["region-service"].everywhere)
        assert await is_refused(door, await door.service_token("unikorn-legion"))

    at_the_door(scenario)


def test_an_operators_token_is_the_user_it_was_made_for() -> None:
    async def scenario(door: Door) -> None:
        ann = await door.user("ann@example.com")
        life = timedelta(minutes=5)
        issued = await door.tokens.tokens.issue_for_operator(ann, operator="root", life=life)
        principal = await door.let_in(issued.token.reveal())
        assert (principal.subject, principal.type, principal.expires) == ("ann@example.com", "user", issued.expires)

    at_the_door(scenario)


def test_asking_again_reads_nothing_and_checks_no_signature() -> None:
    async def scenario(door: Door) -> None:
        acme = await door.organization()
        ann, robot = await door.user("ann@example.com", acme), await door.account(acme)
        tokens = [(await door.log_in(ann))[0], await door.new_token(robot), await door.service_token("uni-storage")]
        first = [await door.let_in(token) for token in tokens]
        await door.store.close()
        again = [await door.let_in(token) for token in tokens]
        assert all(one is other for one, other in zip(first, again, strict=True))

    at_the_door(scenario)


def test_a_token_ends_when_it_says_however_well_it_is_remembered() -> None:
    async def scenario(door: Door) -> None:
        token, _ = await door.log_in(await door.user("ann@example.com"))
        ends = (await door.let_in(token)).expires
        assert ends is not None
        await door.clock.sleep((ends - door.clock.now()).total_seconds() - 1)
        assert not await is_refused(door, token)
        await door.clock.sleep(1)
        assert await is_refused(door, token)

    at_the_door(scenario)


def test_whatever_a_token_rests_on_is_looked_at_again_when_it_changes() -> None:
    async def scenario(door: Door) -> None:
        ann = await door.user("ann@example.com")

        async def revoke(token: str) -> None:
            claims = await door.tokens.tokens.verify(token)
            await door.tokens.tokens.revoke(claims.jti, expires=claims.expires)

        async def end(token: str) -> None:
            claims = await door.tokens.tokens.verify(token)
            await door.tokens.sessions.end(claims.sid)

        async def suspend(_token: str) -> None:
            await door.suspend(ann)

        async def lose_keys(_token: str) -> None:
            (keys,) = (await door.store.list(SigningKey)).items
            await door.remove(SigningKey, keys.name)

        for undo in (revoke, end, lose_keys, suspend):
            token, _ = await door.log_in(ann)
            await door.let_in(token)
            await undo(token)
            assert await is_refused(door, token), undo.__name__

    at_the_door(scenario)


def test_ending_one_session_leaves_the_others() -> None:
    async def scenario(door: Door) -> None:
        ann = await door.user("ann@example.com")
        (one, session), (other, _) = await door.log_in(ann), await door.log_in(ann)
        await door.let_in(one)
        await door.let_in(other)
        await door.tokens.sessions.end(session)
        assert (await is_refused(door, one), await is_refused(door, other)) == (True, False)

    at_the_door(scenario)


def test_only_the_newest_token_of_a_service_account_is_good_and_none_when_it_is_gone() -> None:
    async def scenario(door: Door) -> None:
        robot = await door.account(await door.organization())
        old = await door.new_token(robot)
        await door.let_in(old)
        new = await door.new_token(robot)
        assert (await is_refused(door, old), await is_refused(door, new)) == (True, False)
        await door.remove(ServiceAccount, robot.name)
        assert await is_refused(door, new)

    at_the_door(scenario)


def test_a_right_that_was_taken_away_is_gone_with_the_next_request() -> None:
    async def scenario(door: Door) -> None:
        acme = await door.organization()
        ann = await door.user("ann@example.com", acme)
        group = await door.group(acme, "administrator", users=[ann])
        token, _ = await door.log_in(ann)
        assert (await door.let_in(token)).access.organizations[acme].permissions
        await door.remove(Group, group)
        assert not (await door.let_in(token)).access.organizations[acme].permissions
        (membership,) = (await door.store.list(OrganizationUser)).items
        await door.remove(OrganizationUser, membership.name)
        assert (await door.let_in(token)).access == AccessList()

    at_the_door(scenario)


def test_another_users_changes_do_not_change_who_somebody_is() -> None:
    async def scenario(door: Door) -> None:
        acme = await door.organization()
        ann = await door.user("ann@example.com", acme)
        await door.group(acme, "reader", users=[ann])
        token, _ = await door.log_in(ann)
        before = await door.let_in(token)
        bob = await door.user("bob@example.com", acme)
        await door.group(acme, "administrator", users=[bob])
        await door.log_in(bob)
        assert await door.let_in(token) == before

    at_the_door(scenario)


@pytest.mark.parametrize("token", ["", "x", "a.b.c", "e30.e30.e30", "x" * 100_000])
def test_what_is_no_token_of_ours_is_refused(token: str) -> None:
    async def scenario(door: Door) -> None:
        assert await is_refused(door, token)

    at_the_door(scenario)


def test_a_users_token_makes_nothing_of_a_claim() -> None:
    async def scenario(door: Door) -> None:
        acme = await door.organization()
        ann = await door.user("ann@example.com", acme)
        robot = await door.account(acme)
        await door.group(acme, "administrator", accounts=[robot])
        for token in ((await door.log_in(ann))[0], await door.new_token(robot)):
            plain = await door.let_in(token)
            for said in (claim("bob@example.com", type="user", organization=acme), claim(type="system"), None):
                assert await door.let_in(token, claim=said, impersonate=True) == plain
                assert await door.let_in(token, claim=said) == plain

    at_the_door(scenario)


def test_claims_that_count_for_nothing_are_not_remembered_and_spare_nobody_the_memory() -> None:
    async def scenario(door: Door) -> None:
        token, _ = await door.log_in(await door.user("ann@example.com"))
        await door.let_in(token, claim=claim("first"), impersonate=True)
        await door.store.close()
        for number in range(50):
            assert (await door.let_in(token, claim=claim(f"{number}" * 1000))).subject == "ann@example.com"
        assert (await door.let_in(token)).subject == "ann@example.com"
        assert len(door.authenticator._kept) == 1

    at_the_door(scenario)


def test_what_tells_credentials_apart_is_small_whatever_they_hold() -> None:
    said = [claim("x" * 60_000, organizations=("o",) * 1000), claim("x" * 60_000), claim("x" * 59_999), None]
    keys = {credentials_key(Credentials(token="t", claim=each, impersonate=True)) for each in said}
    assert len(keys) == len(said)
    assert all(len(repr(key)) < 1000 for key in keys)


def test_a_token_is_known_once_it_was_let_in_and_garbage_never() -> None:
    async def scenario(door: Door) -> None:
        token, _ = await door.log_in(await door.user("ann@example.com"))
        shown, garbage = Credentials(token=token), Credentials(token="garbage")
        assert not door.authenticator.knows(shown)
        await door.let_in(token)
        with pytest.raises(Unauthenticated):
            await door.let_in("garbage")
        assert door.authenticator.knows(shown)
        await door.user("ben@example.com")
        assert door.authenticator.knows(shown), "though what it rests on may have changed"
        assert not door.authenticator.knows(garbage)

    at_the_door(scenario)


def test_a_services_token_acts_for_whom_it_claims_to() -> None:
    async def scenario(door: Door) -> None:
        acme = await door.organization()
        ann = await door.user("ann@example.com", acme)
        await door.group(acme, "user", users=[ann])
        token = await door.service_token("unikorn-compute")
        said = claim("ann@example.com", type="user", organization=acme, organizations=(acme,))
        acting = await door.let_in(token, claim=said)
        assert (acting.who, acting.service, acting.organization) == ("ann@example.com", "unikorn-compute", acme)
        assert acting.access == AccessList(everywhere=EXPECTED["compute-service"].everywhere)
        impersonating = await door.let_in(token, claim=said, impersonate=True)
        shared = EXPECTED["compute-service"].everywhere & EXPECTED["user"].organization
        assert impersonating.access == AccessList(organizations={acme: OrganizationAccess(shared)})
        assert (await door.let_in(token)).who == "unikorn-compute"
        for nobody in (None, claim("ann@example.com"), claim("unikorn-region", type="system"), claim(type="user")):
            with pytest.raises(Malformed, match="X-Impersonate needs an actor"):
                await door.let_in(token, claim=nobody, impersonate=True)

    at_the_door(scenario)


def test_a_service_whose_claim_makes_no_sense_is_refused_and_from_everybody_else_it_is_ignored() -> None:
    async def scenario(door: Door) -> None:
        ann, robot = await door.user("ann@example.com"), await door.account(await door.organization())
        service = await door.service_token("unikorn-compute")
        for token in ((await door.log_in(ann))[0], await door.new_token(robot)):
            assert await door.let_in(token, fault="it makes no sense") == await door.let_in(token)
            assert await door.let_in(token, fault="it makes no sense") == await door.let_in(token)
        await door.let_in(service)
        for _ in range(2):
            with pytest.raises(Malformed, match="it makes no sense"):
                await door.let_in(service, fault="it makes no sense")
        assert (await door.let_in(service)).who == "unikorn-compute"

    at_the_door(scenario)


def test_no_token_is_kept_in_memory_by_the_authenticator() -> None:
    async def scenario(door: Door) -> None:
        token, _ = await door.log_in(await door.user("ann@example.com"))
        await door.let_in(token)
        assert len(door.authenticator._kept) == 1
        assert token not in repr(door.authenticator._kept._entries)

    at_the_door(scenario)


ELSEWHERE = "https://login.example"


def test_a_token_of_another_issuer_has_the_rights_of_its_user_and_of_what_is_bound_to_its_groups() -> None:
    known: dict[str, Bearer] = {}

    async def external(token: str) -> Bearer | None:
        return known.get(token)

    async def scenario(door: Door) -> None:
        acme = await door.organization()
        ann = await door.user("ann@example.com", acme)
        await door.group(acme, "reader", users=[ann])
        facts = {
            "type": "user",
            "expires": START + timedelta(hours=1),
            "issuer": ELSEWHERE,
            "rests_on": (named(User, ann.name),),
        }
        known["of-ann"] = Bearer(subject="ann@example.com", user=ann, **facts)  # type: ignore[arg-type]  # fields of a bearer
        known["of-ops"] = replace(known["of-ann"], groups=("ops",))
        known["of-eve"] = Bearer(subject="eve@example.com", **facts)  # type: ignore[arg-type]  # fields of a bearer
        known["of-joe"] = Bearer(subject="joe@example.com", **facts)  # type: ignore[arg-type]  # fields of a bearer
        everywhere = EXPECTED["platform-reader"].everywhere
        assert (await door.let_in("of-ann")).access.organizations[acme].permissions == READER
        assert (await door.let_in("of-ops")).access == AccessList(everywhere=everywhere)
        assert (await door.let_in("of-joe")).access == AccessList(everywhere=everywhere)
        assert (await door.let_in("of-eve")).access == AccessList()
        await door.suspend(ann)
        known["of-ann"] = replace(known["of-ann"], user=await door.store.get(User, ann.name))
        assert await is_refused(door, "of-ann")

    at_the_door(
        scenario,
        external=external,
        group_bindings=(GroupBinding(issuer=ELSEWHERE, group="ops", roles=("platform-reader",)),),
        role_bindings=(RoleBinding(issuer=ELSEWHERE, subject="joe@example.com", roles=("platform-reader",)),),
    )


def test_credentials_show_nothing_of_themselves() -> None:
    assert "canary" not in repr(Credentials(token="canary", certificate="canary"))
