"""Authentication where identity is in another process: over a real socket, in real time that can be put forward."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from remuda.access.principal import AccessList
from remuda.http.authentication import RequestCredentials
from remuda.http.errors import error_response
from remuda.identity.kinds.tokens import SigningKey, SigningKeySpec
from remuda.identity.kinds.users import Group
from remuda.identity.rbac.remote_authenticator import CACHE_S
from remuda.identity.rbac.revocation_feed import MAX_AGE_S, IdentityUnavailable
from remuda.identity.settings import GroupBinding
from remuda.identity.tokens.jwt import ACCESS
from remuda.kernel.errors import Malformed, Unauthenticated
from tests.kit.http_server import until
from tests.kit.identity.authenticator import claim
from tests.kit.identity.builtin_roles import EXPECTED
from tests.kit.identity.external_issuer import ELSEWHERE, GROUPS, key, trusted
from tests.kit.identity.remote_authenticator import apart

COMPUTE = "unikorn-compute"


async def test_everybody_is_who_they_are_at_identity_itself(tmp_path: Path) -> None:
    async with apart(tmp_path) as there:
        transport = there.environment
        acme, blue = await transport.organization(), await transport.organization()
        ann = await transport.user("ann@example.com", acme, blue)
        robot = await transport.account(acme)
        group = await transport.group(acme, "user", users=[ann], accounts=[robot])
        await transport.project(acme, group)
        taken = await transport.tokens.tokens.issue_for_operator(ann, operator="root", lifetime=timedelta(minutes=5))
        tokens = [
            (await transport.log_in(ann))[0],
            await transport.new_token(robot),
            await transport.service_token(COMPUTE),
        ]
        for token in (*tokens, taken.token.reveal()):
            assert await there.let_in(token) == await transport.let_in(token)


async def test_a_service_has_its_own_permissions_there_or_impersonating_what_both_have(tmp_path: Path) -> None:
    async with apart(tmp_path) as there:
        transport = there.environment
        acme = await transport.organization()
        ann = await transport.user("ann@example.com", acme)
        await transport.group(acme, "user", users=[ann])
        said = claim("ann@example.com", type="user", organization=acme, organizations=(acme,))
        tokens = {"token": await transport.service_token(COMPUTE)}
        certificates = {"certificate": transport.certificate(COMPUTE)}
        for shown in (tokens, certificates):
            for impersonate in (False, True):
                principal = await there.let_in(**shown, claim=said, impersonate=impersonate)
                assert principal == await transport.let_in(**shown, claim=said, impersonate=impersonate)
            assert principal.access.organizations[acme].permissions < EXPECTED["compute-service"].everywhere
            nobody = await there.rejection(**shown, claim=claim("x", type="system"), impersonate=True)
            assert isinstance(nobody, Malformed)
        carried = {"token": (await transport.log_in(ann))[0], **certificates}
        assert await there.let_in(**carried, claim=said) == await transport.let_in(**carried, claim=said)
        strange = await there.rejection(certificate=transport.certificate("unikorn-dispute"), claim=said)
        assert isinstance(strange, Unauthenticated)
        late = transport.certificate(COMPUTE, ends=timedelta(seconds=-1))
        assert isinstance(await there.rejection(certificate=late, claim=said), Unauthenticated)


async def test_a_service_whose_claim_makes_no_sense_is_refused_there_too(tmp_path: Path) -> None:
    async with apart(tmp_path) as there:
        user, _ = await there.environment.log_in(await there.environment.user("ann@example.com"))
        service = await there.environment.service_token(COMPUTE)
        for token in (user, service):
            await there.let_in(token)
        asked = there.asked["acl"]
        rejection = await there.rejection(service, fault="it makes no sense")
        assert isinstance(rejection, Malformed)
        assert rejection.message == "it makes no sense"
        assert await there.let_in(user, fault="it makes no sense") == await there.let_in(user)
        assert there.asked["acl"] == asked


async def test_a_claim_that_counts_for_nothing_is_not_asked_about(tmp_path: Path) -> None:
    async with apart(tmp_path) as there:
        token, _ = await there.environment.log_in(await there.environment.user("ann@example.com"))
        assert await there.authenticator.is_genuine(RequestCredentials(token=token)), "by its signature, before any use"
        assert not await there.authenticator.is_genuine(RequestCredentials(token=f"{token[:-9]}AAAAAAAAA"))
        for number in range(5):
            principal = await there.let_in(token, claim=claim(f"{number}"), impersonate=True)
            assert (principal.subject, principal.actor) == ("ann@example.com", "")
        assert there.asked["acl"] == 1
        assert await there.authenticator.is_genuine(RequestCredentials(token=token))


async def test_a_token_that_is_revoked_is_refused_as_soon_as_the_feed_tells(tmp_path: Path) -> None:
    async with apart(tmp_path) as there:
        transport = there.environment
        ann = await transport.user("ann@example.com")
        (one, _), (other, session) = await transport.log_in(ann), await transport.log_in(ann)
        for token in (one, other):
            await there.let_in(token)
        claims = await transport.tokens.tokens.verify(one)
        asked = there.asked.copy()
        await transport.tokens.tokens.revoke(claims.jti, expires=claims.expires)
        await transport.tokens.tokens.revoke(session.name, expires=claims.expires)
        await until(lambda: claims.jti in there.feed and session.name in there.feed)
        for token in (one, other):
            rejection = await there.rejection(token)
            assert isinstance(rejection, Unauthenticated)
            assert "revoked" in rejection.message
        assert there.asked == asked, "nobody had to be asked"


async def test_what_was_revoked_before_the_service_began_is_known_to_it(tmp_path: Path) -> None:
    async with apart(tmp_path, is_up=False) as there:
        transport = there.environment
        token, session = await transport.log_in(await transport.user("ann@example.com"))
        await transport.tokens.tokens.revoke(session.name, expires=transport.clock.now() + timedelta(hours=1))
        assert isinstance(await there.rejection(token), IdentityUnavailable), (
            "what it does not know it does not believe"
        )
        await there.identity.start()
        await there.until_believed()
        assert isinstance(await there.rejection(token), Unauthenticated)


async def test_permissions_are_asked_for_again_after_two_seconds(tmp_path: Path) -> None:
    async with apart(tmp_path) as there:
        transport = there.environment
        acme = await transport.organization()
        ann = await transport.user("ann@example.com", acme)
        group = await transport.group(acme, "reader", users=[ann])
        token, _ = await transport.log_in(ann)
        before = await there.let_in(token)
        await transport.remove(Group, group)
        assert await there.let_in(token) is before
        assert there.asked["acl"] == 1
        there.clock.ahead_s += CACHE_S
        assert not (await there.let_in(token)).access.organizations[acme].permissions
        await transport.suspend(ann)
        there.clock.ahead_s += CACHE_S
        assert isinstance(await there.rejection(token), Unauthenticated)


async def test_many_requests_at_once_are_one_question(tmp_path: Path) -> None:
    async with apart(tmp_path) as there:
        token, _ = await there.environment.log_in(await there.environment.user("ann@example.com"))
        several = await asyncio.gather(*(there.let_in(token) for _ in range(20)))
        assert there.asked == {"jwks": 1, "acl": 1}
        assert all(each is several[0] for each in several)


async def test_an_answer_that_was_asked_for_too_long_ago_is_asked_for_again(tmp_path: Path) -> None:
    async with apart(tmp_path) as there:
        transport = there.environment
        acme = await transport.organization()
        ann = await transport.user("ann@example.com", acme)
        group = await transport.group(acme, "reader", users=[ann])
        token, _ = await transport.log_in(ann)
        await there.let_in(token)
        there.clock.ahead_s += CACHE_S
        there.may_answer.clear()
        early = asyncio.create_task(there.let_in(token))
        await until(lambda: there.answered["acl"] == 2)
        await transport.remove(Group, group)
        there.clock.ahead_s += CACHE_S
        late = asyncio.create_task(there.let_in(token))
        await until(lambda: there.asked["acl"] == 3)
        there.may_answer.set()
        assert not (await late).access.organizations[acme].permissions
        await early


async def test_one_who_goes_away_while_identity_is_asked_takes_nobody_along(tmp_path: Path) -> None:
    async with apart(tmp_path) as there:
        token, _ = await there.environment.log_in(await there.environment.user("ann@example.com"))
        impatient = asyncio.create_task(there.let_in(token))
        await until(lambda: there.asked["acl"] == 1)
        patient = asyncio.create_task(there.let_in(token))
        await asyncio.sleep(0)
        impatient.cancel()
        assert (await patient).subject == "ann@example.com"
        assert there.asked["acl"] == 1


async def test_a_feed_that_is_cut_off_is_believed_for_ten_seconds(tmp_path: Path) -> None:
    async with apart(tmp_path) as there:
        token, _ = await there.environment.log_in(await there.environment.user("ann@example.com"))
        await there.let_in(token)
        await there.stop_following()
        there.clock.ahead_s += MAX_AGE_S - 2
        assert await there.rejection(token) is None, "identity itself is well, and has answered"
        there.clock.ahead_s += 2.1
        assert isinstance(await there.rejection(token), IdentityUnavailable)


async def test_a_feed_lives_by_its_heartbeats_alone(tmp_path: Path) -> None:
    async with apart(tmp_path) as there:
        for _ in range(3):
            there.clock.ahead_s += MAX_AGE_S + 1
            assert not there.is_believed()
            await there.until_believed()


async def test_without_identity_nobody_is_let_in_and_it_passes_when_it_is_back(tmp_path: Path) -> None:
    async with apart(tmp_path) as there:
        transport = there.environment
        ann = await transport.user("ann@example.com")
        (token, _), (other, session) = await transport.log_in(ann), await transport.log_in(ann)
        await there.let_in(token)
        await there.identity.stop()
        assert await there.rejection(token) is None, "it was told a moment ago"
        there.clock.ahead_s += CACHE_S
        assert isinstance(await there.rejection(token), IdentityUnavailable)
        there.clock.ahead_s += MAX_AGE_S
        silent = await there.rejection(token)
        assert isinstance(silent, IdentityUnavailable)
        answer = error_response(silent, trace_id="0" * 32)
        assert (answer.status, dict(answer.headers)[b"retry-after"]) == (503, b"2")

        await transport.tokens.tokens.revoke(session.name, expires=transport.clock.now() + timedelta(hours=1))
        await there.identity.start()
        await there.until_believed()
        assert await there.rejection(token) is None
        assert isinstance(await there.rejection(other), Unauthenticated), "what was revoked meanwhile is told first"


async def test_a_service_that_may_not_follow_what_is_revoked_lets_nobody_in(tmp_path: Path) -> None:
    async with apart(tmp_path, service="stranger") as there:
        token, _ = await there.environment.log_in(await there.environment.user("ann@example.com"))
        await asyncio.sleep(0.2)
        assert isinstance(await there.rejection(token), IdentityUnavailable)


async def test_garbage_never_leaves_the_process(tmp_path: Path) -> None:
    async with apart(tmp_path) as there:
        token, _ = await there.environment.log_in(await there.environment.user("ann@example.com"))
        head, body, signature = token.split(".")
        flipped = signature[:-3] + ("A" if signature[-3] != "A" else "B") + signature[-2:]
        for garbage in ("", "x", "a.b.c", f"{head}.{body}.", f"{head}.{body}.{flipped}", "x" * 100_000):
            assert isinstance(await there.rejection(garbage), Unauthenticated)
        assert there.asked["acl"] == 0


async def test_whoever_another_issuer_vouches_for_is_who_they_are_at_identity_itself(tmp_path: Path) -> None:
    bound = GroupBinding(issuer=ELSEWHERE, group="ops", roles=("platform-reader",))
    async with apart(tmp_path, group_bindings=(bound,)) as there:
        transport, issuer = there.environment, there.elsewhere
        await transport.store.create(trusted(allow_external_identity=True, groups_claim=GROUPS))
        acme = await transport.organization()
        ann = await transport.user("ann@example.com", acme)
        await transport.group(acme, "reader", users=[ann])
        soon = int(there.clock.now().timestamp()) + 300
        known, operator = issuer.token("Ann@example.com", exp=soon), {GROUPS: ["ops"], "exp": soon}
        for token in (known, issuer.token("ann@example.com", **operator), issuer.token("eve@example.com", **operator)):
            assert await there.let_in(token) == await transport.let_in(token)
            assert await there.let_in(token, claim=claim("x"), impersonate=True) == await transport.let_in(token)
            assert await there.authenticator.is_genuine(RequestCredentials(token=token))
        carried = {"certificate": transport.certificate(COMPUTE), "claim": claim("x", organization=acme)}
        assert await there.let_in(known, **carried) == await transport.let_in(known, **carried)
        assert (await there.let_in(known)).issuer == ELSEWHERE


async def test_what_identity_does_not_believe_of_another_issuer_is_not_believed_there(tmp_path: Path) -> None:
    async with apart(tmp_path) as there:
        transport, issuer = there.environment, there.elsewhere
        ann = await transport.user("ann@example.com")
        good = issuer.token("ann@example.com")
        assert isinstance(await there.rejection(good), Unauthenticated), "nobody trusts it yet"
        provider = await transport.store.create(trusted())
        bad = [
            issuer.token("eve@example.com"),
            issuer.token("ann@example.com", aud="https://elsewhere.example"),
            issuer.token("ann@example.com", "RS256", key("RSA", "another")),
        ]
        for token in bad:
            rejection = await there.rejection(token)
            with pytest.raises(Unauthenticated) as at_identity:
                await transport.let_in(token)
            assert isinstance(rejection, Unauthenticated)
            assert rejection.message == at_identity.value.message
            assert not await there.authenticator.is_genuine(RequestCredentials(token=token))
        assert (await there.let_in(good)).subject == "ann@example.com"
        await transport.remove(type(provider), provider.name)
        assert await there.rejection(good) is None
        there.clock.ahead_s += CACHE_S
        assert isinstance(await there.rejection(good), Unauthenticated)
        await transport.store.create(trusted())
        await there.let_in(good)
        await transport.suspend(ann)
        there.clock.ahead_s += CACHE_S
        assert isinstance(await there.rejection(good), Unauthenticated)


async def test_a_token_of_another_issuer_ends_when_it_says(tmp_path: Path) -> None:
    async with apart(tmp_path) as there:
        await there.environment.store.create(trusted())
        await there.environment.user("ann@example.com")
        token = there.elsewhere.token("ann@example.com", exp=there.clock.now().timestamp() + 60)
        await there.let_in(token)
        asked = there.asked.copy()
        there.clock.ahead_s += 60
        await there.until_believed()
        assert isinstance(await there.rejection(token), Unauthenticated)
        endless = there.elsewhere.token("ann@example.com", exp=None)
        assert isinstance(await there.rejection(endless), Unauthenticated)
        assert there.asked == asked, "nobody had to be asked"


async def test_many_requests_with_a_token_of_another_issuer_are_one_question(tmp_path: Path) -> None:
    async with apart(tmp_path) as there:
        await there.environment.store.create(trusted())
        await there.environment.user("ann@example.com")
        token = there.elsewhere.token("ann@example.com")
        await asyncio.gather(*(there.let_in(token) for _ in range(20)))
        assert there.asked == {"acl": 1, "userinfo": 1}


@pytest.mark.parametrize("lie", [{"aud": ("evil.example",)}, {"exp": 1}, {"nbf": 2**40, "exp": 2**41}])
async def test_a_token_for_elsewhere_or_another_time_is_refused(tmp_path: Path, lie: dict[str, object]) -> None:
    async with apart(tmp_path) as there:
        tokens = there.environment.tokens.tokens
        token, _ = await there.environment.log_in(await there.environment.user("ann@example.com"))
        lying = replace(await tokens.verify(token), **lie)
        assert isinstance(await there.rejection((await tokens.sign(lying, ACCESS)).reveal()), Unauthenticated)
        assert there.asked["acl"] == 0


async def test_nobody_else_can_have_signed_a_token_of_another_issuer_with_our_key(tmp_path: Path) -> None:
    async with apart(tmp_path) as there:
        tokens = there.environment.tokens.tokens
        token, _ = await there.environment.log_in(await there.environment.user("ann@example.com"))
        await there.environment.store.create(trusted())
        for issuer in ("http://evil.example", ELSEWHERE):
            lying = replace(await tokens.verify(token), iss=issuer)
            assert isinstance(await there.rejection((await tokens.sign(lying, ACCESS)).reveal()), Unauthenticated)


async def test_a_new_key_is_found_and_made_up_ones_make_us_ask_once_a_minute(tmp_path: Path) -> None:
    async with apart(tmp_path) as there:
        transport = there.environment
        ann = await transport.user("ann@example.com")
        old, _ = await transport.log_in(ann)
        await there.let_in(old)
        (stored,) = (await transport.store.list(SigningKey)).items
        keys = stored.spec.private_keys
        await transport.remove(SigningKey, stored.name)
        token, _ = await transport.log_in(ann)  # with a new first key
        made = await transport.store.get(SigningKey, stored.name)
        both = SigningKeySpec(private_keys=(*made.spec.private_keys, *keys))
        await transport.store.update(replace(made, spec=both))
        for _ in range(3):
            assert isinstance(await there.rejection(token), Unauthenticated)
        assert there.asked["jwks"] == 1
        there.clock.ahead_s += 61
        await there.until_believed()
        assert await there.rejection(token) is None
        assert await there.rejection(old) is None
        assert there.asked["jwks"] == 2


async def test_an_empty_access_list_is_one(tmp_path: Path) -> None:
    async with apart(tmp_path) as there:
        robot = await there.environment.account(await there.environment.organization())
        assert (await there.let_in(await there.environment.new_token(robot))).access == AccessList()
