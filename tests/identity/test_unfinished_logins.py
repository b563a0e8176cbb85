"""Logins in progress: each is completed once, and not after what ends logins."""

from collections.abc import Awaitable, Callable

import pytest

from remuda.access.principal import AccessList, Context, Principal
from remuda.identity.kinds.oauth import BrowserLogin, UsedState
from remuda.identity.kinds.tokens import Session
from remuda.identity.kinds.users import user_id
from remuda.identity.login.account_pages import UPDATE_USERS
from remuda.identity.suspensions.schema import SuspensionWrite
from remuda.identity.suspensions.service import Suspensions
from remuda.kernel.secrets import Secret
from tests.kit.asgi.contract import Reply
from tests.kit.environment import provided_by
from tests.kit.identity.account_page import form_with, text
from tests.kit.identity.federation import KEY, come_back, depart, federated
from tests.kit.identity.login import JO, PASSWORD, Browser, LoginEnvironment, sent_to
from tests.kit.identity.openid_provider import Provider
from tests.kit.identity.second_factor import PATH, answer, challenged, codes_of, enrolled, key_of, options_of, spec_of
from tests.kit.identity.software_authenticator import SecurityKey, app_code

federation = provided_by(federated)
upstream = provided_by(federated, position=1)

ACME = "c0000000-0000-4000-8000-000000000003"
CHOSEN = "seven brave otters juggle"
EXPIRED = "This login has expired"
USED = "This page has expired: it is older than ten minutes, was already used"


def administrator() -> Context:
    access = AccessList(everywhere=frozenset({UPDATE_USERS}))
    return Context(principal=Principal(subject="root@example.com", type="user", access=access), operation="x")


async def suspend_and_resume(logins: LoginEnvironment) -> None:
    found = logins.services
    suspensions = Suspensions(store=logins.store, clock=logins.world.clock, logins=found.login.logins)
    await logins.world.clock.sleep(1)
    made = await suspensions.create(administrator(), SuspensionWrite(subject=JO))
    await suspensions.delete(administrator(), made.id)
    await logins.world.clock.sleep(1)


async def browser_logins(logins: LoginEnvironment) -> int:
    return len((await logins.store.list(BrowserLogin)).items)


def earlier(browser: Browser) -> Browser:
    """Return a browser with the present cookies of another."""
    return Browser(browser.client, dict(browser.cookies))


def assert_refused(reply: Reply, problem: str) -> None:
    assert (reply.status, problem in reply.body.decode()) == (400, True)


def declining(page: Reply) -> tuple[int, tuple[str, str]]:
    """Return the place and the button of the form by which a user goes on without a second factor."""
    place, form = form_with(page, "decline")
    return place, ("decline", dict(form.buttons)["decline"])


async def requiring(logins: LoginEnvironment) -> None:
    """Let an organization of Jo require a second factor."""
    await logins.organization(ACME, second_factor="always")
    await logins.member(ACME, user_id(JO))


async def at_requirement(logins: LoginEnvironment) -> tuple[Browser, Reply]:
    """Return a browser in which Jo gave the password, and the page that leads to a first authenticator."""
    await requiring(logins)
    browser, page = await challenged(logins)
    assert "requires a second factor" in text(page)
    return browser, page


async def at_recovery_codes(logins: LoginEnvironment) -> tuple[Browser, Reply]:
    """Return a browser in which Jo added a first authenticator in a login, which waits for the codes to be read."""
    browser, page = await at_requirement(logins)
    form = await browser.submit(page, button=("kind", "app"), form=form_with(page, "kind")[0])
    shown = await browser.submit(form, code=app_code(key_of(form), logins.world.clock.now()))
    assert codes_of(shown)
    return browser, shown


async def test_m27_a_verified_login_is_completed_once(logins: LoginEnvironment) -> None:
    browser, page = await at_recovery_codes(logins)
    before = earlier(browser)
    assert "code" in sent_to(await browser.submit(page))
    again = await before.submit(page)
    assert_refused(again, USED)
    assert not again.cookies
    assert await browser_logins(logins) == 1


