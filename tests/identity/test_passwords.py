"""Passwords: how they are kept, and how they are set."""

import asyncio
import threading
from collections.abc import Callable
from datetime import datetime
from typing import TypeVar
from urllib.parse import parse_qsl, urlsplit

import msgspec
import pytest

from remuda.http.audit import AuditRecord
from remuda.identity.kinds.oauth import Password, PasswordSpec
from remuda.identity.kinds.tokens import Session
from remuda.identity.kinds.users import User, user_id
from remuda.identity.login.passwords import (
    ARGON2,
    LINK_LIFETIME,
    MAX_BYTES,
    Argon2Parameters,
    Hasher,
    check_length,
    hashed_bytes,
    is_too_long,
)
from remuda.kernel.errors import Invalid, Malformed
from remuda.kernel.randomness import SeededRandomness
from remuda.kernel.secrets import Secret
from remuda.service import in_thread
from tests.kit.environment import options
from tests.kit.identity.login import CHEAP, JO, PASSWORD, Counted, Forms, LoginEnvironment, sent_to
from tests.kit.identity.resource_api import ORG, OTHER_ORG, everywhere, member

T = TypeVar("T")

NEW = "an altogether new and good password"
PATH = "/oauth2/v2/password"


def hasher(hashing: Argon2Parameters = CHEAP) -> Hasher:
    return Hasher(run_blocking=Counted(), randomness=SeededRandomness(1), parameters=hashing)


async def test_a_hash_fits_its_password_alone_and_says_how_it_was_made() -> None:
    made = await hasher().hash(Secret("open sesame, please"))
    assert made.reveal().startswith("$argon2id$v=19$m=8,t=1,p=1$")
    assert await hasher().matches(made, Secret("open sesame, please"))
    assert not await hasher().matches(made, Secret("open sesame, pleas"))
    assert not await hasher().matches(None, Secret("open sesame, please"))


async def test_a_password_is_the_same_however_its_letters_are_composed() -> None:
    made = await hasher().hash(Secret("cafe\u0301 au lait, two"))
    assert await hasher().matches(made, Secret("caf\u00e9 au lait, two"))


async def test_m27_of_a_password_that_is_too_long_only_the_beginning_is_normalized() -> None:
    marks = "a" + "\u0344" * 30_000
    assert len(hashed_bytes(Secret(marks))) < 6 * MAX_BYTES
    assert is_too_long(Secret(marks))
    stored = await hasher().hash(Secret(marks[:100]))
    assert not await hasher().matches(stored, Secret(marks))
    with pytest.raises(Invalid, match="too long"):
        check_length(Secret(marks))


async def test_a_password_that_may_be_set_fits_however_much_longer_it_is_when_composed() -> None:
    sign = "\ufdfa"  # one letter of three bytes, 18 letters of 33 bytes as it is hashed
    longest = Secret(sign * 31 + "x")
    check_length(longest)
    assert await hasher().matches(await hasher().hash(longest), longest)
    with pytest.raises(Invalid, match="too long"):
        check_length(Secret(sign * 32))


async def test_two_hashes_of_one_password_are_not_alike() -> None:
    one = hasher()
    assert (await one.hash(Secret(PASSWORD))).reveal() != (await one.hash(Secret(PASSWORD))).reveal()


async def test_a_stored_hash_that_is_none_fits_nothing() -> None:
    for damaged in ("", "x", "$argon2id$v=19$m=8,t=1,p=1$AAAA$"):
        assert not await hasher().matches(Secret(damaged), Secret(PASSWORD))


async def test_of_many_only_a_few_are_hashed_at_once() -> None:
    running, most, lock = 0, 0, threading.Lock()

    async def run_blocking(work: Callable[[], T]) -> T:
        def counted() -> T:
            nonlocal running, most
            with lock:
                running += 1
                most = max(most, running)
            try:
                return work()
            finally:
                with lock:
                    running -= 1

        return await in_thread(counted)

    busy = Hasher(
        run_blocking=run_blocking,
        randomness=SeededRandomness(1),
        parameters=Argon2Parameters(memory_kib=256, time_cost=1, concurrency=2),
    )
    assert not any(await asyncio.gather(*(busy.matches(None, Secret(PASSWORD)) for _ in range(50))))
    assert most <= 2


