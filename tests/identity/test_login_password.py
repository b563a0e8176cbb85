"""Logging in with a password: to the end, and everything that must not work."""

import base64
import hashlib
import html
from urllib.parse import quote

import msgspec
import pytest

from remuda.http.audit import AuditRecord
from remuda.identity.kinds.oauth import BrowserLogin
from remuda.identity.kinds.users import user_id
from tests.kit.asgi.contract import Reply
from tests.kit.environment import options
from tests.kit.identity.login import (
    CONSOLE_URI,
    COOKIE,
    ISSUER,
    JO,
    KNOWN_BROWSER,
    PASSWORD,
    Forms,
    LoginEnvironment,
    request,
    sent_to,
)


def body(reply: Reply) -> str:
    return reply.body.decode()


async def test_a_password_leads_to_tokens_of_that_user(logins: LoginEnvironment) -> None:
    browser = logins.browser()
    page = await browser.authorize(nonce="n-1")
    assert page.status == 200
    answer = await browser.submit(page, email=JO, password=PASSWORD)
    assert answer.headers["location"].startswith(f"{CONSOLE_URI}&code=")
    sent = sent_to(answer)
    assert (sent["state"], sent["iss"], sent["here"]) == ("client-state", ISSUER, "1")
    tokens = await logins.exchange(sent["code"])
    assert tokens.status == 200, tokens.body
    asked = logins.api.ask(None)
    told = await asked.get("/oauth2/v2/userinfo", authorization=f"Bearer {tokens.json['access_token']}")
    assert (told.json["sub"], told.json["email"]) == (JO, JO)


async def test_the_address_of_an_account_is_written_in_any_case(logins: LoginEnvironment) -> None:
    browser = logins.browser()
    answer = await browser.submit(await browser.authorize(), email=" JO@Example.COM ", password=PASSWORD)
    assert "code" in sent_to(answer)


@pytest.mark.parametrize(
    ("email", "password"),
    [
        pytest.param(JO, "not the password at all", id="wrong password"),
        pytest.param("nobody@example.com", PASSWORD, id="unknown user"),
        pytest.param("gone@example.com", PASSWORD, id="suspended, with the right password"),
        pytest.param("waiting@example.com", PASSWORD, id="pending, with the right password"),
        pytest.param("without@example.com", PASSWORD, id="user without a password"),
        pytest.param("no address", PASSWORD, id="no address"),
        pytest.param(JO, PASSWORD + "\0", id="password with a NUL"),
        pytest.param(JO, "x" * 5000, id="password longer than any"),
    ],
)
async def test_whoever_is_not_let_in_learns_nothing_about_why(
    logins: LoginEnvironment, email: str, password: str
) -> None:
    await logins.user("gone@example.com", password=PASSWORD, state="suspended")
    await logins.user("waiting@example.com", password=PASSWORD, state="pending")
    await logins.user("without@example.com")
    browser = logins.browser()
    page = await browser.authorize()
    usual = await browser.submit(page, email="somebody@example.com", password="some password or other")
    before = logins.services.argon2.times
    reply = await browser.submit(page, email=email, password=password)
    assert logins.services.argon2.times == before + 1
    assert reply.status == usual.status == 401
    assert body(reply).replace(html.escape(email), "") == body(usual).replace("somebody@example.com", "")
    assert reply.headers.keys() == usual.headers.keys()
    assert not reply.cookies
    assert not (await logins.store.list(BrowserLogin)).items


@options(logins_per_minute=3)
async def test_an_address_takes_only_so_many_attempts_at_all_accounts_together(logins: LoginEnvironment) -> None:
    browser = logins.browser("2001:db8::1")
    page = await browser.authorize()
    statuses = [
        (await browser.submit(page, email=f"user{n}@example.com", password="wrong password")).status for n in range(4)
    ]
    assert statuses == [401, 401, 401, 429]
    neighbour = logins.browser("2001:db8::2")
    reply = await neighbour.submit(await neighbour.authorize(), email=JO, password="wrong password")
    assert reply.status == 429, "everybody has a whole network of addresses"
    reply = await neighbour.submit(await neighbour.authorize(), email=JO, password=PASSWORD)
    assert reply.status == 302, "a valid password passes"


