"""Connecting a device."""

from typing import Any

import msgspec

from remuda.http.audit import AuditRecord
from remuda.identity.kinds.oauth import DeviceGrant
from remuda.identity.kinds.tokens import Session
from remuda.identity.kinds.users import user_id
from remuda.kernel.secrets import Secret
from tests.kit.asgi.contract import Reply
from tests.kit.environment import options
from tests.kit.identity.login import APP, JO, PASSWORD, Browser, LoginEnvironment

PATH = "/oauth2/v2/device"
GRANT = "urn:ietf:params:oauth:grant-type:device_code"


async def begin(logins: LoginEnvironment) -> Any:
    form = {"client_id": APP, "scope": "openid"}
    return (await logins.api.ask(None).post("/oauth2/v2/device_authorization", form=form)).json


async def poll(logins: LoginEnvironment, device: dict[str, str]) -> Reply:
    form = {"grant_type": GRANT, "device_code": device["device_code"], "client_id": APP}
    return await logins.api.ask(None).post("/oauth2/v2/token", form=form)


async def asked(logins: LoginEnvironment, device: dict[str, str]) -> tuple[Browser, Reply]:
    """Return a browser in which somebody typed the code and logged in, and the page it then shows."""
    browser = logins.browser()
    login = await browser.submit(await browser.get(PATH), user_code=device["user_code"].lower().replace("-", " "))
    sent = await browser.submit(login, email=JO, password=PASSWORD)
    return browser, await browser.follow(sent)


async def test_a_device_gets_tokens_after_its_user_said_yes(logins: LoginEnvironment) -> None:
    device = await begin(logins)
    assert (await poll(logins, device)).json["error"] == "authorization_pending"
    browser, page = await asked(logins, device)
    assert "<dd>app</dd>" in page.body.decode()
    assert f"<dd>{JO}</dd>" in page.body.decode()
    done = await browser.submit(page, button=("decision", "approve"))
    assert "connected" in done.body.decode()
    tokens = await poll(logins, device)
    assert tokens.status == 200
    told = await logins.api.ask(None).get("/oauth2/v2/userinfo", authorization=f"Bearer {tokens.json['access_token']}")
    assert told.json["sub"] == JO
    again = await browser.submit(page, button=("decision", "approve"))
    assert again.status == 400


async def test_a_device_is_turned_away_by_no_and_by_anything_but_a_clear_yes(logins: LoginEnvironment) -> None:
    for button in (("decision", "deny"), ("decision", "perhaps"), None):
        device = await begin(logins)
        browser, page = await asked(logins, device)
        await browser.submit(page, button=button)
        assert (await poll(logins, device)).json["error"] == "access_denied"


async def test_a_no_is_told_to_the_organizations_of_who_said_it(logins: LoginEnvironment) -> None:
    organization = "c0000000-0000-4000-8000-000000000003"
    await logins.organization(organization)
    await logins.member(organization, user_id(JO))
    browser, page = await asked(logins, await begin(logins))
    await browser.submit(page, button=("decision", "deny"))
    entries = (await logins.store.read("audit", f"organization/{organization}")).entries
    record = msgspec.json.decode(entries[-1].data, type=AuditRecord)
    told = record.actor.subject, record.operation.method, record.operation.route, record.result.status
    assert told == (JO, "POST", PATH, 403)


async def test_nobody_can_have_another_browser_say_yes(logins: LoginEnvironment) -> None:
    device = await begin(logins)
    _, page = await asked(logins, device)
    victim = await logins.logged_in()
    assert (await victim.submit(page, button=("decision", "approve"))).status == 400
    assert (await logins.browser().submit(page, button=("decision", "approve"))).status == 400
    await victim.post(PATH, {"user_code": device["user_code"], "decision": "approve"})
    assert (await poll(logins, device)).json["error"] == "authorization_pending"


@options(logins_per_minute=3)
async def test_codes_that_never_were_or_are_over_are_answered_alike_and_not_without_end(
    logins: LoginEnvironment,
) -> None:
    device = await begin(logins)
    await logins.world.clock.sleep(601)
    browser = logins.browser()
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


async def test_a_link_with_the_code_asks_whoever_is_logged_in_at_once_but_changes_nothing(
    logins: LoginEnvironment,
) -> None:
    device = await begin(logins)
    browser = await logins.logged_in()
    page = await browser.get(PATH, {"user_code": device["user_code"]})
    assert device["user_code"] in page.body.decode()
    (grant,) = (await logins.store.list(DeviceGrant)).items
    assert not grant.spec.user
    unknown = await logins.browser().get(PATH, {"user_code": device["user_code"]})
    assert 'name="user_code"' in unknown.body.decode()


async def test_a_device_that_was_let_in_before_the_password_was_changed_begins_again(logins: LoginEnvironment) -> None:
    device = await begin(logins)
    browser, page = await asked(logins, device)
    await browser.submit(page, button=("decision", "approve"))
    await logins.world.clock.sleep(1)
    await logins.services.passwords.set_password(user_id(JO), Secret("another good password"))
    assert (await poll(logins, device)).json["error"] == "invalid_grant"
    assert not (await logins.store.list(Session)).items


async def test_logging_out_before_saying_yes_takes_the_question_back(logins: LoginEnvironment) -> None:
    device = await begin(logins)
    browser, page = await asked(logins, device)
    cookies = dict(browser.cookies)
    await browser.submit(await browser.get("/oauth2/v2/logout"))
    browser.cookies = cookies
    reply = await browser.submit(page, button=("decision", "approve"))
    assert reply.status == 400
    assert (await poll(logins, device)).json["error"] == "authorization_pending"
