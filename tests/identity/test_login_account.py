"""The page of one's own account."""

from typing import Any

import pytest

from remuda.identity.kinds.oauth import BrowserLogin, OAuth2Provider
from remuda.identity.kinds.tokens import Session
from remuda.identity.kinds.users import User, user_id
from remuda.identity.settings import RoleBinding
from tests.kit.asgi.contract import Reply
from tests.kit.environment import options
from tests.kit.identity.account_page import PATH, form_with, text
from tests.kit.identity.login import (
    CONSOLE,
    CONSOLE_SECRET,
    COOKIE,
    ISSUER,
    JO,
    PASSWORD,
    Browser,
    Forms,
    LoginEnvironment,
    sent_to,
)

ORGANIZATION = "c0000000-0000-4000-8000-000000000003"


async def at_account(logins: LoginEnvironment) -> tuple[Browser, Reply]:
    """Return a browser in which Jo logged in for nothing but the account, and the page."""
    browser = logins.browser()
    sent = await browser.submit(await browser.get(PATH), email=JO, password=PASSWORD)
    assert sent.headers["location"] == f"{ISSUER}{PATH}"
    return browser, await browser.follow(sent)


async def connected(logins: LoginEnvironment, browser: Browser) -> dict[str, Any]:
    """Let the console act for who is logged in, and return its tokens."""
    page = await browser.authorize()
    answer = page if page.status == 302 else await browser.submit(page, button=("continue_as_current", "yes"))
    tokens: dict[str, Any] = (await logins.exchange(sent_to(answer)["code"])).json
    return tokens


async def test_who_is_not_logged_in_is_asked_and_comes_back_here(logins: LoginEnvironment) -> None:
    browser = logins.browser()
    page = await browser.get(PATH)
    assert "E-mail address" in text(page)
    assert (await browser.submit(page, email=JO, password="wrong password")).status == 401
    _, page = await at_account(logins)
    assert f"User {JO}" in text(page)
    assert "This login With a password on 1 Jan 2030, 00:00 UTC" in text(page)


async def test_an_account_without_anything_says_so(logins: LoginEnvironment) -> None:
    _, page = await at_account(logins)
    assert "None yet. An organization's administrator can add you." in text(page)
    assert "No application or device has access to your account." in text(page)
    assert "Other browsers" not in text(page)
    assert "platform administrator" not in text(page)


async def test_it_says_at_which_provider_one_logged_in_and_when_that_is_gone_the_login_is_too(
    logins: LoginEnvironment,
) -> None:
    provider = "d1111111-0000-4000-8000-000000000001"
    await logins.provider(provider, issuer="https://idp.test", type="google", client_id="x")
    name = await logins.user("through@example.com")
    browser, cookie = logins.browser(), "a" * 43
    browser.cookies[COOKIE] = cookie
    user = await logins.store.get(User, name)
    await logins.services.login.logins.begin(user, cookie=cookie, provider=provider, previous=None)
    page = await browser.get(PATH)
    assert "This login Through Google on 1 Jan 2030" in text(page)
    assert "Change password" not in text(page), "there is none"
    stored = await logins.store.get(OAuth2Provider, provider)
    await logins.store.delete(OAuth2Provider, provider, uid=stored.uid)
    page = await browser.get(PATH)
    assert "Through Google" not in text(page)
    assert "E-mail address" in text(page)


async def test_it_shows_organizations_and_how_one_stands_there(logins: LoginEnvironment) -> None:
    other = ORGANIZATION.replace("c", "d")
    for organization, state in ((ORGANIZATION, "active"), (other, "suspended")):
        await logins.organization(organization)
        await logins.member(organization, user_id(JO), state)
    _, page = await at_account(logins)
    assert "Your organizations org org (your membership is suspended)" in text(page)


@pytest.mark.parametrize(
    "settings",
    [
        {"platform_administrators": (JO,)},
        {"role_bindings": (RoleBinding(subject=JO, roles=("platform-administrator",)),)},
    ],
    ids=["by name", "by role"],
)
@options(lambda settings: settings)
async def test_it_says_who_is_a_platform_administrator(logins: LoginEnvironment) -> None:
    _, page = await at_account(logins)
    assert "You are a platform administrator" in text(page)