async def test_a_state_is_worth_nothing_in_another_browser(logins: LoginEnvironment) -> None:
    thief, victim = logins.browser(), logins.browser()
    stolen = Forms.of(await thief.authorize())[0].fields["state"]
    await victim.authorize()
    form = {"state": stolen, "email": JO, "password": PASSWORD}
    for browser in (victim, logins.browser()):
        reply = await browser.post("/oauth2/v2/login", form)
        assert reply.status == 400
        assert not reply.cookies
    assert not (await logins.store.list(BrowserLogin)).items


async def test_a_state_cannot_be_used_after_the_login_that_it_was_for(logins: LoginEnvironment) -> None:
    browser = logins.browser()
    page = await browser.authorize()
    await browser.submit(page, email=JO, password=PASSWORD)
    assert (await browser.submit(page, email=JO, password=PASSWORD)).status == 400


async def test_a_state_is_good_for_ten_minutes(logins: LoginEnvironment) -> None:
    browser = logins.browser()
    page = await browser.authorize()
    await logins.world.clock.sleep(599)
    assert (await browser.submit(page, email=JO, password="wrong password")).status == 401
    await logins.world.clock.sleep(1)
    assert (await browser.submit(page, email=JO, password=PASSWORD)).status == 400


@pytest.mark.parametrize("state", ["", "x", "sealed:v1:test:AAAA", "sealed:v1:other:AAAA", "x" * 20_000, "\0"])
async def test_a_state_that_is_none_of_ours_is_refused(logins: LoginEnvironment, state: str) -> None:
    browser = logins.browser()
    await browser.authorize()
    reply = await browser.post("/oauth2/v2/login", {"state": state, "email": JO, "password": PASSWORD})
    assert (reply.status, reply.media) == (400, "text/html")


async def test_a_planted_cookie_is_not_the_one_that_the_user_is_logged_in_by(logins: LoginEnvironment) -> None:
    attacker, victim = logins.browser(), logins.browser()
    await attacker.authorize()
    victim.cookies = dict(attacker.cookies)
    await victim.submit(await victim.authorize(), email=JO, password=PASSWORD)
    assert victim.cookies[COOKIE] != attacker.cookies[COOKIE]
    assert sent_to(await attacker.authorize(prompt="none"))["error"] == "interaction_required"


async def test_the_cookies_are_for_this_host_alone_and_out_of_reach_for_scripts(logins: LoginEnvironment) -> None:
    browser = logins.browser()
    page = await browser.authorize()
    (before,) = page.cookies
    after, known_browser = (await browser.submit(page, email=JO, password=PASSWORD)).cookies
    for called, cookie in ((COOKIE, before), (COOKIE, after), (KNOWN_BROWSER, known_browser)):
        name, *attributes = cookie.split("; ")
        assert name.startswith(f"{called}=")
        assert {"Path=/", "HttpOnly", "SameSite=Lax", "Secure"} <= {*attributes}
        assert not any(attribute.startswith("Domain") for attribute in attributes)
    assert "Max-Age=43200" in after


@options(issuer="http://127.0.0.1:8080/identity")
async def test_without_tls_the_cookie_goes_by_another_name_and_still_works(logins: LoginEnvironment) -> None:
    browser = logins.browser()
    await browser.authorize()
    assert [*browser.cookies] == ["remuda-browser"]


@pytest.mark.parametrize("sent", [f"{COOKIE}=short", f"{COOKIE}=", f"{COOKIE}={'a' * 43}; {COOKIE}={'b' * 43}", "=;;"])
async def test_a_cookie_that_is_not_ours_or_is_there_twice_is_replaced(logins: LoginEnvironment, sent: str) -> None:
    page = await logins.browser().client.get("/oauth2/v2/authorization", request(), cookie=sent)
    assert page.status == 200
    assert len(page.cookies) == 1


NASTY = "\"><script>alert(1)</script><input value='"


