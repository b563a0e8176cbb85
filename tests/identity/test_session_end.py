"""The end of logins and of everything that was derived from them: by logout everywhere, and at the idle limits."""

from datetime import timedelta
from typing import Any

from remuda.identity.kinds.oauth import BrowserLogin, DeviceGrant
from remuda.identity.kinds.tokens import Session
from remuda.identity.kinds.users import user_id
from remuda.identity.tokens.controller import LoginController, SessionController
from remuda.reconcile.results import ReconcileContext
from tests.kit.asgi.contract import Reply
from tests.kit.environment import options
from tests.kit.identity.account_page import PATH as ACCOUNT
from tests.kit.identity.account_page import form_with
from tests.kit.identity.login import APP, CONSOLE, CONSOLE_SECRET, JO, Browser, LoginEnvironment, sent_to

DEVICE = "/oauth2/v2/device"
GRANT = "urn:ietf:params:oauth:grant-type:device_code"
HOUR_S = 3600


async def begin_device(logins: LoginEnvironment) -> Any:
    form = {"client_id": APP, "scope": "openid"}
    return (await logins.api.ask(None).post("/oauth2/v2/device_authorization", form=form)).json


async def approve(browser: Browser, device: dict[str, str]) -> None:
    page = await browser.get(DEVICE, {"user_code": device["user_code"]})
    assert "connected" in (await browser.submit(page, button=("decision", "approve"))).body.decode()


async def poll(logins: LoginEnvironment, device: dict[str, str]) -> Reply:
    form = {"grant_type": GRANT, "device_code": device["device_code"], "client_id": APP}
    return await logins.api.ask(None).post("/oauth2/v2/token", form=form)


async def userinfo(logins: LoginEnvironment, tokens: Any) -> int:
    authorization = f"Bearer {tokens['access_token']}"
    return (await logins.api.ask(None).get("/oauth2/v2/userinfo", authorization=authorization)).status


async def refresh(logins: LoginEnvironment, tokens: Any, **proof: str) -> Reply:
    form = {"grant_type": "refresh_token", "refresh_token": tokens["refresh_token"], **(proof or {"client_id": APP})}
    return await logins.api.ask(None).post("/oauth2/v2/token", form=form)


async def log_out(browser: Browser) -> None:
    page = await browser.get("/oauth2/v2/logout")
    assert (await browser.submit(page)).status == 200


async def log_out_everywhere(browser: Browser) -> None:
    page = await browser.get(ACCOUNT)
    await browser.submit(page, button=("everywhere", "yes"), form=form_with(page, "everywhere")[0])


async def test_m27_a_device_session_ends_when_the_login_that_approved_it_logs_out(logins: LoginEnvironment) -> None:
    browser, device = await logins.logged_in(), await begin_device(logins)
    await approve(browser, device)
    tokens = (await poll(logins, device)).json
    assert await userinfo(logins, tokens) == 200
    await log_out(browser)
    assert await userinfo(logins, tokens) == 401
    assert (await refresh(logins, tokens)).json["error"] == "invalid_grant"
    assert not (await logins.store.list(Session)).items


async def test_a_device_that_was_approved_and_has_no_tokens_yet_gets_none_after_the_logout(
    logins: LoginEnvironment,
) -> None:
    browser, device = await logins.logged_in(), await begin_device(logins)
    await approve(browser, device)
    await log_out(browser)
    assert (await poll(logins, device)).json["error"] == "invalid_grant"
    assert not (await logins.store.list(DeviceGrant)).items
    assert not (await logins.store.list(Session)).items


async def test_logout_everywhere_ends_each_browser_each_session_and_each_pending_code(
    logins: LoginEnvironment,
) -> None:
    here, there, device = await logins.logged_in(), await logins.logged_in(), await begin_device(logins)
    await approve(there, device)
    tokens = (await poll(logins, device)).json
    page = await there.authorize()
    code = sent_to(page if page.status == 302 else await there.submit(page, button=("continue_as_current", "yes")))
    await log_out_everywhere(here)
    assert await userinfo(logins, tokens) == 401
    assert (await logins.exchange(code["code"])).json["error"] == "invalid_grant"
    for browser in (here, there):
        assert "E-mail address" in (await browser.get(ACCOUNT)).body.decode()
    assert not (await logins.store.list(BrowserLogin)).items
    assert not (await logins.store.list(Session)).items


