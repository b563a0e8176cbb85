"""How often somebody may try a password, and whom others' guessing does not shut out."""

import asyncio
import re
from collections import Counter

import pytest

from remuda.identity.kinds.users import user_id
from remuda.identity.login.browser_state import KNOWN_BROWSER_LIFETIME
from remuda.identity.login.failed_logins import MAX_DELAY
from remuda.store.logs import LOGINS
from tests.kit.asgi.contract import Reply
from tests.kit.environment import options
from tests.kit.identity.account_page import text
from tests.kit.identity.login import JO, KNOWN_BROWSER, PASSWORD, Browser, LoginEnvironment, new_services, sent_to
from tests.kit.identity.login import ROUTES as LOGIN_ROUTES
from tests.kit.identity.resource_api import IdentityApi

OTHER, NOBODY = "other@example.com", "nobody@example.com"
WRONG = "wrong password"
BEFORE_DELAY = 5
DAY_S = 24 * 3600


async def try_password(browser: Browser, account: str, password: str = PASSWORD) -> Reply:
    return await browser.submit(await browser.authorize(prompt="login"), email=account, password=password)


async def guess(logins: LoginEnvironment, account: str, *, times: int = 1) -> list[Reply]:
    """Guess so many times, each time from another address."""
    return [await try_password(logins.browser(f"198.51.100.{number}"), account, WRONG) for number in range(times)]


async def is_delayed(logins: LoginEnvironment, account: str) -> bool:
    return (await try_password(logins.browser("203.0.113.1"), account, WRONG)).status == 429


def visible(reply: Reply) -> str:
    """Return a page without what is different every time."""
    return re.sub(r'name="state" value="[^"]*"|[0-9a-f]{32}', "", reply.body.decode())


async def logs_in(browser: Browser, account: str = JO, password: str = PASSWORD) -> bool:
    """Tell whether a password is accepted, and the login gets to where it was going."""
    reply = await try_password(browser, account, password)
    if reply.status == 200:
        assert "Failed logins to your account" in text(reply)
        reply = await browser.submit(reply)
    return reply.status == 302 and "code" in sent_to(reply)


@options(logins_per_minute=3)
async def test_m27_one_address_that_keeps_guessing_is_slowed_down_and_no_valid_password_is_rejected(
    logins: LoginEnvironment,
) -> None:
    browser, began = logins.browser("198.51.100.1"), logins.world.clock.monotonic()
    replies = [await try_password(browser, f"user{number}@example.com", WRONG) for number in range(30)]
    statuses = [reply.status for reply in replies]
    assert statuses[:4] == [401] * 3 + [429]
    assert set(statuses[3:]) <= {401, 429}
    assert logins.world.clock.monotonic() - began >= 20, "beyond the limit each attempt takes a second"
    assert await logs_in(logins.browser("198.51.100.1"))
    assert await logs_in(logins.browser())


@options(logins_per_minute=3)
async def test_m27_a_flood_of_guesses_at_an_address_delays_a_valid_password_by_one_more_attempt_at_most(
    logins: LoginEnvironment,
) -> None:
    address, guesses = "198.51.100.1", list[asyncio.Task[Reply]]()

    async def flood() -> None:
        for number in range(10_000):
            guess = try_password(logins.browser(address), f"user{number}@example.com", WRONG)
            guesses.append(asyncio.create_task(guess))
            await logins.world.clock.sleep(0.05)

    flooding = asyncio.create_task(flood())
    await logins.world.clock.sleep(10)
    browser, replies = logins.browser(address), list[Reply]()
    while not replies or replies[-1].status == 429:
        if replies:
            await logins.world.clock.sleep(int(replies[-1].headers["retry-after"]))
        replies.append(await try_password(browser, JO))
    assert [reply.status for reply in replies] in ([429, 302], [429, 200])
    flooding.cancel()
    for each in guesses:
        each.cancel()
    done = await asyncio.gather(*guesses, return_exceptions=True)
    statuses = Counter(each.status for each in done if isinstance(each, Reply))
    assert statuses[429] > 10 * statuses[401] > 0, "nearly all guesses were rejected, and she was not"