async def test_a_session_is_shown_with_its_times_and_ended_by_its_button(logins: LoginEnvironment) -> None:
    browser, _ = await at_account(logins)
    first, second = await connected(logins, browser), await connected(logins, browser)
    await logins.world.clock.sleep(3600)
    form = {"grant_type": "refresh_token", "refresh_token": first["refresh_token"]}
    proof = {"client_id": CONSOLE, "client_secret": CONSOLE_SECRET}
    first = (await logins.api.ask(None).post("/oauth2/v2/token", form=form | proof)).json
    page = await browser.get(PATH)
    since = "console since 1 Jan 2030, 00:00 UTC"
    assert f"{since}, last used 1 Jan 2030, 01:00 UTC, from this browser End session" in text(page)
    assert f"{since}, from this browser End session" in text(page)
    place, shown = form_with(page, "session")
    for button in shown.buttons:
        sent = await browser.submit(page, button=button, form=place)
        page = await browser.follow(sent)
    assert "No application or device has access" in text(page)
    assert not (await logins.store.list(Session)).items
    for tokens in (first, second):
        authorization = f"Bearer {tokens['access_token']}"
        assert (await logins.api.ask(None).get("/oauth2/v2/userinfo", authorization=authorization)).status == 401


async def test_a_login_in_another_browser_is_shown_and_ended_with_what_came_of_it(logins: LoginEnvironment) -> None:
    library = await logins.logged_in()
    browser, page = await at_account(logins)
    assert "Other browsers where you are logged in" in text(page)
    place, shown = form_with(page, "login")
    page = await browser.follow(await browser.submit(page, button=shown.buttons[0], form=place))
    assert "Other browsers" not in text(page)
    assert "E-mail address" in text(await library.get(PATH))
    assert not (await logins.store.list(Session)).items
    assert len((await logins.store.list(BrowserLogin)).items) == 1


async def test_nobody_ends_what_is_somebody_elses_or_has_another_browser_end_anything(logins: LoginEnvironment) -> None:
    await logins.user("other@example.com", password=PASSWORD)
    victim, thief = await logins.logged_in(), await logins.logged_in("other@example.com")
    (of_victim,) = [each for each in (await logins.store.list(Session)).items if each.spec.user == user_id(JO)]
    (login,) = [each for each in (await logins.store.list(BrowserLogin)).items if each.spec.user == user_id(JO)]
    _, form = form_with(await thief.get(PATH), "session")
    state, wanted = form.fields["state"], {"session": of_victim.name, "login": login.name}
    assert (await thief.post(PATH, {"state": state, **wanted})).status == 302
    assert (await victim.post(PATH, {"state": state, **wanted})).status == 400
    assert (await logins.browser().post(PATH, {"state": state, **wanted})).status == 400
    assert (await victim.post(PATH, {"state": "", **wanted})).status == 400
    own = Forms.of(await victim.authorize(prompt="login"))[0].fields["state"]
    assert (await victim.post(PATH, {"state": own, **wanted})).status == 400
    assert len((await logins.store.list(Session)).items) == 2
    assert len((await logins.store.list(BrowserLogin)).items) == 2


async def test_what_is_gone_by_now_is_ended_already_and_nonsense_ends_nothing(logins: LoginEnvironment) -> None:
    browser = await logins.logged_in()
    page = await browser.get(PATH)
    place, shown = form_with(page, "session")
    for button in (("session", ""), ("session", "nonsense"), ("login", "nonsense"), ("other", "x")):
        assert (await browser.submit(page, button=button, form=place)).status == 302
    assert len((await logins.store.list(Session)).items) == 1
    for _ in range(2):
        assert (await browser.submit(page, button=shown.buttons[0], form=place)).status == 302
    assert not (await logins.store.list(Session)).items


async def test_one_logs_out_changes_the_password_and_connects_a_device_from_here(logins: LoginEnvironment) -> None:
    browser, page = await at_account(logins)
    for place in ("device", "password"):
        assert f'href="{ISSUER}/oauth2/v2/{place}"' in page.body.decode()
    assert f'value="{JO}"' in (await browser.get("/oauth2/v2/password")).body.decode()
    leaving = len(Forms.of(page)) - 1
    assert "You are logged out" in text(await browser.submit(page, form=leaving))
    assert "E-mail address" in text(await browser.get(PATH))
    assert not (await logins.store.list(BrowserLogin)).items


async def test_a_page_of_before_does_nothing_after_a_logout(logins: LoginEnvironment) -> None:
    browser = await logins.logged_in()
    page, cookies = await browser.get(PATH), dict(browser.cookies)
    place, shown = form_with(page, "session")
    elsewhere = await logins.logged_in()
    await browser.submit(await browser.get("/oauth2/v2/logout"))
    browser.cookies = cookies
    (left,) = (await logins.store.list(Session)).items
    reply = await browser.submit(page, button=("session", left.name), form=place)
    assert "E-mail address" in text(reply)
    assert shown.buttons != [("session", left.name)]
    assert (await logins.store.list(Session)).items == [left]
    assert f"User {JO}" in text(await elsewhere.get(PATH))
