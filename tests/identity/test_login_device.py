"""Connecting a device."""

from typing import Any

import msgspec

from remuda.http.audit import AuditRecord
from remuda.identity.kinds.oauth import DeviceGrant
from remuda.identity.kinds.tokens import Session
from remuda.identity.kinds.users import user_id
from remuda.kernel.secrets import Secret
from tests.example.contract import Reply
from tests.identity.login_ground import APP, JO, PASSWORD, Browser, Home, at_home

PATH = "/oauth2/v2/device"
GRANT = "urn:ietf:params:oauth:grant-type:device_code"


async def begin(home: Home) -> Any:
    form = {"client_id": APP, "scope": "openid"}
    return (await home.room.ask(None).post("/oauth2/v2/device_authorization", form=form)).json


async def poll(home: Home, device: dict[str, str]) -> Reply:
    form = {"grant_type": GRANT, "device_code": device["device_code"], "client_id": APP}
    return await home.room.ask(None).post("/oauth2/v2/token", form=form)


async def asked(home: Home, device: dict[str, str]) -> tuple[Browser, Reply]:
    """Return a browser in which somebody typed the code and logged in, and the page it then shows."""
    browser = home.browser()
    login = await browser.submit(await browser.get(PATH), user_code=device["user_code"].lower().replace("-", " "))
    sent = await browser.submit(login, email=JO, password=PASSWORD)
    return browser, await browser.follow(sent)


def test_a_device_gets_tokens_after_its_user_said_yes() -> None:
    async def scenario(home: Home) -> None:
        device = await begin(home)
        assert (await poll(home, device)).json["error"] == "authorization_pending"
        browser, page = await asked(home, device)
        assert "<dd>app</dd>" in page.body.decode()
        assert f"<dd>{JO}</dd>" in page.body.decode()
        done = await browser.submit(page, button=("answer", "approve"))
        assert "connected" in done.body.decode()
        tokens = await poll(home, device)
        assert tokens.status == 200
        told = await home.room.ask(None).get(
            "/oauth2/v2/userinfo", authorization=f"Bearer {tokens.json['access_token']}"
        )
        assert told.json["sub"] == JO
        again = await browser.submit(page, button=("answer", "approve"))
        assert again.status == 400

    at_home(scenario)


def test_a_device_is_turned_away_by_no_and_by_anything_but_a_clear_yes() -> None:
    async def scenario(home: Home) -> None:
        for button in (("answer", "deny"), ("answer", "perhaps"), None):
            device = await begin(home)
            browser, page = await asked(home, device)
            await browser.submit(page, button=button)
            assert (await poll(home, device)).json["error"] == "access_denied"

    at_home(scenario)


def test_a_no_is_told_to_the_organizations_of_who_said_it() -> None:
    async def scenario(home: Home) -> None:
        organization = "c0000000-0000-4000-8000-000000000003"
        await home.organization(organization)
        await home.member(organization, user_id(JO))
        browser, page = await asked(home, await begin(home))
        await browser.submit(page, button=("answer", "deny"))
        entries = (await home.store.read("audit", f"organization/{organization}")).entries
        record = msgspec.json.decode(entries[-1].data, type=AuditRecord)
        told = record.actor.subject, record.operation.verb, record.operation.route, record.result.status
        assert told == (JO, "POST", PATH, 403)

    at_home(scenario)


def test_nobody_can_have_another_browser_say_yes() -> None:
    async def scenario(home: Home) -> None:
        device = await begin(home)
        _, page = await asked(home, device)
        victim = await home.logged_in()
        assert (await victim.submit(page, button=("answer", "approve"))).status == 400
        assert (await home.browser().submit(page, button=("answer", "approve"))).status == 400
        await victim.post(PATH, {"user_code": device["user_code"], "answer": "approve"})
        assert (await poll(home, device)).json["error"] == "authorization_pending"

    at_home(scenario)


def test_codes_that_never_were_or_are_over_are_answered_alike_and_not_without_end() -> None:
    async def scenario(home: Home) -> None:
        device = await begin(home)
        await home.world.clock.sleep(601)
        browser = home.browser()
        over = await browser.post(PATH, {"user_code": device["user_code"]})
        never = await browser.post(PATH, {"user_code": "BBBB-BBBB"})
        assert over.status == never.status == 400
        texts = [
            reply.body.decode().replace(code, "") for reply, code in ((over, device["user_code"]), (never, "BBBB-BBBB"))
        ]
        assert texts[0] == texts[1]
        assert (await browser.post(PATH, {"user_code": "CCCC-CCCC"})).status == 400
        assert (await browser.post(PATH, {"user_code": "DDDD-DDDD"})).status == 429
        assert (await browser.get(PATH, {"user_code": "DDDD-DDDD"})).status == 200, "it only shows what was typed"

    at_home(scenario, logins_per_minute=3)


def test_a_link_with_the_code_asks_whoever_is_logged_in_at_once_but_changes_nothing() -> None:
    async def scenario(home: Home) -> None:
        device = await begin(home)
        browser = await home.logged_in()
        page = await browser.get(PATH, {"user_code": device["user_code"]})
        assert device["user_code"] in page.body.decode()
        (grant,) = (await home.store.list(DeviceGrant)).items
        assert not grant.spec.user
        unknown = await home.browser().get(PATH, {"user_code": device["user_code"]})
        assert 'name="user_code"' in unknown.body.decode()

    at_home(scenario)


def test_a_device_that_was_let_in_before_the_password_was_changed_begins_again() -> None:
    async def scenario(home: Home) -> None:
        device = await begin(home)
        browser, page = await asked(home, device)
        await browser.submit(page, button=("answer", "approve"))
        await home.world.clock.sleep(1)
        await home.house.passwords.set_password(user_id(JO), Secret("another good password"))
        assert (await poll(home, device)).json["error"] == "invalid_grant"
        assert not (await home.store.list(Session)).items

    at_home(scenario)


def test_logging_out_before_saying_yes_takes_the_question_back() -> None:
    async def scenario(home: Home) -> None:
        device = await begin(home)
        browser, page = await asked(home, device)
        cookies = dict(browser.cookies)
        await browser.submit(await browser.get("/oauth2/v2/logout"))
        browser.cookies = cookies
        reply = await browser.submit(page, button=("answer", "approve"))
        assert reply.status == 400
        assert (await poll(home, device)).json["error"] == "authorization_pending"

    at_home(scenario)
