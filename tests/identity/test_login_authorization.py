"""The authorization request: what is validated in which order, and where a browser is sent, or is not."""

from typing import Any

import msgspec
import pytest

from remuda.identity.kinds.tokens import Session
from remuda.identity.kinds.users import User, user_id
from remuda.identity.tokens.secrets import token_hash
from remuda.kernel.secrets import Secret
from tests.kit.identity.login import (
    APP,
    APP_URI,
    CONSOLE,
    CONSOLE_URI,
    ISSUER,
    JO,
    PASSWORD,
    Forms,
    LoginEnvironment,
    request,
    sent_to,
)

CHALLENGE = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
VERIFIER = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"


@pytest.mark.parametrize(
    "address",
    [
        "https://console.test/callback",
        "https://console.test/callback?here=1&more=2",
        "https://console.test/callback?here=1#",
        "https://console.test/callback?here=1/",
        "https://console.test/callback/?here=1",
        "https://console.test/callback/../callback?here=1",
        "https://CONSOLE.test/callback?here=1",
        "https://console.test:443/callback?here=1",
        "http://console.test/callback?here=1",
        "https://console.test@evil.test/callback?here=1",
        "https://evil.test/https://console.test/callback?here=1",
        "https://console.test.evil.test/callback?here=1",
        "https:\\\\console.test/callback?here=1",
        "https://console.test\\@evil.test/callback?here=1",
        "https://console.test%2F@evil.test/callback?here=1",
        "//console.test/callback?here=1",
        "/callback?here=1",
        " https://console.test/callback?here=1",
        "https://console.test/callback%3Fhere=1",
        "javascript:alert(1)",
        "https://app.test/cb",
        "",
    ],
)
@pytest.mark.parametrize("verb", ["get", "post"])
async def test_nobody_is_sent_to_an_address_that_is_not_registered(
    logins: LoginEnvironment, address: str, verb: str
) -> None:
    browser, asked = logins.browser(), request(redirect_uri=address, response_type="nonsense")
    path = "/oauth2/v2/authorization"
    reply = await (browser.get(path, asked) if verb == "get" else browser.post(path, asked))
    assert (reply.status, reply.media) == (400, "text/html")
    assert "location" not in reply.headers


@pytest.mark.parametrize("client_id", ["", "unknown", "../../etc", "x" * 600, APP])
async def test_nobody_is_sent_anywhere_for_a_client_that_is_not_the_one(
    logins: LoginEnvironment, client_id: str
) -> None:
    reply = await logins.browser().authorize(client_id=client_id)
    assert (reply.status, reply.media) == (400, "text/html")


async def test_a_parameter_that_comes_twice_is_refused(logins: LoginEnvironment) -> None:
    asked = [*request().items(), ("redirect_uri", "https://evil.test/")]
    assert (await logins.browser().get("/oauth2/v2/authorization", asked)).status == 400


async def test_every_other_fault_is_told_to_the_client_and_the_first_one_counts(logins: LoginEnvironment) -> None:
    faults = [
        ({"request": "x"}, "request_not_supported"),
        ({"request_uri": "https://x.test/"}, "request_uri_not_supported"),
        ({"registration": "{}"}, "registration_not_supported"),
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"response_mode": "form_post"}, "request_not_supported"),
        ({"code_challenge_method": "S512", "code_challenge": CHALLENGE}, "invalid_request"),
        ({"code_challenge_method": "S256"}, "invalid_request"),
        ({"code_challenge": "short"}, "invalid_request"),
        ({"prompt": "none login"}, "invalid_request"),
        ({"prompt": "dance"}, "invalid_request"),
        ({"max_age": "-1"}, "invalid_request"),
        ({"prompt": "none"}, "interaction_required"),
    ]
    for place, (parameters, error) in enumerate(faults):
        reply = await logins.browser().authorize(**parameters)
        assert reply.headers["location"].startswith(f"{CONSOLE_URI}&error=")
        sent = sent_to(reply)
        assert (sent["error"], sent["state"], sent["iss"]) == (error, "client-state", ISSUER)
        assert sent["error_description"]
        later = {name: value for parameters, _ in reversed(faults[place:]) for name, value in parameters.items()}
        assert sent_to(await logins.browser().authorize(**later))["error"] == error


@pytest.mark.parametrize(
    "challenge", [{}, {"code_challenge": CHALLENGE}, {"code_challenge": CHALLENGE, "code_challenge_method": "plain"}]
)
async def test_a_client_without_a_secret_must_use_pkce_with_s256(
    logins: LoginEnvironment, challenge: dict[str, str]
) -> None:
    reply = await logins.browser().authorize(client_id=APP, redirect_uri=APP_URI, **challenge)
    assert sent_to(reply)["error"] == "invalid_request"


