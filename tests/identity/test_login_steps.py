"""Pages between the password and where a login was going: a temporary password, and failed logins."""

from datetime import timedelta

import msgspec
import pytest

from remuda.http.audit import AuditRecord
from remuda.identity.kinds.oauth import BrowserLogin, Password
from remuda.identity.kinds.tokens import Session
from remuda.identity.kinds.users import User, user_id
from remuda.kernel.secrets import Secret
from tests.kit.asgi.contract import Reply
from tests.kit.identity.account_page import PATH as ACCOUNT
from tests.kit.identity.account_page import text
from tests.kit.identity.login import ISSUER, JO, PASSWORD, Browser, Forms, LoginEnvironment, sent_to

ADA = "ada@example.com"
FIRST, CHOSEN = "k3j4h-5kj3h-4k5jh-34kjh", "seven brave otters juggle"
REPLACE, GO_ON = "/oauth2/v2/login/password", "/oauth2/v2/login/continue"
WRONG = "wrong password"


async def temporary(logins: LoginEnvironment, subject: str = ADA) -> str:
    name = await logins.user(subject)
    await logins.services.passwords.set_password(name, Secret(FIRST), is_temporary=True)
    return name


async def asked_for_another(logins: LoginEnvironment, browser: Browser, password: str = FIRST) -> Reply:
    """Log in with a temporary password, and return the page that asks for another one."""
    page = await browser.submit(await browser.authorize(prompt="login"), email=ADA, password=password)
    assert "Choose a new password" in text(page)
    assert not (await logins.store.list(BrowserLogin)).items
    return page


async def test_m27_a_temporary_password_only_lets_its_user_choose_another_one_and_the_login_goes_on(
    logins: LoginEnvironment,
) -> None:
    name, browser = await temporary(logins), logins.browser()
    page = await asked_for_another(logins, browser)
    assert "E-mail address" in text(await browser.get(ACCOUNT)), "nobody is logged in yet"
    done = await browser.submit(page, new_password=CHOSEN, repeated_password=CHOSEN)
    assert (await logins.exchange(sent_to(done)["code"])).status == 200, "prompt=login asks for no second login"
    assert ADA in text(await browser.get(ACCOUNT))
    assert await logins.services.passwords.verify(name, Secret(CHOSEN))
    assert await logins.services.passwords.temporary_since(name) is None
    again = await logins.browser().get("/oauth2/v2/password")
    assert again.status == 200
    assert "code" in sent_to(await browser.submit(await browser.authorize(prompt="login"), email=ADA, password=CHOSEN))


async def test_a_device_and_the_account_page_are_reached_through_a_temporary_password(logins: LoginEnvironment) -> None:
    await temporary(logins)
    browser = logins.browser()
    page = await browser.submit(await browser.get(ACCOUNT), email=ADA, password=FIRST)
    done = await browser.submit(page, new_password=CHOSEN, repeated_password=CHOSEN)
    assert done.headers["location"] == f"{ISSUER}{ACCOUNT}"
    await logins.services.passwords.set_password(user_id(ADA), Secret(FIRST), is_temporary=True)
    form = {"client_id": "b1111111-0000-4000-8000-000000000002"}
    begun = (await logins.api.ask(None).post("/oauth2/v2/device_authorization", form=form)).json
    browser = logins.browser()
    page = await browser.post("/oauth2/v2/device", {"user_code": begun["user_code"]})
    page = await browser.submit(page, email=ADA, password=FIRST)
    done = await browser.submit(page, new_password=CHOSEN, repeated_password=CHOSEN)
    assert "Allow this device?" in text(await browser.follow(done))


@pytest.mark.parametrize(
    ("chosen", "again"), [(FIRST, FIRST), ("short", "short"), (CHOSEN, f"{CHOSEN}!"), ("", ""), ("Ada-Password1", "")]
)
async def test_a_new_password_that_will_not_do_is_asked_for_again(
    logins: LoginEnvironment, chosen: str, again: str
) -> None:
    await temporary(logins)
    browser = logins.browser()
    page = await asked_for_another(logins, browser)
    reply = await browser.submit(page, new_password=chosen, repeated_password=again)
    assert reply.status == 400
    assert 'role="alert"' in reply.body.decode()
    assert not (await logins.store.list(BrowserLogin)).items
    done = await browser.submit(reply, new_password=CHOSEN, repeated_password=CHOSEN)
    assert "code" in sent_to(done)


async def test_the_page_is_valid_once_in_its_browser_and_while_that_password_is_the_present_one(
    logins: LoginEnvironment,
) -> None:
    name = await temporary(logins)
    browser, stranger = logins.browser(), logins.browser()
    page = await asked_for_another(logins, browser)
    new = {"new_password": CHOSEN, "repeated_password": CHOSEN}
    await stranger.authorize()
    stolen = await stranger.post(REPLACE, {**Forms.of(page)[0].fields, **new})
    assert stolen.status == 400
    await logins.services.passwords.set_password(name, Secret(f"{FIRST}-again"), is_temporary=True)
    assert (await browser.submit(page, None, 0, **new)).status == 400, "another temporary password was set"
    page = await asked_for_another(logins, browser, f"{FIRST}-again")
    kept = dict(browser.cookies)
    assert (await browser.submit(page, None, 0, **new)).status == 302
    browser.cookies = kept
    second = {"new_password": f"{CHOSEN} too", "repeated_password": f"{CHOSEN} too"}
    assert (await browser.submit(page, None, 0, **second)).status == 400
    assert await logins.services.passwords.verify(name, Secret(CHOSEN))