async def test_m27_a_login_whose_second_factor_was_declined_is_completed_once(logins: LoginEnvironment) -> None:
    browser, page = await at_requirement(logins)
    before, (place, button) = earlier(browser), declining(page)
    assert "code" in sent_to(await browser.submit(page, button, place))
    again = await before.submit(page, button, place)
    assert_refused(again, USED)


async def test_m27_a_login_is_completed_once_however_many_pages_ask_for_its_second_factor(
    logins: LoginEnvironment,
) -> None:
    jo = await enrolled(logins)
    browser, page = await challenged(logins)
    other_page = await answer(browser, page, code="000000")
    before = earlier(browser)
    assert "code" in sent_to(await answer(browser, page, recovery_code=jo.codes[0]))
    again = await answer(before, other_page, recovery_code=jo.codes[1])
    assert_refused(again, USED)


async def test_m27_a_verified_login_ends_with_its_authenticator(logins: LoginEnvironment) -> None:
    waiting, page = await at_recovery_codes(logins)
    await logins.world.clock.sleep(90)
    (app,) = (await spec_of(logins)).apps
    browser, challenge = await challenged(logins)
    done = await answer(browser, challenge, recovery_code=codes_of(page)[0])
    assert "code" in sent_to(done)
    factors = await browser.get(PATH)
    await browser.submit(factors, button=("authenticator", app.id), form=form_with(factors, "authenticator")[0])
    assert not (await spec_of(logins)).has_authenticator
    refused = await waiting.submit(page)
    assert_refused(refused, EXPIRED)


async def at_challenge(logins: LoginEnvironment) -> tuple[Browser, Reply]:
    await enrolled(logins)
    return await challenged(logins)


async def at_temporary_password(logins: LoginEnvironment) -> tuple[Browser, Reply]:
    await logins.services.passwords.set_password(user_id(JO), Secret(PASSWORD), is_temporary=True)
    return await challenged(logins)


FIELDS = {
    "at_challenge": {"code": "000000"},
    "at_temporary_password": {"new_password": CHOSEN, "repeated_password": CHOSEN},
}
"""What is entered on the last page, by how it was reached."""

Begin = Callable[[LoginEnvironment], Awaitable[tuple[Browser, Reply]]]


@pytest.mark.parametrize("begin", [at_challenge, at_requirement, at_recovery_codes, at_temporary_password])
async def test_m27_no_unfinished_login_survives_a_suspension_that_has_ended(
    logins: LoginEnvironment, begin: Begin
) -> None:
    browser, page = await begin(logins)
    await suspend_and_resume(logins)
    fields = FIELDS.get(begin.__name__, {})
    place, button = declining(page) if begin is at_requirement else (0, None)
    refused = await (answer(browser, page, **fields) if fields else browser.submit(page, button, place))
    assert_refused(refused, EXPIRED)
    assert await browser_logins(logins) == 0
    assert not (await logins.store.list(UsedState)).items


async def test_m27_a_login_at_a_provider_that_began_before_a_suspension_is_not_completed_after_it(
    federation: LoginEnvironment, upstream: Provider
) -> None:
    browser, gone = await depart(federation)
    await suspend_and_resume(federation)
    refused = sent_to(await come_back(browser, upstream, gone))
    assert refused["error"] == "access_denied"
    assert "log in again" in refused["error_description"]
    browser, gone = await depart(federation)
    assert "code" in sent_to(await come_back(browser, upstream, gone))


async def test_m27_a_replayed_callback_causes_no_request_to_the_provider(
    federation: LoginEnvironment, upstream: Provider
) -> None:
    browser, gone = await depart(federation)
    back = upstream.authorize(gone.headers["location"])
    before = earlier(browser)
    assert "code" in sent_to(await browser.get("/oidc/callback", back))
    asked = len(upstream.asked)
    for code in (back["code"], "another"):
        again = await before.get("/oidc/callback", back | {"code": code})
        assert_refused(again, USED)
    assert len(upstream.asked) == asked