def test_the_parameters_are_those_that_the_standard_recommends() -> None:
    assert (ARGON2.memory_kib, ARGON2.time_cost) == (65_536, 3)
    assert ARGON2.memory_kib * ARGON2.concurrency <= 256 * 1024


@pytest.mark.parametrize("password", ["", "eleven char", "long" * 257, "\N{GRINNING FACE}" * 257])
def test_a_password_that_is_too_short_or_too_long_is_refused(password: str) -> None:
    with pytest.raises(Invalid, match=r"password is too (short|long): choose one of at"):
        check_length(Secret(password))


def test_a_password_of_twelve_characters_is_enough() -> None:
    check_length(Secret("twelve chars"))
    check_length(Secret("\N{GRINNING FACE}" * 11 + "x"))


async def test_a_hash_of_other_parameters_is_computed_again_at_the_next_login(logins: LoginEnvironment) -> None:
    jo = await logins.store.get(Password, user_id(JO))
    older = await hasher(Argon2Parameters(memory_kib=16, time_cost=1)).hash(Secret(PASSWORD))
    spec = msgspec.structs.replace(jo.spec, hash=older)
    await logins.store.update(msgspec.structs.replace(jo, spec=spec))
    assert not await logins.services.passwords.verify(jo.name, Secret("wrong password"))
    assert await stored_hash(logins) == older.reveal()
    assert await logins.services.passwords.verify(jo.name, Secret(PASSWORD))
    assert "m=8,t=1" in await stored_hash(logins)
    assert (await logins.store.get(Password, jo.name)).spec.changed == jo.spec.changed, "nobody is logged out by it"
    assert await logins.services.passwords.verify(jo.name, Secret(PASSWORD))


async def stored_hash(logins: LoginEnvironment) -> str:
    stored = (await logins.store.get(Password, user_id(JO))).spec.hash
    assert stored is not None
    return stored.reveal()


async def test_no_byte_of_the_store_has_a_password_a_hash_or_a_link(logins: LoginEnvironment) -> None:
    link = (await logins.services.passwords.create_link(user_id(JO))).secret.reveal()
    hashed = await stored_hash(logins)
    directory = logins.world.disk.directory
    bytes_ = b"".join(path.read_bytes() for path in directory.iterdir() if path.is_file())
    assert len(bytes_) > 10_000
    for secret in (PASSWORD, link, hashed, hashed.rpartition("$")[2]):
        assert secret.encode() not in bytes_


async def link_of(logins: LoginEnvironment, subject: str = JO) -> dict[str, str]:
    before = logins.world.clock.now()
    reply = await logins.api.ask(everywhere("root@example.com", "identity:users U")).post(
        "/api/v1/passwords", {"subject": subject}
    )
    assert reply.status == 201, reply.body
    assert (
        before + LINK_LIFETIME
        <= datetime.fromisoformat(reply.json["expiry"])
        <= logins.world.clock.now() + LINK_LIFETIME
    )
    parts = urlsplit(reply.json["link"])
    assert parts.path.endswith(PATH)
    return dict(parse_qsl(parts.query))


async def test_a_link_sets_a_password_once_and_ends_all_sessions(logins: LoginEnvironment) -> None:
    logged_in = await logins.logged_in()
    link = await link_of(logins)
    browser = logins.browser()
    page = await browser.get(PATH, link)
    assert JO in page.body.decode()
    done = await browser.submit(page, new_password=NEW, repeated_password=NEW)
    assert "Your password is set" in done.body.decode()
    assert not (await logins.store.list(Session)).items
    assert (await logged_in.authorize()).status == 200
    assert (await browser.submit(page, new_password=PASSWORD, repeated_password=PASSWORD)).status == 400
    assert (await browser.get(PATH, link)).status == 400
    assert not await logins.services.passwords.verify(user_id(JO), Secret(PASSWORD))
    assert "code" in sent_to(await browser.submit(await browser.authorize(), email=JO, password=NEW))