@pytest.mark.parametrize("method", [{}, {"code_challenge_method": "plain"}, {"code_challenge_method": "S384"}])
async def test_no_client_may_use_another_method_than_s256(logins: LoginEnvironment, method: dict[str, str]) -> None:
    for client in ({}, {"client_id": APP, "redirect_uri": APP_URI}):
        reply = await logins.browser().authorize(**client, code_challenge=CHALLENGE, **method)
        assert sent_to(reply)["error"] == "invalid_request"


async def test_m27_a_client_without_a_secret_gets_tokens_by_its_verifier_and_not_without(
    logins: LoginEnvironment,
) -> None:
    for verifier, status in (("x" * 43, 400), ("", 400), (VERIFIER, 200)):
        browser = logins.browser()
        pkce = {"code_challenge": CHALLENGE, "code_challenge_method": "S256"}
        page = await browser.authorize(client_id=APP, redirect_uri=APP_URI, **pkce)
        code = sent_to(await browser.submit(page, email=JO, password=PASSWORD))["code"]
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "client_id": APP,
            "redirect_uri": APP_URI,
            "code_verifier": verifier,
        }
        assert (await logins.api.ask(None).post("/oauth2/v2/token", form=form)).status == status


async def test_a_code_is_good_for_the_client_it_was_made_for_and_once(logins: LoginEnvironment) -> None:
    browser = logins.browser()
    code = sent_to(await browser.submit(await browser.authorize(), email=JO, password=PASSWORD))["code"]
    injected = {
        "grant_type": "authorization_code",
        "code": code,
        "client_id": APP,
        "redirect_uri": APP_URI,
        "code_verifier": VERIFIER,
    }
    assert (await logins.api.ask(None).post("/oauth2/v2/token", form=injected)).json["error"] == "invalid_grant"
    assert (await logins.exchange(code)).status == 200
    assert (await logins.exchange(code)).json["error"] == "invalid_grant"


async def test_a_request_without_a_challenge_is_refused_unless_a_client_with_a_secret_was_registered_without(
    logins: LoginEnvironment,
) -> None:
    uri, secret = "https://other.test/cb", "s" * 43
    specs: dict[str, dict[str, Any]] = {
        "confidential": {"secret_hash": token_hash(secret)},
        "public": {"is_public": True, "is_challenge_optional": True},
        "lenient": {"secret_hash": token_hash(secret), "is_challenge_optional": True},
    }
    refused = {}
    for client, spec in specs.items():
        await logins.client(client, name=client, redirect_uri=uri, **spec)
        reply = await logins.browser().authorize(client_id=client, redirect_uri=uri)
        refused[client] = sent_to(reply).get("error") if reply.status == 302 else None
    assert refused == {"confidential": "invalid_request", "public": "invalid_request", "lenient": None}
    challenged = {"code_challenge": CHALLENGE, "code_challenge_method": "S256"}
    page = await logins.browser().authorize(client_id="confidential", redirect_uri=uri, **challenged)
    assert page.status == 200
    plain = {"code_challenge": VERIFIER, "code_challenge_method": "plain"}
    reply = await logins.browser().authorize(client_id="lenient", redirect_uri=uri, **plain)
    assert sent_to(reply)["error"] == "invalid_request"


async def test_who_has_a_session_with_a_client_is_not_asked_again(logins: LoginEnvironment) -> None:
    browser = await logins.logged_in()
    for prompt in ("", "none"):
        reply = await browser.authorize(prompt=prompt)
        assert (await logins.exchange(sent_to(reply)["code"])).status == 200
        assert not reply.cookies


@pytest.mark.parametrize(
    ("uri", "is_silent"), [("http://127.0.0.1/callback", False), ("https://tool.example.com/callback", True)]
)
async def test_a_program_on_the_machine_itself_without_a_secret_gets_nothing_without_a_click(
    logins: LoginEnvironment, uri: str, *, is_silent: bool
) -> None:
    await logins.client("tool", name="tool", redirect_uri=uri, is_public=True)
    browser = await logins.logged_in()
    user = await logins.store.get(User, user_id(JO))
    await logins.services.oauth.sessions.begin(user=user, client="tool")
    asked = {"client_id": "tool", "redirect_uri": uri, "prompt": "none"}
    reply = await browser.authorize(**asked, code_challenge=CHALLENGE, code_challenge_method="S256")
    assert ("code" in sent_to(reply)) is is_silent


