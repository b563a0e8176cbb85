"""Sessions: each login is one, is refreshed by one token at a time, and ends as a whole."""

import asyncio
from datetime import timedelta

import pytest
from msgspec.structs import replace

from remuda.identity.kinds.oauth import AuthorizationCode, DeviceGrant, UsedAssertion, UsedAssertionSpec
from remuda.identity.kinds.tokens import Revocation, Session, SigningKey
from remuda.identity.kinds.users import User
from remuda.identity.tokens.controller import drivers
from remuda.identity.tokens.secrets import token_hash
from remuda.identity.tokens.sessions import RefreshToken, ReusedError
from remuda.kernel.errors import NotFound
from remuda.reconcile.ports import ReconcilePorts
from remuda.store.objects import Metadata, Resource
from tests.identity.tokens_desk import Desk, at_a_desk


async def is_there(desk: Desk, kind: type[Resource], name: str) -> bool:
    try:
        await desk.store.get(kind, name)
    except NotFound:
        return False
    return True


async def began(desk: Desk, user: User, client: str = "cli") -> tuple[Session, RefreshToken]:
    refresh = desk.room.sessions.new_refresh()
    return await desk.room.sessions.begin(user=user, client=client, refresh=refresh), refresh


async def access_token(desk: Desk, user: User, session: Session) -> str:
    return (await desk.room.tokens.issue_for_session(user, session)).token.reveal()


async def settle(desk: Desk, *, seconds: float) -> None:
    """Let the controllers work for a while."""
    ports = ReconcilePorts(store=desk.store, clock=desk.clock, randomness=desk.world.randomness, log=desk.store)
    working = drivers(ports, desk.room.sessions, desk.room.keys)
    for driver in working:
        await driver.start()
    await desk.clock.sleep(seconds)
    for driver in working:
        await driver.stop()


def test_two_logins_of_one_user_through_one_client_stand_side_by_side() -> None:
    async def scenario(desk: Desk) -> None:
        ann = await desk.user("ann@example.com")
        (laptop, _), (desktop, _) = await began(desk, ann), await began(desk, ann)
        tokens = [await access_token(desk, ann, each) for each in (laptop, desktop)]
        await desk.room.sessions.end(laptop)
        assert [await desk.is_good(token) for token in tokens] == [False, True]

    at_a_desk(scenario)


def test_a_login_is_noted_with_its_user_and_a_refresh_is_none() -> None:
    async def scenario(desk: Desk) -> None:
        ann = await desk.user("ann@example.com")
        when = desk.clock.now()
        session, refresh = await began(desk, ann)
        await began(desk, ann, client="console")
        desk.clock.move(timedelta(minutes=5))
        await desk.room.sessions.refresh(session, refresh)
        noted = (await desk.store.get(User, ann.name)).spec.sessions
        assert {each.client_id for each in noted} == {"cli", "console"}
        for each in noted:
            assert each.last_authentication is not None
            assert each.last_authentication - when < timedelta(minutes=1)
            assert (each.access_token, each.refresh_token) == ("", "")

    at_a_desk(scenario)


def test_an_earlier_refresh_token_ends_the_session() -> None:
    async def scenario(desk: Desk) -> None:
        ann, sessions = await desk.user("ann@example.com"), desk.room.sessions
        session, first = await began(desk, ann)
        token = await access_token(desk, ann, session)
        session, second = await sessions.refresh(session, first)
        session, third = await sessions.refresh(session, second)
        assert await sessions.of_refresh(third) == session
        with pytest.raises(ReusedError):
            await sessions.refresh(session, first)
        assert await sessions.of_refresh(third) is None
        assert not await desk.is_good(token)
        assert await is_there(desk, Revocation, session.name)

    at_a_desk(scenario)


def test_a_guess_at_a_refresh_token_ends_nothing() -> None:
    async def scenario(desk: Desk) -> None:
        ann, sessions = await desk.user("ann@example.com"), desk.room.sessions
        session, _ = await began(desk, ann)
        guess = RefreshToken.new(session.name, desk.world.randomness)
        assert await sessions.of_refresh(guess) is None
        assert await sessions.find(session.name) == session

    at_a_desk(scenario)


def test_of_many_who_refresh_at_once_at_most_one_succeeds_and_the_session_is_over() -> None:
    async def scenario(desk: Desk) -> None:
        ann = await desk.user("ann@example.com")
        session, refresh = await began(desk, ann)
        rooms = [desk.room, *(desk.new_room() for _ in range(3))]
        ends = await asyncio.gather(
            *(room.sessions.refresh(session, refresh) for room in rooms), return_exceptions=True
        )
        assert [type(end) for end in ends].count(ReusedError) == len(rooms) - 1
        (won,) = (end for end in ends if isinstance(end, tuple))
        assert await desk.room.sessions.of_refresh(won[1]) is None

    at_a_desk(scenario, seeds=20)


def test_even_refreshing_ends_with_the_session() -> None:
    async def scenario(desk: Desk) -> None:
        ann = await desk.user("ann@example.com")
        session, refresh = await began(desk, ann)
        desk.clock.move(timedelta(days=89, hours=23, minutes=30))
        session, refresh = await desk.room.sessions.refresh(session, refresh)
        issued = await desk.room.tokens.issue_for_session(ann, session)
        assert issued.expires <= session.spec.expires  # type: ignore[operator]  # it has one
        desk.clock.move(timedelta(minutes=30))
        assert await desk.room.sessions.of_refresh(refresh) is None
        assert not await desk.is_good(issued.token.reveal())

    at_a_desk(scenario)