async def test_logout_everywhere_leaves_other_users_alone(logins: LoginEnvironment) -> None:
    await logins.user("other@example.com")
    browser, device = await logins.logged_in(), await begin_device(logins)
    assert await logins.services.oauth.devices.approve(device["user_code"], user=user_id("other@example.com"))
    tokens = (await poll(logins, device)).json
    await log_out_everywhere(browser)
    assert await userinfo(logins, tokens) == 200


@options(session_idle_limit=timedelta(days=2))
async def test_a_session_that_is_refreshed_lives_on_and_an_idle_one_ends(logins: LoginEnvironment) -> None:
    device = await begin_device(logins)
    assert await logins.services.oauth.devices.approve(device["user_code"], user=user_id(JO))
    tokens = (await poll(logins, device)).json
    for _ in range(3):
        await logins.world.clock.sleep(47 * HOUR_S)
        refreshed = await refresh(logins, tokens)
        assert refreshed.status == 200
        tokens = refreshed.json
    await logins.world.clock.sleep(48 * HOUR_S)
    assert (await refresh(logins, tokens)).json["error"] == "invalid_grant"
    proof = {"client_id": CONSOLE, "client_secret": CONSOLE_SECRET}
    form = {"token": tokens["refresh_token"], **proof}
    assert (await logins.api.ask(None).post("/oauth2/v2/introspect", form=form)).json == {"active": False}


@options(session_idle_limit=timedelta(minutes=1))
async def test_an_access_token_outlives_a_shorter_idle_limit(logins: LoginEnvironment) -> None:
    device = await begin_device(logins)
    assert await logins.services.oauth.devices.approve(device["user_code"], user=user_id(JO))
    tokens = (await poll(logins, device)).json
    await logins.world.clock.sleep(tokens["expires_in"] - 1)
    assert await userinfo(logins, tokens) == 200
    assert (await refresh(logins, tokens)).status == 200


@options(session_idle_limit=timedelta(days=2))
async def test_an_idle_session_is_deleted_at_its_limit(logins: LoginEnvironment) -> None:
    device = await begin_device(logins)
    assert await logins.services.oauth.devices.approve(device["user_code"], user=user_id(JO))
    await poll(logins, device)
    (session,) = (await logins.store.list(Session)).items
    controller = SessionController(logins.services.tokens.sessions)
    await controller(session.name, context(logins, session.name))
    assert (await logins.store.list(Session)).items
    await logins.world.clock.sleep(48 * HOUR_S)
    await controller(session.name, context(logins, session.name))
    assert not (await logins.store.list(Session)).items


@options(browser_idle_limit=timedelta(minutes=60))
async def test_m27_a_browser_that_is_used_stays_logged_in_and_an_idle_one_does_not(logins: LoginEnvironment) -> None:
    browser = await logins.logged_in()
    for _ in range(4):
        await logins.world.clock.sleep(50 * 60)
        assert JO in (await browser.get(ACCOUNT)).body.decode()
    await logins.world.clock.sleep(60 * 60)
    assert "E-mail address" in (await browser.get(ACCOUNT)).body.decode()
    (login,) = (await logins.store.list(BrowserLogin)).items
    await LoginController(logins.services.tokens.sessions)(login.name, context(logins, login.name))
    assert not (await logins.store.list(BrowserLogin)).items


@options(browser_idle_limit=timedelta(minutes=60))
async def test_the_use_of_a_browser_is_stored_at_most_once_in_a_twelfth_of_its_limit(logins: LoginEnvironment) -> None:
    browser = await logins.logged_in()
    versions = set()
    for _ in range(60):
        await logins.world.clock.sleep(10)
        await browser.get(ACCOUNT)
        (login,) = (await logins.store.list(BrowserLogin)).items
        versions.add(login.version)
    assert len(versions) == 3, "the first, and two of ten minutes"


@options(browser_idle_limit=timedelta(minutes=60))
async def test_the_sessions_of_an_idle_browser_live_on(logins: LoginEnvironment) -> None:
    browser, device = await logins.logged_in(), await begin_device(logins)
    await approve(browser, device)
    tokens = (await poll(logins, device)).json
    await logins.world.clock.sleep(HOUR_S)
    (login,) = (await logins.store.list(BrowserLogin)).items
    await LoginController(logins.services.tokens.sessions)(login.name, context(logins, login.name))
    assert (await refresh(logins, tokens)).status == 200


def context(logins: LoginEnvironment, key: str) -> ReconcileContext:
    return ReconcileContext(
        controller="test", key=key, cause="event", registry=logins.store.registry, randomness=logins.world.randomness
    )