async def test_a_client_that_the_user_never_used_gets_nothing_without_a_click(logins: LoginEnvironment) -> None:
    browser = await logins.logged_in()
    app = {
        "client_id": APP,
        "redirect_uri": APP_URI,
        "code_challenge": CHALLENGE,
        "code_challenge_method": "S256",
    }
    assert sent_to(await browser.authorize(**app, prompt="none"))["error"] == "interaction_required"
    page = await browser.authorize(**app)
    assert f"Continue as {JO}" in page.body.decode()
    answer = await browser.submit(page, button=("continue_as_current", "yes"))
    assert answer.headers["location"].startswith(f"{APP_URI}?code=")
    assert f"Continue as {JO}" in (await browser.authorize(prompt="consent")).body.decode()


async def test_a_login_is_asked_for_again_when_the_client_says_so_or_it_is_too_old(logins: LoginEnvironment) -> None:
    browser = await logins.logged_in()
    await logins.world.clock.sleep(60)
    assert "code" in sent_to(await browser.authorize(max_age="61"))
    for asked in ({"max_age": "60"}, {"max_age": "0"}, {"prompt": "login"}, {"prompt": "select_account"}):
        page = await browser.authorize(**asked)
        assert page.status == 200
        assert "Continue as" not in page.body.decode()
        assert (await browser.submit(page, continue_as_current="yes", email="", password="")).status == 400
    assert sent_to(await browser.authorize(max_age="60", prompt="none"))["error"] == "interaction_required"
    await browser.submit(await browser.authorize(prompt="login"), email=JO, password=PASSWORD)
    assert "code" in sent_to(await browser.authorize(max_age="60"))


async def id_token(logins: LoginEnvironment, subject: str) -> str:
    """Return the ID token of somebody who logged in to the console elsewhere."""
    browser = logins.browser()
    answer = await browser.submit(await browser.authorize(), email=subject, password=PASSWORD)
    return str((await logins.exchange(sent_to(answer)["code"])).json["id_token"])


async def test_a_client_that_expects_who_is_logged_in_asks_nobody(logins: LoginEnvironment) -> None:
    browser, hint = await logins.logged_in(), await id_token(logins, JO)
    for prompt in ("", "none"):
        assert "code" in sent_to(await browser.authorize(id_token_hint=hint, prompt=prompt))
    await logins.world.clock.sleep(2 * 3600)
    assert "code" in sent_to(await browser.authorize(id_token_hint=hint)), "an old one says the same"


async def test_a_client_that_expects_somebody_else_gets_no_code_for_who_is_logged_in(logins: LoginEnvironment) -> None:
    await logins.user("other@example.com", password=PASSWORD)
    browser, hint = await logins.logged_in(), await id_token(logins, "other@example.com")
    assert sent_to(await browser.authorize(id_token_hint=hint, prompt="none"))["error"] == "login_required"
    page = await browser.authorize(id_token_hint=hint)
    assert "Continue as" not in page.body.decode()
    assert 'value="other@example.com"' in page.body.decode()
    assert (await browser.submit(page, continue_as_current="yes", email="", password="")).status == 400
    assert sent_to(await browser.submit(page, email=JO, password=PASSWORD))["error"] == "login_required"
    page = await browser.authorize(id_token_hint=hint)
    assert "code" in sent_to(await browser.submit(page, email="other@example.com", password=PASSWORD))
    assert "code" in sent_to(await browser.authorize(id_token_hint=hint, prompt="none"))


@pytest.mark.parametrize("what", ["nonsense", "an access token", "with another signature"])
async def test_a_hint_that_is_no_id_token_of_ours_says_nothing(logins: LoginEnvironment, what: str) -> None:
    await logins.user("other@example.com", password=PASSWORD)
    browser, other = await logins.logged_in(), logins.browser()
    answer = await other.submit(await other.authorize(), email="other@example.com", password=PASSWORD)
    tokens = (await logins.exchange(sent_to(answer)["code"])).json
    hints = {
        "nonsense": "x.y.z",
        "an access token": tokens["access_token"],
        "with another signature": tokens["id_token"][:-8],
    }
    assert "code" in sent_to(await browser.authorize(id_token_hint=hints[what], prompt="none"))


async def test_a_login_in_a_browser_ends_after_twelve_hours(logins: LoginEnvironment) -> None:
    browser = await logins.logged_in()
    await logins.world.clock.sleep(12 * 3600)
    assert (await browser.authorize()).status == 200