@pytest.mark.parametrize("account", [JO, NOBODY])
async def test_m27_each_failure_doubles_the_delay_of_an_account_whether_it_exists_or_not(
    logins: LoginEnvironment, account: str
) -> None:
    assert [reply.status for reply in await guess(logins, account, times=BEFORE_DELAY)] == [401] * BEFORE_DELAY
    delays = []
    for _ in range(13):
        (reply,) = await guess(logins, account)
        assert (reply.status, reply.media) == (429, "text/html")
        assert "log in with a browser in which you logged in before" in reply.body.decode()
        delays.append(int(reply.headers["retry-after"]))
        await logins.world.clock.sleep(delays[-1] - 0.5)
        assert await is_delayed(logins, account)
        await logins.world.clock.sleep(0.5)
        assert [each.status for each in await guess(logins, account)] == [401]
    assert delays == [2**number for number in range(10)] + [MAX_DELAY.total_seconds()] * 3


async def test_attempts_at_the_same_time_are_delayed_as_if_one_came_after_the_other(logins: LoginEnvironment) -> None:
    browsers = [logins.browser(f"198.51.100.{number}") for number in range(20)]
    replies = await asyncio.gather(*(try_password(each, JO, WRONG) for each in browsers))
    assert sorted(reply.status for reply in replies) == [401] * BEFORE_DELAY + [429] * (20 - BEFORE_DELAY)


async def test_a_delayed_attempt_checks_no_password_and_does_not_count(logins: LoginEnvironment) -> None:
    await guess(logins, JO, times=BEFORE_DELAY + 2)
    hashed = logins.services.argon2.times
    (reply,) = await guess(logins, JO)
    assert (reply.status, logins.services.argon2.times) == (429, hashed)
    assert not await logs_in(logins.browser()), "the right password is not told from a wrong one"
    await logins.world.clock.sleep(1)
    assert await logs_in(logins.browser())


@options(logins_per_minute=3)
async def test_m27_guessing_elsewhere_never_delays_a_browser_in_which_the_owner_logged_in_before(
    logins: LoginEnvironment,
) -> None:
    browser = await logins.logged_in()
    await browser.submit(await browser.get("/oauth2/v2/logout"))
    await guess(logins, JO, times=BEFORE_DELAY)
    assert await is_delayed(logins, JO)
    for address in ("192.0.2.1", "198.51.100.1"):
        browser.client = logins.browser(address).client
        assert await logs_in(browser)
    wrong = [(await try_password(browser, JO, WRONG)).status for _ in range(3)]
    assert wrong == [401, 429, 429], "its own allowance is as large as an address's"
    changed = await browser.post("/oauth2/v2/password", {"email": JO, "password": WRONG})
    assert changed.status == 429


async def test_failures_of_a_known_browser_delay_nobody(logins: LoginEnvironment) -> None:
    browser = await logins.logged_in()
    statuses = {(await try_password(browser, JO, WRONG)).status for _ in range(BEFORE_DELAY * 2)}
    assert statuses == {401}
    assert await logs_in(logins.browser())


async def test_a_login_and_a_new_password_end_the_delay(logins: LoginEnvironment) -> None:
    known = await logins.logged_in()
    await guess(logins, JO, times=BEFORE_DELAY + 1)
    assert await logs_in(known)
    assert not await is_delayed(logins, JO)
    await guess(logins, JO, times=BEFORE_DELAY + 1)
    assert await is_delayed(logins, JO)
    link = (await logins.services.passwords.create_link(user_id(JO))).secret.reveal()
    browser, new = logins.browser(), "seven brave otters juggle"
    page = await browser.get("/oauth2/v2/password", {"link": link})
    assert (await browser.submit(page, new_password=new, repeated_password=new)).status == 200
    assert not await is_delayed(logins, JO)
    await guess(logins, JO, times=BEFORE_DELAY + 1)
    assert await is_delayed(logins, JO)
    assert await logs_in(browser, password=new), "the browser in which the password was set is known"


async def test_failures_count_for_a_day(logins: LoginEnvironment) -> None:
    await guess(logins, JO, times=BEFORE_DELAY - 1)
    await logins.world.clock.sleep(DAY_S + 1)
    await guess(logins, JO, times=BEFORE_DELAY - 1)
    assert not await is_delayed(logins, JO)
    assert await is_delayed(logins, JO)


