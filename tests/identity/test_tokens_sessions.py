"""Sessions: each login is one, is refreshed by one token at a time, and ends as a whole."""

import asyncio
from datetime import timedelta

import pytest
from msgspec.structs import replace

from remuda.identity.kinds.oauth import AuthorizationCode, DeviceGrant, UsedAssertion, UsedAssertionSpec
from remuda.identity.kinds.tokens import Revocation, Session, SigningKey
from remuda.identity.kinds.users import User
from remuda.identity.tokens.controller import controllers
from remuda.identity.tokens.secrets import token_hash
from remuda.identity.tokens.sessions import RefreshToken, ReusedError
from remuda.kernel.errors import NotFound
from remuda.reconcile.ports import ReconcilePorts
from remuda.store.objects import Metadata, Resource
from tests.kit.environment import options
from tests.kit.identity.oauth import OAuthEnvironment


async def is_there(oauth: OAuthEnvironment, kind: type[Resource], name: str) -> bool:
    try:
        await oauth.store.get(kind, name)
    except NotFound:
        return False
    return True


async def began(oauth: OAuthEnvironment, user: User, client: str = "cli") -> tuple[Session, RefreshToken]:
    refresh = oauth.api.sessions.new_refresh()
    return await oauth.api.sessions.begin(user=user, client=client, refresh=refresh), refresh


async def access_token(oauth: OAuthEnvironment, user: User, session: Session) -> str:
    return (await oauth.api.tokens.issue_for_session(user, session)).token.reveal()


async def settle(oauth: OAuthEnvironment, *, seconds: float) -> None:
    """Let the controllers work for a while."""
    ports = ReconcilePorts(store=oauth.store, clock=oauth.clock, randomness=oauth.world.randomness, log=oauth.store)
    working = controllers(ports, oauth.api.sessions, oauth.api.keys)
    for driver in working:
        await driver.start()
    await oauth.clock.sleep(seconds)
    for driver in working:
        await driver.stop()


async def test_two_logins_of_one_user_through_one_client_stand_side_by_side(oauth: OAuthEnvironment) -> None:
    ann = await oauth.user("ann@example.com")
    (laptop, _), (desktop, _) = await began(oauth, ann), await began(oauth, ann)
    tokens = [await access_token(oauth, ann, each) for each in (laptop, desktop)]
    await oauth.api.sessions.end(laptop)
    assert [await oauth.is_good(token) for token in tokens] == [False, True]


async def test_a_login_is_noted_with_its_user_and_a_refresh_is_none(oauth: OAuthEnvironment) -> None:
    ann = await oauth.user("ann@example.com")
    when = oauth.clock.now()
    session, refresh = await began(oauth, ann)
    await began(oauth, ann, client="console")
    oauth.clock.move(timedelta(minutes=5))
    await oauth.api.sessions.refresh(session, refresh)
    noted = (await oauth.store.get(User, ann.name)).spec.sessions
    assert {each.client_id for each in noted} == {"cli", "console"}
    for each in noted:
        assert each.last_authentication is not None
        assert each.last_authentication - when < timedelta(minutes=1)
        assert (each.access_token, each.refresh_token) == ("", "")


async def test_an_earlier_refresh_token_ends_the_session(oauth: OAuthEnvironment) -> None:
    ann, sessions = await oauth.user("ann@example.com"), oauth.api.sessions
    session, first = await began(oauth, ann)
    token = await access_token(oauth, ann, session)
    session, second = await sessions.refresh(session, first)
    session, third = await sessions.refresh(session, second)
    assert await sessions.of_refresh(third) == session
    with pytest.raises(ReusedError):
        await sessions.refresh(session, first)
    assert await sessions.of_refresh(third) is None
    assert not await oauth.is_good(token)
    assert await is_there(oauth, Revocation, session.name)


async def test_a_guess_at_a_refresh_token_ends_nothing(oauth: OAuthEnvironment) -> None:
    ann, sessions = await oauth.user("ann@example.com"), oauth.api.sessions
    session, _ = await began(oauth, ann)
    guess = RefreshToken.new(session.name, oauth.world.randomness)
    assert await sessions.of_refresh(guess) is None
    assert await sessions.find(session.name) == session


@options(seeds=20)
async def test_of_many_who_refresh_at_once_at_most_one_succeeds_and_the_session_is_over(
    oauth: OAuthEnvironment,
) -> None:
    ann = await oauth.user("ann@example.com")
    session, refresh = await began(oauth, ann)
    resources = [oauth.api, *(oauth.new_api() for _ in range(3))]
    ends = await asyncio.gather(
        *(tokens.sessions.refresh(session, refresh) for tokens in resources), return_exceptions=True
    )
    assert [type(end) for end in ends].count(ReusedError) == len(resources) - 1
    (won,) = (end for end in ends if isinstance(end, tuple))
    assert await oauth.api.sessions.of_refresh(won[1]) is None


async def test_even_refreshing_ends_with_the_session(oauth: OAuthEnvironment) -> None:
    ann = await oauth.user("ann@example.com")
    session, refresh = await began(oauth, ann)
    oauth.clock.move(timedelta(days=89, hours=23, minutes=30))
    session, refresh = await oauth.api.sessions.refresh(session, refresh)
    issued = await oauth.api.tokens.issue_for_session(ann, session)
    assert issued.expires <= session.spec.expires  # type: ignore[operator]  # it has one
    oauth.clock.move(timedelta(minutes=30))
    assert await oauth.api.sessions.of_refresh(refresh) is None
    assert not await oauth.is_good(issued.token.reveal())