async def test_a_link_is_good_for_a_day_and_the_next_one_takes_its_place(logins: LoginEnvironment) -> None:
    first, second = await link_of(logins), await link_of(logins)
    browser = logins.browser()
    assert (await browser.get(PATH, first)).status == 400
    await logins.world.clock.sleep(24 * 3600 - 1)
    page = await browser.get(PATH, second)
    assert page.status == 200
    await logins.world.clock.sleep(1)
    assert (await browser.submit(page, new_password=NEW, repeated_password=NEW)).status == 400
    assert await logins.services.passwords.verify(user_id(JO), Secret(PASSWORD))


async def test_of_two_who_use_a_link_at_once_one_sets_the_password(logins: LoginEnvironment) -> None:
    link = (await link_of(logins))["link"]
    chosen = ["the first new password", "the second new password"]
    passwords = logins.services.passwords
    ends = await asyncio.gather(*(passwords.set_by_link(link, Secret(each)) for each in chosen), return_exceptions=True)
    assert sorted(type(end).__name__ for end in ends) == ["Malformed", "NoneType"]
    (won,) = (each for each, end in zip(chosen, ends, strict=True) if end is None)
    assert await passwords.verify(user_id(JO), Secret(won))


@pytest.mark.parametrize("link", ["x", "A" * 43, "../../etc/passwd", "\N{SNOWMAN}"])
async def test_a_link_that_never_was_is_refused(logins: LoginEnvironment, link: str) -> None:
    assert (await logins.browser().get(PATH, {"link": link})).status == 400
    reply = await logins.browser().post(PATH, {"link": link, "new_password": NEW, "repeated_password": NEW})
    assert reply.status == 400
    with pytest.raises(Malformed):
        await logins.services.passwords.set_by_link(link, Secret(NEW))


@pytest.mark.parametrize(("chosen", "again"), [("short", "short"), (NEW, f"{NEW}!"), ("", ""), (JO, JO)])
async def test_a_password_that_will_not_do_is_asked_for_again_and_the_link_stays_good(
    logins: LoginEnvironment, chosen: str, again: str
) -> None:
    link = await link_of(logins)
    browser = logins.browser()
    reply = await browser.submit(await browser.get(PATH, link), new_password=chosen, repeated_password=again)
    assert reply.status == 400
    assert 'role="alert"' in reply.body.decode()
    assert not {"new_password", "repeated_password"} & {
        name for name, value in Forms.of(reply)[0].fields.items() if value
    }
    assert await logins.services.passwords.verify(user_id(JO), Secret(PASSWORD))
    assert (await browser.submit(reply, new_password=NEW, repeated_password=NEW)).status == 200


async def test_a_user_who_knows_the_present_password_changes_it(logins: LoginEnvironment) -> None:
    await logins.logged_in()
    browser = logins.browser()
    page = await browser.get(PATH)
    wrong = await browser.submit(
        page, email=JO, password="not the present one", new_password=NEW, repeated_password=NEW
    )
    unknown = await browser.submit(page, email="x@y.test", password=PASSWORD, new_password=NEW, repeated_password=NEW)
    assert wrong.status == unknown.status == 401
    assert wrong.body.decode().replace(JO, "") == unknown.body.decode().replace("x@y.test", "")
    assert len((await logins.store.list(Session)).items) == 1
    assert (
        await browser.submit(page, email=JO, password=PASSWORD, new_password=NEW, repeated_password=NEW)
    ).status == 200
    assert not (await logins.store.list(Session)).items
    assert await logins.services.passwords.verify(user_id(JO), Secret(NEW))
    entries = (await logins.store.read("audit", "system")).entries
    read = [msgspec.json.decode(entry.data, type=AuditRecord) for entry in entries]
    told = [(each.actor.subject, each.result.status) for each in read if each.operation.route == PATH]
    assert told == [(JO, 401), ("", 401), (JO, 302)]