@pytest.mark.parametrize("how", ["suspended", "given another password", "deleted"])
async def test_a_browser_forgets_a_user_who_was(logins: LoginEnvironment, how: str) -> None:
    browser = await logins.logged_in()
    jo = await logins.store.get(User, user_id(JO))
    await logins.world.clock.sleep(1)
    if how == "suspended":
        spec = msgspec.structs.replace(jo.spec, state="suspended")
        await logins.store.update(msgspec.structs.replace(jo, spec=spec))
    elif how == "deleted":
        await logins.store.delete(User, jo.name, uid=jo.uid)
    else:
        await logins.services.passwords.set_password(jo.name, Secret("another good password"))
    assert sent_to(await browser.authorize(prompt="none"))["error"] == "interaction_required"
    page = await browser.authorize()
    assert "Continue as" not in page.body.decode()
    if how == "given another password":
        assert not (await logins.store.list(Session)).items


async def test_logging_in_as_somebody_else_leaves_nothing_of_the_first_in_the_browser(logins: LoginEnvironment) -> None:
    other = "other@example.com"
    await logins.user(other, password=PASSWORD)
    browser = await logins.logged_in()
    old = dict(browser.cookies)
    answer = await browser.submit(await browser.authorize(prompt="login"), email=other, password=PASSWORD)
    tokens = (await logins.exchange(sent_to(answer)["code"])).json
    told = await logins.api.ask(None).get("/oauth2/v2/userinfo", authorization=f"Bearer {tokens['access_token']}")
    assert told.json["sub"] == other
    browser.cookies = old
    assert sent_to(await browser.authorize(prompt="none"))["error"] == "interaction_required"


async def test_a_form_of_another_site_is_sent_round_once_so_that_the_cookie_comes_along(
    logins: LoginEnvironment,
) -> None:
    browser = await logins.logged_in()
    kept, browser.cookies = browser.cookies, {}
    bounced = await browser.post("/oauth2/v2/authorization", request(prompt="none"))
    assert not bounced.cookies, "a cookie of ours must not be overwritten unseen"
    browser.cookies = kept
    assert "code" in sent_to(await browser.follow(bounced))
    unknown = logins.browser()
    bounced = await unknown.post("/oauth2/v2/authorization", request())
    assert (await unknown.follow(bounced)).status == 200


async def test_a_client_with_a_login_page_of_its_own_is_given_the_state(logins: LoginEnvironment) -> None:
    client = "c1111111-0000-4000-8000-000000000003"
    uri = "https://own.test/cb"
    await logins.client(
        client, name="own", redirect_uri=uri, login_uri="https://own.test/login?a=b", is_challenge_optional=True
    )
    await logins.provider(
        "d1111111-0000-4000-8000-000000000001", issuer="https://idp.test", type="google", client_id="x"
    )
    await logins.provider(
        "d1111111-0000-4000-8000-000000000002", issuer="https://github.test", type="github", client_id="x"
    )
    browser = logins.browser()
    reply = await browser.authorize(client_id=client, redirect_uri=uri)
    assert reply.headers["location"].startswith("https://own.test/login?a=b&state=")
    sent = sent_to(reply)
    assert (sent["callback"], sent["providers"]) == (f"{ISSUER}/oauth2/v2/login", "google")
    answer = await browser.post("/oauth2/v2/login", {"state": sent["state"], "email": JO, "password": PASSWORD})
    assert "code" in sent_to(answer)


async def test_the_login_page_says_for_whom_it_is_and_can_be_used_without_a_mouse(logins: LoginEnvironment) -> None:
    text = (await logins.browser().authorize(login_hint=JO)).body.decode()
    assert "<strong>console</strong>" in text
    assert f'value="{JO}"' in text
    for field in ("email", "password"):
        assert f'<label for="{field}">' in text
    assert 'autocomplete="username"' in text
    assert 'autocomplete="current-password"' in text
    assert text.count("autofocus") == 1


async def test_a_state_of_one_step_is_no_state_of_another(logins: LoginEnvironment) -> None:
    browser = await logins.logged_in()
    login = Forms.of(await browser.authorize(prompt="login"))[0].fields["state"]
    assert (await browser.get("/oidc/callback", {"state": login, "code": "x"})).status == 400
    assert (await browser.post("/oauth2/v2/device", {"state": login, "decision": "approve"})).status == 400
    assert (await browser.post("/oauth2/v2/logout", {"confirmation": login})).status == 400
    assert CONSOLE in str((await logins.store.list(Session)).items)