async def test_all_sessions_of_a_user_end_at_once_and_nobody_elses(oauth: OAuthEnvironment) -> None:
    ann, bob = await oauth.user("ann@example.com"), await oauth.user("bob@example.com")
    hers = [(await began(oauth, ann))[0] for _ in range(3)]
    his, _ = await began(oauth, bob)
    assert await oauth.api.sessions.end_all(ann.name) == 3
    assert [await oauth.api.sessions.find(each.name) for each in hers] == [None] * 3
    assert await oauth.api.sessions.find(his.name) is not None
    assert await oauth.api.sessions.end_all(ann.name) == 0


async def test_a_suspended_user_has_no_good_token(oauth: OAuthEnvironment) -> None:
    ann = await oauth.user("ann@example.com")
    session, _ = await began(oauth, ann)
    token = await access_token(oauth, ann, session)
    assert await oauth.is_good(token)
    await oauth.suspend(ann)
    assert not await oauth.is_good(token)


async def test_a_deleted_user_leaves_no_session_behind(oauth: OAuthEnvironment) -> None:
    ann = await oauth.user("ann@example.com")
    session, _ = await began(oauth, ann)
    token = await access_token(oauth, ann, session)
    await oauth.remove(User, ann.name)
    assert not await is_there(oauth, Session, session.name)
    assert not await is_there(oauth, User, ann.name)
    assert not await oauth.is_good(token)


async def test_a_session_that_was_ended_just_before_a_crash_is_over_and_is_cleared_away_later(
    oauth: OAuthEnvironment,
) -> None:
    ann = await oauth.user("ann@example.com")
    session, refresh = await began(oauth, ann)
    token = await access_token(oauth, ann, session)
    marked = replace(session, spec=replace(session.spec, ended=oauth.clock.now()))
    await oauth.store.update(marked)  # the first write of ending it, and the process is gone
    assert await oauth.api.sessions.of_refresh(refresh) is None
    assert not await oauth.is_good(token)
    await settle(oauth, seconds=5)
    assert not await is_there(oauth, Session, session.name)
    assert await is_there(oauth, Revocation, session.name)


async def test_what_has_had_its_time_is_forgotten_and_nothing_else(oauth: OAuthEnvironment) -> None:
    ann, app = await oauth.user("ann@example.com"), await oauth.app()
    session, _ = await began(oauth, ann)
    revoked = await oauth.api.tokens.issue_for_service("unikorn-region")
    await oauth.api.tokens.revoke(revoked.id, expires=revoked.expires)
    code = token_hash(await oauth.code(ann, app))
    device = token_hash((await oauth.oauth.devices.begin(app.id, "")).device_code.reveal())
    used = UsedAssertionSpec(expires=oauth.clock.now() + timedelta(minutes=5))
    await oauth.store.create(UsedAssertion(metadata=Metadata(name="used"), spec=used))
    things: list[tuple[type[Resource], str]] = [
        (AuthorizationCode, code),
        (UsedAssertion, "used"),
        (DeviceGrant, device),
        (Revocation, revoked.id),
        (Session, session.name),
    ]
    await settle(oauth, seconds=30)
    assert [await is_there(oauth, *each) for each in things] == [True] * 5
    await settle(oauth, seconds=60)
    assert [await is_there(oauth, *each) for each in things] == [False, True, True, True, True]
    oauth.clock.move(timedelta(hours=2))
    await settle(oauth, seconds=5)
    assert [await is_there(oauth, *each) for each in things] == [False, True, False, True, True]
    oauth.clock.move(timedelta(days=1))
    await settle(oauth, seconds=5)
    assert [await is_there(oauth, *each) for each in things] == [False, False, False, False, True]
    oauth.clock.move(timedelta(days=90))
    await settle(oauth, seconds=5)
    assert not await is_there(oauth, Session, session.name)


async def test_a_clock_that_is_put_back_revives_nothing_that_was_revoked_or_used(oauth: OAuthEnvironment) -> None:
    ann = await oauth.user("ann@example.com")
    session, _ = await began(oauth, ann)
    of_session, alone = await access_token(oauth, ann, session), await began(oauth, ann)
    token = await access_token(oauth, ann, alone[0])
    claims = await oauth.api.tokens.verify(token)
    await oauth.api.tokens.revoke(claims.jti, expires=claims.expires)
    await oauth.api.sessions.end(session)
    used = UsedAssertionSpec(expires=oauth.clock.now() + timedelta(minutes=5))
    await oauth.store.create(UsedAssertion(metadata=Metadata(name="used"), spec=used))
    oauth.clock.move(timedelta(hours=23))
    await settle(oauth, seconds=5)
    oauth.clock.move(timedelta(hours=-23))
    assert (await oauth.api.tokens.verify(token)).jti == claims.jti, "by its times alone it would be good again"
    assert not await oauth.is_good(token)
    assert not await oauth.is_good(of_session)
    assert await is_there(oauth, Revocation, session.name), "other services know of it, too"
    assert await is_there(oauth, UsedAssertion, "used")


@options(signing_key_lifetime=timedelta(seconds=70))
async def test_the_signing_key_is_renewed_by_itself(oauth: OAuthEnvironment) -> None:
    await oauth.api.keys.current()
    await settle(oauth, seconds=30)
    assert len((await oauth.store.list(SigningKey)).items[0].spec.private_keys) == 1
    await settle(oauth, seconds=90)
    assert len((await oauth.store.list(SigningKey)).items[0].spec.private_keys) == 2