async def test_a_suspended_user_does_not_get_in_by_the_page(logins: LoginEnvironment) -> None:
    name, browser = await temporary(logins), logins.browser()
    page = await asked_for_another(logins, browser)
    user = await logins.store.get(User, name)
    await logins.store.update(msgspec.structs.replace(user, spec=msgspec.structs.replace(user.spec, state="suspended")))
    reply = await browser.submit(page, new_password=CHOSEN, repeated_password=CHOSEN)
    assert reply.status == 400
    assert not await logins.services.passwords.verify(name, Secret(CHOSEN))


async def test_a_link_and_the_password_page_replace_a_temporary_password_too(logins: LoginEnvironment) -> None:
    name, browser = await temporary(logins), logins.browser()
    present = {"email": ADA, "password": FIRST, "new_password": FIRST, "repeated_password": FIRST}
    same = await browser.post("/oauth2/v2/password", present)
    assert (same.status, "is the temporary one" in same.body.decode()) == (400, True)
    new = {"new_password": CHOSEN, "repeated_password": CHOSEN}
    assert (await browser.post("/oauth2/v2/password", {**present, **new})).status == 200
    assert (await logins.store.get(Password, name)).spec.is_temporary is False
    assert "code" in sent_to(await browser.submit(await browser.authorize(), email=ADA, password=CHOSEN))


async def test_the_choice_of_a_password_is_audited_and_a_temporary_one_begins_no_session(
    logins: LoginEnvironment,
) -> None:
    await temporary(logins)
    browser = logins.browser()
    page = await asked_for_another(logins, browser)
    assert not (await logins.store.list(Session)).items
    await browser.submit(page, new_password=CHOSEN, repeated_password=CHOSEN)
    entries = (await logins.store.read("audit", "system")).entries
    records = [msgspec.json.decode(entry.data, type=AuditRecord) for entry in entries]
    assert (ADA, REPLACE, 302) in [(each.actor.subject, each.operation.route, each.result.status) for each in records]


async def fail(logins: LoginEnvironment, *addresses: str) -> None:
    for address in addresses:
        browser = logins.browser(address)
        assert (await browser.submit(await browser.authorize(), email=JO, password=WRONG)).status == 401


async def test_m27_failed_logins_from_elsewhere_are_reported_after_the_next_login_which_then_goes_on(
    logins: LoginEnvironment,
) -> None:
    browser = await logins.logged_in()
    await logins.world.clock.sleep(timedelta(hours=1).total_seconds())
    await fail(logins, "198.51.100.1", "198.51.100.2", "198.51.100.2")
    await logins.world.clock.sleep(timedelta(hours=1).total_seconds())
    page = await browser.submit(await browser.authorize(prompt="login", max_age="0"), email=JO, password=PASSWORD)
    told = (
        "Since your login on 1 Jan 2030, 00:00 UTC, 3 logins with a wrong password failed, the last one on 1 Jan 2030,"
    )
    assert told in text(page)
    assert "01:00 UTC, from 2 network addresses." in text(page)
    done = await browser.submit(page)
    assert (await logins.exchange(sent_to(done)["code"])).status == 200
    account = text(await browser.get(ACCOUNT))
    assert "Failed logins Since your login on 1 Jan 2030, 00:00 UTC, 3 logins" in account
    page = await browser.submit(await browser.authorize(prompt="login"), email=JO, password=PASSWORD)
    assert page.status == 302, "they are reported once"
    assert "Failed logins None since your login on 1 Jan 2030" in text(await browser.get(ACCOUNT))


async def test_ones_own_slips_interrupt_no_login_and_are_on_the_account_page(logins: LoginEnvironment) -> None:
    browser = logins.browser()
    page = await browser.get(ACCOUNT)
    for _ in range(2):
        assert (await browser.submit(page, email=JO, password=WRONG)).status == 401
    done = await browser.submit(page, email=JO, password=PASSWORD)
    assert done.status == 302
    shown = text(await browser.follow(done))
    assert "Failed logins In the last 30 days, 2 logins with a wrong password failed" in shown
    assert "from 1 network address." in shown


async def test_failures_after_the_login_are_on_the_account_page(logins: LoginEnvironment) -> None:
    browser = await logins.logged_in()
    await fail(logins, "198.51.100.1")
    shown = text(await browser.get(ACCOUNT))
    assert (
        "In the last 30 days, 1 login with a wrong password failed, on 1 Jan 2030, 00:00 UTC, from 1 network" in shown
    )


async def test_the_report_goes_on_in_its_browser_alone_and_while_the_login_lasts(logins: LoginEnvironment) -> None:
    browser, stranger = logins.browser(), logins.browser()
    await fail(logins, "198.51.100.1")
    page = await browser.submit(await browser.authorize(), email=JO, password=PASSWORD)
    await stranger.authorize()
    assert (await stranger.post(GO_ON, Forms.of(page)[0].fields)).status == 400
    await logins.services.tokens.sessions.end_all(user_id(JO))
    await logins.services.passwords.set_password(user_id(JO), Secret(CHOSEN))
    again = await browser.submit(page)
    assert "E-mail address" in text(again), "the login has ended meanwhile"