def test_all_sessions_of_a_user_end_at_once_and_nobody_elses() -> None:
    async def scenario(desk: Desk) -> None:
        ann, bob = await desk.user("ann@example.com"), await desk.user("bob@example.com")
        hers = [(await began(desk, ann))[0] for _ in range(3)]
        his, _ = await began(desk, bob)
        assert await desk.room.sessions.end_all(ann.name) == 3
        assert [await desk.room.sessions.find(each.name) for each in hers] == [None] * 3
        assert await desk.room.sessions.find(his.name) is not None
        assert await desk.room.sessions.end_all(ann.name) == 0

    at_a_desk(scenario)


def test_a_suspended_user_has_no_good_token() -> None:
    async def scenario(desk: Desk) -> None:
        ann = await desk.user("ann@example.com")
        session, _ = await began(desk, ann)
        token = await access_token(desk, ann, session)
        assert await desk.is_good(token)
        await desk.suspend(ann)
        assert not await desk.is_good(token)

    at_a_desk(scenario)


def test_a_deleted_user_leaves_no_session_behind() -> None:
    async def scenario(desk: Desk) -> None:
        ann = await desk.user("ann@example.com")
        session, _ = await began(desk, ann)
        token = await access_token(desk, ann, session)
        await desk.remove(User, ann.name)
        assert not await is_there(desk, Session, session.name)
        assert not await is_there(desk, User, ann.name)
        assert not await desk.is_good(token)

    at_a_desk(scenario)


def test_a_session_that_was_ended_just_before_a_crash_is_over_and_is_cleared_away_later() -> None:
    async def scenario(desk: Desk) -> None:
        ann = await desk.user("ann@example.com")
        session, refresh = await began(desk, ann)
        token = await access_token(desk, ann, session)
        marked = replace(session, spec=replace(session.spec, ended=desk.clock.now()))
        await desk.store.update(marked)  # the first write of ending it, and the process is gone
        assert await desk.room.sessions.of_refresh(refresh) is None
        assert not await desk.is_good(token)
        await settle(desk, seconds=5)
        assert not await is_there(desk, Session, session.name)
        assert await is_there(desk, Revocation, session.name)

    at_a_desk(scenario)


def test_what_has_had_its_time_is_forgotten_and_nothing_else() -> None:
    async def scenario(desk: Desk) -> None:
        ann, app = await desk.user("ann@example.com"), await desk.app()
        session, _ = await began(desk, ann)
        revoked = await desk.room.tokens.issue_for_service("unikorn-region")
        await desk.room.tokens.revoke(revoked.id, expires=revoked.expires)
        code = token_hash(await desk.code(ann, app))
        device = token_hash((await desk.oauth.devices.begin(app.id, "")).device_code.reveal())
        used = UsedAssertionSpec(expires=desk.clock.now() + timedelta(minutes=5))
        await desk.store.create(UsedAssertion(metadata=Metadata(name="used"), spec=used))
        things: list[tuple[type[Resource], str]] = [
            (AuthorizationCode, code),
            (UsedAssertion, "used"),
            (DeviceGrant, device),
            (Revocation, revoked.id),
            (Session, session.name),
        ]
        await settle(desk, seconds=30)
        assert [await is_there(desk, *each) for each in things] == [True] * 5
        await settle(desk, seconds=60)
        assert [await is_there(desk, *each) for each in things] == [False, True, True, True, True]
        desk.clock.move(timedelta(hours=2))
        await settle(desk, seconds=5)
        assert [await is_there(desk, *each) for each in things] == [False, True, False, True, True]
        desk.clock.move(timedelta(days=1))
        await settle(desk, seconds=5)
        assert [await is_there(desk, *each) for each in things] == [False, False, False, False, True]
        desk.clock.move(timedelta(days=90))
        await settle(desk, seconds=5)
        assert not await is_there(desk, Session, session.name)

    at_a_desk(scenario)


def test_a_clock_that_is_put_back_revives_nothing_that_was_revoked_or_used() -> None:
    async def scenario(desk: Desk) -> None:
        ann = await desk.user("ann@example.com")
        session, _ = await began(desk, ann)
        of_session, alone = await access_token(desk, ann, session), await began(desk, ann)
        token = await access_token(desk, ann, alone[0])
        claims = await desk.room.tokens.verify(token)
        await desk.room.tokens.revoke(claims.jti, expires=claims.expires)
        await desk.room.sessions.end(session)
        used = UsedAssertionSpec(expires=desk.clock.now() + timedelta(minutes=5))
        await desk.store.create(UsedAssertion(metadata=Metadata(name="used"), spec=used))
        desk.clock.move(timedelta(hours=23))
        await settle(desk, seconds=5)
        desk.clock.move(timedelta(hours=-23))
        assert (await desk.room.tokens.verify(token)).jti == claims.jti, "by its times alone it would be good again"
        assert not await desk.is_good(token)
        assert not await desk.is_good(of_session)
        assert await is_there(desk, Revocation, session.name), "other services know of it, too"
        assert await is_there(desk, UsedAssertion, "used")

    at_a_desk(scenario)


def test_the_signing_key_is_renewed_by_itself() -> None:
    async def scenario(desk: Desk) -> None:
        await desk.room.keys.current()
        await settle(desk, seconds=30)
        assert len((await desk.store.list(SigningKey)).items[0].spec.private_keys) == 1
        await settle(desk, seconds=90)
        assert len((await desk.store.list(SigningKey)).items[0].spec.private_keys) == 2

    at_a_desk(scenario, signing_key_life=timedelta(seconds=70))