@options(logins_per_minute=2)
async def test_guessing_the_present_password_is_limited_together_with_logging_in(logins: LoginEnvironment) -> None:
    browser = logins.browser()
    form = {"email": JO, "password": "wrong password", "new_password": NEW, "repeated_password": NEW}
    statuses = [(await browser.post(PATH, form)).status for _ in range(3)]
    assert statuses == [401, 401, 429]
    assert (await browser.submit(await browser.authorize(), email=JO, password="wrong password")).status == 429
    assert (await browser.submit(await browser.authorize(), email=JO, password=PASSWORD)).status == 302


async def test_only_who_may_change_users_everywhere_makes_a_link(logins: LoginEnvironment) -> None:
    body = {"subject": JO}
    administrator = logins.api.ask(member("admin@example.com", ORG, "identity:users CRUD"))
    assert (await administrator.post("/api/v1/passwords", body)).status == 403
    reader = logins.api.ask(everywhere("reader@example.com", "identity:users R"))
    assert (await reader.post("/api/v1/passwords", body)).status == 403
    assert (await logins.api.ask(None).post("/api/v1/passwords", body)).status == 401
    root = logins.api.ask(everywhere("root@example.com", "identity:users U"))
    assert (await root.post("/api/v1/passwords", {"subject": "nobody@example.com"})).status == 404
    assert (await root.post("/api/v1/passwords", {"subject": ""})).status == 400


async def test_a_link_is_told_to_the_system_and_where_its_user_is_a_member_and_not_where_its_maker_is(
    logins: LoginEnvironment,
) -> None:
    await logins.organization(OTHER_ORG)
    await logins.member(OTHER_ORG, user_id(JO))
    root = everywhere("root@example.com", "identity:users U")
    client = logins.api.ask(msgspec.structs.replace(root, organization=ORG, organizations=(ORG,)))
    assert (await client.post("/api/v1/passwords", {"subject": JO})).status == 201
    assert (await client.post("/api/v1/passwords", {"subject": "nobody@example.com"})).status == 404

    async def told(subject: str) -> list[tuple[str, str, str, int]]:
        entries = (await logins.store.read("audit", subject)).entries
        read = [msgspec.json.decode(entry.data, type=AuditRecord) for entry in entries]
        return [(each.actor.subject, each.resource.type, each.resource.id, each.result.status) for each in read]

    made, missed = ("root@example.com", "passwords", user_id(JO), 201), ("root@example.com", "passwords", "", 404)
    assert await told("system") == [made, missed]
    assert await told(f"organization/{OTHER_ORG}") == [made]
    assert await told(f"organization/{ORG}") == []


async def test_a_link_for_somebody_without_a_password_gives_them_one(logins: LoginEnvironment) -> None:
    await logins.user("new@example.com")
    browser = logins.browser()
    page = await browser.get(PATH, await link_of(logins, "New@Example.com"))
    await browser.submit(page, new_password=NEW, repeated_password=NEW)
    answer = await browser.submit(await browser.authorize(), email="new@example.com", password=NEW)
    assert "code" in sent_to(answer)


async def test_setting_a_password_ends_sessions_before_it_is_written_so_that_a_break_leaves_none_alive(
    logins: LoginEnvironment,
) -> None:
    order: list[str] = []
    passwords = logins.services.passwords

    class Noting:
        async def end_all(self, user: str) -> None:
            stored = (await logins.store.get(Password, user)).spec
            order.append("before" if stored.hash == before.hash else "after")

    before: PasswordSpec = (await logins.store.get(Password, user_id(JO))).spec
    passwords._sessions = Noting()
    await passwords.set_password(user_id(JO), Secret(NEW))
    assert order == ["before", "after"]


async def test_there_is_no_password_for_a_user_who_is_not_there(logins: LoginEnvironment) -> None:
    with pytest.raises(Exception, match="There is no User"):
        await logins.services.passwords.set_password(user_id("nobody@example.com"), Secret(NEW))
    assert [each.name for each in (await logins.store.list(Password)).items] == [user_id(JO)]
    assert [each.name for each in (await logins.store.list(User)).items] == [user_id(JO)]