@pytest.mark.parametrize("account", [JO, NOBODY])
async def test_the_delay_outlives_a_restart_whether_the_account_exists_or_not(
    logins: LoginEnvironment, account: str
) -> None:
    await guess(logins, account, times=BEFORE_DELAY)
    restarted = IdentityApi(logins.world, logins.store, new_services(logins.world, logins.store), LOGIN_ROUTES)
    assert await is_delayed(LoginEnvironment(restarted), account)


async def test_guessing_writes_and_shows_the_same_for_accounts_that_exist_and_that_do_not(
    logins: LoginEnvironment,
) -> None:
    told = {}
    for account in (JO, NOBODY):
        replies = await guess(logins, account, times=BEFORE_DELAY + 1)
        entries = (await logins.store.read(LOGINS, user_id(account))).entries
        told[account] = [(each.status, visible(each).replace(account, "")) for each in replies], len(entries)
    assert told[JO] == told[NOBODY]
    assert told[JO][1] == BEFORE_DELAY


async def test_a_browser_is_known_to_those_alone_who_have_logged_in_there(logins: LoginEnvironment) -> None:
    await logins.user(OTHER, password=PASSWORD)
    browser = await logins.logged_in()
    await guess(logins, OTHER, times=BEFORE_DELAY)
    assert (await try_password(browser, OTHER)).status == 429
    await logins.world.clock.sleep(1)
    assert await logs_in(browser, OTHER)
    for account in (JO, OTHER):
        await guess(logins, account, times=BEFORE_DELAY + 1)
        assert await is_delayed(logins, account)
        assert await logs_in(browser, account)


async def test_a_cookie_that_is_forged_of_something_else_or_too_old_makes_no_browser_known(
    logins: LoginEnvironment,
) -> None:
    browser = await logins.logged_in()
    good = browser.cookies[KNOWN_BROWSER]
    state = (await browser.authorize(prompt="login")).body.decode().partition('name="state" value="')[2]
    forged = [good[:-2], good[:-1] + ("A" if good[-1] != "A" else "B"), "x", "x" * 3000, state.partition('"')[0]]
    await guess(logins, JO, times=BEFORE_DELAY)
    for cookie in forged:
        stranger = logins.browser()
        stranger.cookies[KNOWN_BROWSER] = cookie
        assert (await try_password(stranger, JO)).status == 429, cookie
    logins.world.clock.jump(KNOWN_BROWSER_LIFETIME)
    await guess(logins, JO, times=BEFORE_DELAY)
    stranger = logins.browser()
    stranger.cookies[KNOWN_BROWSER] = good
    assert (await try_password(stranger, JO)).status == 429


async def test_a_known_browser_is_not_logged_in(logins: LoginEnvironment) -> None:
    browser, stranger = await logins.logged_in(), logins.browser()
    stranger.cookies[KNOWN_BROWSER] = browser.cookies[KNOWN_BROWSER]
    assert sent_to(await stranger.authorize(prompt="none"))["error"] == "interaction_required"
    assert "Log in" in (await stranger.get("/oauth2/v2/account")).body.decode()


async def test_m27_a_site_with_many_networks_takes_turns_as_one_client(logins: LoginEnvironment) -> None:
    hosts = [*(f"2001:db8:1:{number:x}::1" for number in range(10)), "2001:db8:2::1"]
    pages = [(browser, await browser.authorize(prompt="login")) for browser in map(logins.browser, hosts)]
    hashing = logins.services.argon2
    before, hashing.may_run = hashing.times, asyncio.Event()
    tasks = []
    for number, (browser, page) in enumerate(pages):
        given = browser.submit(page, email=f"user{number}@example.com", password=WRONG)
        tasks.append(asyncio.create_task(given))
        await logins.world.clock.sleep(1)
        expected = 2 if browser is pages[-1][0] else 1
        assert hashing.times - before == expected, "the networks of a site have one of two slots"
    hashing.may_run.set()
    assert {reply.status for reply in await asyncio.gather(*tasks)} == {401}
