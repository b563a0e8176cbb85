"""Logging out."""

import msgspec
import pytest

from remuda.identity.kinds.oauth import BrowserLogin
from remuda.identity.kinds.tokens import Session
from tests.kit.identity.login import (
    APP,
    CONSOLE,
    CONSOLE_HOME,
    COOKIE,
    ISSUER,
    JO,
    PASSWORD,
    Browser,
    LoginEnvironment,
    sent_to,
)

PATH = "/oauth2/v2/logout"


async def logged_in(logins: LoginEnvironment) -> tuple[Browser, dict[str, str]]:
    browser = logins.browser()
    answer = await browser.submit(await browser.authorize(), email=JO, password=PASSWORD)
    return browser, (await logins.exchange(sent_to(answer)["code"])).json


async def is_good(logins: LoginEnvironment, tokens: dict[str, str]) -> bool:
    authorization = f"Bearer {tokens['access_token']}"
    return (await logins.api.ask(None).get("/oauth2/v2/userinfo", authorization=authorization)).status == 200


async def test_a_client_with_the_users_id_token_logs_them_out_everywhere_in_this_browser(
    logins: LoginEnvironment,
) -> None:
    browser, tokens = await logged_in(logins)
    elsewhere, other_tokens = await logged_in(logins)
    asked = {"id_token_hint": tokens["id_token"], "post_logout_redirect_uri": CONSOLE_HOME, "state": "bye"}
    reply = await browser.get(PATH, asked)
    assert reply.headers["location"] == f"{CONSOLE_HOME}?state=bye"
    assert COOKIE not in browser.cookies
    assert not await is_good(logins, tokens)
    assert await is_good(logins, other_tokens), "another browser is another login"
    assert "code" in sent_to(await elsewhere.authorize(prompt="none"))


async def test_without_a_hint_the_user_is_asked_and_only_their_own_page_can_say_yes(logins: LoginEnvironment) -> None:
    browser, tokens = await logged_in(logins)
    thief, _ = await logged_in(logins)
    page = await browser.get(PATH)
    assert page.status == 200
    assert JO in page.body.decode()
    assert (await browser.post(PATH, {})).status == 200
    assert (await thief.submit(page)).status == 400
    assert await is_good(logins, tokens)
    done = await browser.submit(page)
    assert "You are logged out" in done.body.decode()
    assert not await is_good(logins, tokens)
    assert len((await logins.store.list(BrowserLogin)).items) == 1
    assert len((await logins.store.list(Session)).items) == 1


async def test_an_id_token_of_somebody_else_does_not_log_anybody_out(logins: LoginEnvironment) -> None:
    await logins.user("other@example.com", password=PASSWORD)
    browser, tokens = await logged_in(logins)
    other = logins.browser()
    answer = await other.submit(await other.authorize(), email="other@example.com", password=PASSWORD)
    others = (await logins.exchange(sent_to(answer)["code"])).json
    for hint in (others["id_token"], tokens["id_token"][:-6], tokens["access_token"], "x"):
        page = await browser.get(PATH, {"id_token_hint": hint})
        assert "Log out?" in page.body.decode()
    assert await is_good(logins, tokens)


@pytest.mark.parametrize("address", ["https://evil.test/", f"{CONSOLE_HOME}more", "//evil.test", CONSOLE_HOME[:-1]])
@pytest.mark.parametrize("client", ["", CONSOLE, APP, "unknown"])
async def test_nobody_is_sent_to_an_address_that_is_not_the_clients_home(
    logins: LoginEnvironment, address: str, client: str
) -> None:
    browser, tokens = await logged_in(logins)
    asked = {"post_logout_redirect_uri": address, "client_id": client}
    for hint in ("", tokens["id_token"]):
        reply = await browser.get(PATH, {**asked, "id_token_hint": hint})
        assert reply.status == 400
    assert await is_good(logins, tokens), "bad input changes nothing"


async def test_an_id_token_does_not_speak_for_another_client(logins: LoginEnvironment) -> None:
    other, address = "c1111111-0000-4000-8000-000000000003", "https://other.test/"
    await logins.client(
        other, name="other", redirect_uri="https://other.test/cb", home_uri=address, is_challenge_optional=True
    )
    browser, tokens = await logged_in(logins)
    asked = {"client_id": other, "post_logout_redirect_uri": address}
    assert (await browser.get(PATH, {**asked, "id_token_hint": tokens["id_token"]})).status == 400
    assert await is_good(logins, tokens)
    assert "Log out?" in (await browser.get(PATH, asked)).body.decode()


async def test_a_code_that_was_not_exchanged_before_is_worth_nothing_after(logins: LoginEnvironment) -> None:
    browser, tokens = await logged_in(logins)
    code = sent_to(await browser.authorize())["code"]
    await browser.submit(await browser.get(PATH))
    assert (await logins.exchange(code)).json["error"] == "invalid_grant"
    assert not (await logins.store.list(Session)).items
    assert not await is_good(logins, tokens)


async def test_a_logout_that_broke_off_is_seen_through_by_the_next_one(logins: LoginEnvironment) -> None:
    browser, tokens = await logged_in(logins)
    (login,) = (await logins.store.list(BrowserLogin)).items
    spec = msgspec.structs.replace(login.spec, ended=logins.world.clock.now())
    await logins.store.update(msgspec.structs.replace(login, spec=spec))
    assert sent_to(await browser.authorize(prompt="none"))["error"] == "interaction_required"
    assert "You are logged out" in (await browser.get(PATH)).body.decode()
    assert not await is_good(logins, tokens)
    assert not (await logins.store.list(BrowserLogin)).items


async def test_who_is_not_logged_in_is_sent_on(logins: LoginEnvironment) -> None:
    reply = await logins.browser().get(PATH, {"client_id": CONSOLE, "post_logout_redirect_uri": CONSOLE_HOME})
    assert reply.headers["location"] == CONSOLE_HOME
    assert "You are logged out" in (await logins.browser().get(PATH)).body.decode()
    bounced = await logins.browser().post(PATH, {"client_id": CONSOLE, "post_logout_redirect_uri": CONSOLE_HOME})
    assert bounced.headers["location"].startswith(f"{ISSUER}{PATH}?")


async def test_logging_in_again_in_the_same_browser_keeps_earlier_sessions_in_reach_of_a_logout(
    logins: LoginEnvironment,
) -> None:
    browser, first = await logged_in(logins)
    answer = await browser.submit(await browser.authorize(prompt="login"), email=JO, password=PASSWORD)
    second = (await logins.exchange(sent_to(answer)["code"])).json
    await browser.submit(await browser.get(PATH))
    assert not await is_good(logins, first)
    assert not await is_good(logins, second)
