"""How often somebody may try a password, and whom others' guessing does not shut out."""

import pytest

from remuda.identity.login.browser_state import KNOWN_BROWSER_LIFETIME
from remuda.identity.login.login_pages import ACCOUNT_FACTOR
from tests.kit.asgi.contract import Reply
from tests.kit.environment import options
from tests.kit.identity.login import JO, KNOWN_BROWSER, PASSWORD, Browser, LoginEnvironment, sent_to

OTHER = "other@example.com"


async def guess(logins: LoginEnvironment, account: str, *, addresses: int, times: int) -> list[Reply]:
    """Guess from so many addresses, so many times from each."""
    replies = []
    for number in range(addresses):
        browser = logins.browser(f"198.51.100.{number}")
        page = await browser.authorize()
        replies += [await browser.submit(page, email=account, password="wrong password") for _ in range(times)]
    return replies


async def try_password(browser: Browser, account: str, password: str = PASSWORD) -> Reply:
    return await browser.submit(await browser.authorize(prompt="login"), email=account, password=password)


@options(logins_per_minute=3)
async def test_m27_one_address_that_keeps_guessing_is_slowed_down_and_shuts_nobody_out(
    logins: LoginEnvironment,
) -> None:
    began = logins.world.clock.monotonic()
    statuses = [reply.status for reply in await guess(logins, JO, addresses=1, times=30)]
    assert statuses[:4] == [401] * 3 + [429]
    assert set(statuses[3:]) <= {401, 429}
    assert logins.world.clock.monotonic() - began >= 20, "beyond the limit each attempt takes a second"
    assert "code" in sent_to(await try_password(logins.browser(), JO))
    await guess(logins, "nobody@example.com", addresses=1, times=4)
    same_address = logins.browser("198.51.100.0")
    assert "code" in sent_to(await try_password(same_address, JO)), "a valid password passes"


@pytest.mark.parametrize("account", [JO, "nobody@example.com"])
@options(logins_per_minute=3)
async def test_many_addresses_together_are_stopped_too_whether_there_is_such_an_account_or_not(
    logins: LoginEnvironment, account: str
) -> None:
    replies = await guess(logins, account, addresses=ACCOUNT_FACTOR + 1, times=3)
    assert [reply.status for reply in replies] == [401] * ACCOUNT_FACTOR * 3 + [429] * 3
    assert replies[-1].media == "text/html"
    assert int(replies[-1].headers["retry-after"]) > 0
    assert (await try_password(logins.browser(), account)).status == 429, "nobody can tell a stranger from the owner"
    await logins.world.clock.sleep(61)
    assert "code" in sent_to(await try_password(logins.browser(), JO))


@options(logins_per_minute=3)
async def test_a_browser_in_which_the_owner_has_logged_in_before_is_not_shut_out(logins: LoginEnvironment) -> None:
    browser = await logins.logged_in()
    await browser.submit(await browser.get("/oauth2/v2/logout"))
    await guess(logins, JO, addresses=ACCOUNT_FACTOR + 1, times=3)
    for address in ("192.0.2.1", "198.51.100.1"):
        browser.client = logins.browser(address).client
        assert "code" in sent_to(await try_password(browser, JO))
    wrong = [(await try_password(browser, JO, "wrong password")).status for _ in range(3)]
    assert wrong == [401, 429, 429], "its own allowance is as large as an address's"
    changed = await browser.post("/oauth2/v2/password", {"email": JO, "password": "wrong password"})
    assert changed.status == 429


@options(logins_per_minute=3)
async def test_a_browser_is_known_to_those_alone_who_have_logged_in_there(logins: LoginEnvironment) -> None:
    await logins.user(OTHER, password=PASSWORD)
    browser = await logins.logged_in()
    await guess(logins, OTHER, addresses=ACCOUNT_FACTOR + 1, times=3)
    assert (await try_password(browser, OTHER)).status == 429
    await logins.world.clock.sleep(61)
    assert "code" in sent_to(await try_password(browser, OTHER))
    for account in (JO, OTHER):
        await guess(logins, account, addresses=ACCOUNT_FACTOR + 1, times=3)
        assert "code" in sent_to(await try_password(browser, account))


@options(logins_per_minute=3)
async def test_a_cookie_that_is_forged_of_something_else_or_too_old_makes_no_browser_known(
    logins: LoginEnvironment,
) -> None:
    browser = await logins.logged_in()
    good = browser.cookies[KNOWN_BROWSER]
    state = (await browser.authorize(prompt="login")).body.decode().partition('name="state" value="')[2]
    forged = [good[:-2], good[:-1] + ("A" if good[-1] != "A" else "B"), "x", "x" * 3000, state.partition('"')[0]]
    await guess(logins, JO, addresses=ACCOUNT_FACTOR + 1, times=3)
    for cookie in forged:
        stranger = logins.browser()
        stranger.cookies[KNOWN_BROWSER] = cookie
        assert (await try_password(stranger, JO)).status == 429, cookie
    logins.world.clock.jump(KNOWN_BROWSER_LIFETIME)
    await guess(logins, JO, addresses=ACCOUNT_FACTOR + 1, times=3)
    stranger = logins.browser()
    stranger.cookies[KNOWN_BROWSER] = good
    assert (await try_password(stranger, JO)).status == 429


async def test_a_known_browser_is_not_logged_in(logins: LoginEnvironment) -> None:
    browser, stranger = await logins.logged_in(), logins.browser()
    stranger.cookies[KNOWN_BROWSER] = browser.cookies[KNOWN_BROWSER]
    assert sent_to(await stranger.authorize(prompt="none"))["error"] == "interaction_required"
    assert "Log in" in (await stranger.get("/oauth2/v2/account")).body.decode()