@pytest.mark.parametrize("query", [{"code": "unknown"}, {"error": "access_denied"}])
async def test_m27_a_callback_that_failed_is_used_too(
    federation: LoginEnvironment, upstream: Provider, query: dict[str, str]
) -> None:
    browser, gone = await depart(federation)
    back = upstream.authorize(gone.headers["location"])
    failed = await browser.get("/oidc/callback", {"state": back["state"], "iss": back["iss"], **query})
    assert "error" in sent_to(failed)
    asked = len(upstream.asked)
    assert (await browser.get("/oidc/callback", back)).status == 400
    assert len(upstream.asked) == asked


def test_m27_callbacks_that_fail_are_limited_by_address_and_others_pass() -> None:
    upstream = Provider(key=KEY)

    async def scenario(logins: LoginEnvironment, upstream: Provider) -> None:
        statuses = []
        for _ in range(6):
            browser, gone = await depart(logins)
            state = upstream.authorize(gone.headers["location"])
            statuses.append((await browser.get("/oidc/callback", state | {"code": "made up"})).status)
        assert statuses == [302, 302, 302, 429, 429, 429]
        browser, gone = await depart(logins)
        assert "code" in sent_to(await come_back(browser, upstream, gone))

    federated(scenario, provider=upstream, logins_per_minute=3)


async def test_m27_the_removal_of_an_authenticator_ends_every_other_login_and_session(
    logins: LoginEnvironment,
) -> None:
    jo = await enrolled(logins)
    await jo.browser.submit(await jo.browser.authorize(), button=("continue_as_current", "yes"))
    thief, page = await challenged(logins)
    done = await answer(thief, page, recovery_code=jo.codes[0])
    assert (await logins.exchange(sent_to(done)["code"])).status == 200
    assert len((await logins.store.list(Session)).items) == 1
    browser, page = await challenged(logins)
    done = await answer(browser, page, code=app_code(jo.key, logins.world.clock.now()))
    own = (await logins.exchange(sent_to(done)["code"])).json
    factors = await browser.get(PATH)
    place, form = form_with(factors, "authenticator")
    assert "Removing an authenticator logs you out everywhere else" in text(factors)
    await browser.submit(factors, button=form.buttons[0], form=place)
    assert not (await spec_of(logins)).has_authenticator
    assert "You have none yet." in text(await browser.get(PATH)), "this browser stays logged in"
    for other in (thief, jo.browser):
        assert "E-mail address" in text(await other.get(PATH))
    assert await browser_logins(logins) == 1
    assert [each.spec.login for each in (await logins.store.list(Session)).items] == [
        each.name for each in (await logins.store.list(BrowserLogin)).items
    ]
    authorization = f"Bearer {own['access_token']}"
    assert (await logins.api.ask(None).get("/oauth2/v2/userinfo", authorization=authorization)).status == 200


async def test_what_was_not_removed_ends_nothing_that_began_later(logins: LoginEnvironment) -> None:
    """A second authenticator is removed: the logins with the first go on from a new login."""
    jo = await enrolled(logins)
    key = SecurityKey()
    page = await jo.browser.get(PATH)
    form = await jo.browser.submit(page, button=("kind", "passkey"), form=form_with(page, "kind")[0])
    await jo.browser.submit(form, credential=key.create(options_of(form)))
    (passkey,) = (await spec_of(logins)).passkeys
    page = await jo.browser.get(PATH)
    await jo.browser.submit(page, button=("authenticator", passkey.id), form=form_with(page, "authenticator")[0])
    browser, page = await challenged(logins)
    assert "code" in sent_to(await answer(browser, page, code=app_code(jo.key, logins.world.clock.now())))