async def test_pages_show_what_somebody_sent_as_text(logins: LoginEnvironment) -> None:
    browser = logins.browser()
    page = await browser.authorize(login_hint=NASTY, state=NASTY)
    reply = await browser.submit(page, email=NASTY, password=PASSWORD)
    device = await browser.get("/oauth2/v2/device", {"user_code": NASTY[:32]})
    without_cookie = await logins.browser().post("/oauth2/v2/login", {"state": NASTY, "provider": NASTY})
    change = await browser.post("/oauth2/v2/password", {"email": NASTY, "password": "x", "new_password": "y"})
    for shown in (page, reply, device, without_cookie, change):
        assert "<script" not in body(shown)
        assert "&gt;&lt;script&gt;alert(1)" in body(shown)


async def test_pages_load_nothing_and_run_nothing(logins: LoginEnvironment) -> None:
    browser = logins.browser()
    for page in (
        await browser.authorize(),
        await browser.get("/oauth2/v2/device"),
        await browser.get("/oauth2/v2/password"),
        await browser.get("/oauth2/v2/logout"),
    ):
        policy = page.headers["content-security-policy"]
        style = body(page).partition("<style>")[2].partition("</style>")[0]
        digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
        assert policy.startswith(f"default-src 'none'; style-src 'sha256-{digest}';")
        assert "frame-ancestors 'none'" in policy
        assert "src=" not in body(page)
        assert "javascript" not in body(page).lower()


async def test_a_line_end_in_a_state_does_not_become_a_header(logins: LoginEnvironment) -> None:
    evil = "x\r\nSet-Cookie: evil=1"
    browser = logins.browser()
    by_query = await browser.authorize(state=evil)
    assert by_query.status == 400
    await browser.authorize()
    page = await browser.post("/oauth2/v2/authorization", request(state=evil))
    answer = await browser.submit(page, email=JO, password=PASSWORD)
    assert "\r" not in answer.headers["location"]
    assert quote(evil, safe="").replace("%20", "+") in answer.headers["location"]
    assert not any("evil" in cookie for cookie in answer.cookies)


async def test_a_form_that_is_too_long_or_too_wide_is_refused(logins: LoginEnvironment) -> None:
    browser = logins.browser()
    state = Forms.of(await browser.authorize())[0].fields["state"]
    too_long = await browser.post("/oauth2/v2/login", {"state": state, "email": JO, "password": "x" * 2**21})
    assert too_long.status == 413
    wide = {f"field{number}": "x" for number in range(200)}
    assert (await browser.post("/oauth2/v2/login", {"state": state, **wide})).status == 400


async def test_a_form_of_another_site_comes_again_by_itself_and_then_counts(logins: LoginEnvironment) -> None:
    browser = logins.browser()
    state = Forms.of(await browser.authorize())[0].fields["state"]
    kept, browser.cookies = browser.cookies, {}
    bounced = await browser.post("/oauth2/v2/login", {"state": state, "email": "jo@nowhere.test"})
    assert bounced.status == 200
    browser.cookies = kept
    again = await browser.submit(bounced)
    assert again.status == 400
    assert "Enter your password: no organization" in body(again)


async def test_a_login_and_a_failure_leave_audit_records_without_what_was_typed(logins: LoginEnvironment) -> None:
    organization = "c0000000-0000-4000-8000-000000000003"
    await logins.organization(organization)
    await logins.member(organization, user_id(JO))
    browser = logins.browser()
    page = await browser.authorize()
    await browser.submit(page, email="hunter2 is my password", password="wrong password")
    await browser.submit(page, email=JO, password="wrong password")
    await browser.submit(page, email=JO, password=PASSWORD)

    async def records(subject: str) -> list[tuple[str, str, int]]:
        entries = (await logins.store.read("audit", subject)).entries
        read = [msgspec.json.decode(entry.data, type=AuditRecord) for entry in entries]
        return [(each.actor.subject, each.operation.route, each.result.status) for each in read]

    login = "/oauth2/v2/login"
    assert [each for each in await records("system") if each[1] == login] == [("", login, 401), (JO, login, 401)]
    assert await records(f"organization/{organization}") == [(JO, login, 302)]
