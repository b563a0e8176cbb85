"""The authorization request: what is judged in which order, and where a browser is sent, or is not."""

import msgspec
import pytest

from remuda.identity.kinds.tokens import Session
from remuda.identity.kinds.users import User, user_id
from remuda.kernel.secrets import Secret
from tests.identity.login_ground import (
    APP,
    APP_URI,
    CONSOLE,
    CONSOLE_URI,
    ISSUER,
    JO,
    PASSWORD,
    Forms,
    Home,
    at_home,
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
def test_nobody_is_sent_to_an_address_that_is_not_registered(address: str, verb: str) -> None:
    async def scenario(home: Home) -> None:
        browser, asked = home.browser(), request(redirect_uri=address, response_type="nonsense")
        path = "/oauth2/v2/authorization"
        reply = await (browser.get(path, asked) if verb == "get" else browser.post(path, asked))
        assert (reply.status, reply.media) == (400, "text/html")
        assert "location" not in reply.headers

    at_home(scenario)


@pytest.mark.parametrize("client_id", ["", "unknown", "../../etc", "x" * 600, APP])
def test_nobody_is_sent_anywhere_for_a_client_that_is_not_the_one(client_id: str) -> None:
    async def scenario(home: Home) -> None:
        reply = await home.browser().authorize(client_id=client_id)
        assert (reply.status, reply.media) == (400, "text/html")

    at_home(scenario)


def test_a_parameter_that_comes_twice_is_refused() -> None:
    async def scenario(home: Home) -> None:
        asked = [*request().items(), ("redirect_uri", "https://evil.test/")]
        assert (await home.browser().get("/oauth2/v2/authorization", asked)).status == 400

    at_home(scenario)


def test_every_other_fault_is_told_to_the_client_and_the_first_one_counts() -> None:
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

    async def scenario(home: Home) -> None:
        for place, (parameters, error) in enumerate(faults):
            reply = await home.browser().authorize(**parameters)
            assert reply.headers["location"].startswith(f"{CONSOLE_URI}&error=")
            sent = sent_to(reply)
            assert (sent["error"], sent["state"], sent["iss"]) == (error, "client-state", ISSUER)
            assert sent["error_description"]
            later = {name: value for parameters, _ in reversed(faults[place:]) for name, value in parameters.items()}
            assert sent_to(await home.browser().authorize(**later))["error"] == error

    at_home(scenario)


@pytest.mark.parametrize(
    "challenge", [{}, {"code_challenge": CHALLENGE}, {"code_challenge": CHALLENGE, "code_challenge_method": "plain"}]
)
def test_a_client_without_a_secret_must_use_pkce_with_s256(challenge: dict[str, str]) -> None:
    async def scenario(home: Home) -> None:
        reply = await home.browser().authorize(client_id=APP, redirect_uri=APP_URI, **challenge)
        assert sent_to(reply)["error"] == "invalid_request"

    at_home(scenario)


def test_m27_a_client_without_a_secret_gets_tokens_by_its_verifier_and_not_without() -> None:
    async def scenario(home: Home) -> None:
        for verifier, status in (("x" * 43, 400), ("", 400), (VERIFIER, 200)):
            browser = home.browser()
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
            assert (await home.room.ask(None).post("/oauth2/v2/token", form=form)).status == status

    at_home(scenario)


def test_a_code_is_good_for_the_client_it_was_made_for_and_once() -> None:
    async def scenario(home: Home) -> None:
        browser = home.browser()
        code = sent_to(await browser.submit(await browser.authorize(), email=JO, password=PASSWORD))["code"]
        injected = {
            "grant_type": "authorization_code",
            "code": code,
            "client_id": APP,
            "redirect_uri": APP_URI,
            "code_verifier": VERIFIER,
        }
        assert (await home.room.ask(None).post("/oauth2/v2/token", form=injected)).json["error"] == "invalid_grant"
        assert (await home.exchange(code)).status == 200
        assert (await home.exchange(code)).json["error"] == "invalid_grant"

    at_home(scenario)


def test_who_has_a_session_with_a_client_is_not_asked_again() -> None:
    async def scenario(home: Home) -> None:
        browser = await home.logged_in()
        for prompt in ("", "none"):
            reply = await browser.authorize(prompt=prompt)
            assert (await home.exchange(sent_to(reply)["code"])).status == 200
            assert not reply.cookies

    at_home(scenario)


@pytest.mark.parametrize(
    ("uri", "is_silent"), [("http://127.0.0.1/callback", False), ("https://tool.example.com/callback", True)]
)
def test_a_program_on_the_machine_itself_without_a_secret_gets_nothing_without_a_click(
    uri: str, *, is_silent: bool
) -> None:
    async def scenario(home: Home) -> None:
        await home.client("tool", name="tool", redirect_uri=uri, is_public=True)
        browser = await home.logged_in()
        user = await home.store.get(User, user_id(JO))
        await home.house.oauth.sessions.begin(user=user, client="tool")
        asked = {"client_id": "tool", "redirect_uri": uri, "prompt": "none"}
        reply = await browser.authorize(**asked, code_challenge=CHALLENGE, code_challenge_method="S256")
        assert ("code" in sent_to(reply)) is is_silent

    at_home(scenario)


def test_a_client_that_the_user_never_used_gets_nothing_without_a_click() -> None:
    async def scenario(home: Home) -> None:
        browser = await home.logged_in()
        app = {
            "client_id": APP,
            "redirect_uri": APP_URI,
            "code_challenge": CHALLENGE,
            "code_challenge_method": "S256",
        }
        assert sent_to(await browser.authorize(**app, prompt="none"))["error"] == "interaction_required"
        page = await browser.authorize(**app)
        assert f"Continue as {JO}" in page.body.decode()
        answer = await browser.submit(page, button=("known", "yes"))
        assert answer.headers["location"].startswith(f"{APP_URI}?code=")
        assert f"Continue as {JO}" in (await browser.authorize(prompt="consent")).body.decode()

    at_home(scenario)


def test_a_login_is_asked_for_again_when_the_client_says_so_or_it_is_too_old() -> None:
    async def scenario(home: Home) -> None:
        browser = await home.logged_in()
        await home.world.clock.sleep(60)
        assert "code" in sent_to(await browser.authorize(max_age="61"))
        for asked in ({"max_age": "60"}, {"max_age": "0"}, {"prompt": "login"}, {"prompt": "select_account"}):
            page = await browser.authorize(**asked)
            assert page.status == 200
            assert "Continue as" not in page.body.decode()
            assert (await browser.submit(page, known="yes", email="", password="")).status == 400
        assert sent_to(await browser.authorize(max_age="60", prompt="none"))["error"] == "interaction_required"
        await browser.submit(await browser.authorize(prompt="login"), email=JO, password=PASSWORD)
        assert "code" in sent_to(await browser.authorize(max_age="60"))

    at_home(scenario)


async def id_token(home: Home, subject: str) -> str:
    """Return the ID token of somebody who logged in to the console elsewhere."""
    browser = home.browser()
    answer = await browser.submit(await browser.authorize(), email=subject, password=PASSWORD)
    return str((await home.exchange(sent_to(answer)["code"])).json["id_token"])


def test_a_client_that_expects_who_is_logged_in_asks_nobody() -> None:
    async def scenario(home: Home) -> None:
        browser, hint = await home.logged_in(), await id_token(home, JO)
        for prompt in ("", "none"):
            assert "code" in sent_to(await browser.authorize(id_token_hint=hint, prompt=prompt))
        await home.world.clock.sleep(2 * 3600)
        assert "code" in sent_to(await browser.authorize(id_token_hint=hint)), "an old one says the same"

    at_home(scenario)


def test_a_client_that_expects_somebody_else_gets_no_code_for_who_is_logged_in() -> None:
    async def scenario(home: Home) -> None:
        await home.user("other@example.com", password=PASSWORD)
        browser, hint = await home.logged_in(), await id_token(home, "other@example.com")
        assert sent_to(await browser.authorize(id_token_hint=hint, prompt="none"))["error"] == "login_required"
        page = await browser.authorize(id_token_hint=hint)
        assert "Continue as" not in page.body.decode()
        assert 'value="other@example.com"' in page.body.decode()
        assert (await browser.submit(page, known="yes", email="", password="")).status == 400
        assert sent_to(await browser.submit(page, email=JO, password=PASSWORD))["error"] == "login_required"
        page = await browser.authorize(id_token_hint=hint)
        assert "code" in sent_to(await browser.submit(page, email="other@example.com", password=PASSWORD))
        assert "code" in sent_to(await browser.authorize(id_token_hint=hint, prompt="none"))

    at_home(scenario)


@pytest.mark.parametrize("what", ["nonsense", "an access token", "with another signature"])
def test_a_hint_that_is_no_id_token_of_ours_says_nothing(what: str) -> None:
    async def scenario(home: Home) -> None:
        await home.user("other@example.com", password=PASSWORD)
        browser, other = await home.logged_in(), home.browser()
        answer = await other.submit(await other.authorize(), email="other@example.com", password=PASSWORD)
        tokens = (await home.exchange(sent_to(answer)["code"])).json
        hints = {
            "nonsense": "x.y.z",
            "an access token": tokens["access_token"],
            "with another signature": tokens["id_token"][:-8],
        }
        assert "code" in sent_to(await browser.authorize(id_token_hint=hints[what], prompt="none"))

    at_home(scenario)


def test_a_login_in_a_browser_ends_after_twelve_hours() -> None:
    async def scenario(home: Home) -> None:
        browser = await home.logged_in()
        await home.world.clock.sleep(12 * 3600)
        assert (await browser.authorize()).status == 200

    at_home(scenario)


@pytest.mark.parametrize("how", ["suspended", "given another password", "deleted"])
def test_a_browser_forgets_a_user_who_was(how: str) -> None:
    async def scenario(home: Home) -> None:
        browser = await home.logged_in()
        jo = await home.store.get(User, user_id(JO))
        await home.world.clock.sleep(1)
        if how == "suspended":
            spec = msgspec.structs.replace(jo.spec, state="suspended")
            await home.store.update(msgspec.structs.replace(jo, spec=spec))
        elif how == "deleted":
            await home.store.delete(User, jo.name, uid=jo.uid)
        else:
            await home.house.passwords.set_password(jo.name, Secret("another good password"))
        assert sent_to(await browser.authorize(prompt="none"))["error"] == "interaction_required"
        page = await browser.authorize()
        assert "Continue as" not in page.body.decode()
        if how == "given another password":
            assert not (await home.store.list(Session)).items

    at_home(scenario)


def test_logging_in_as_somebody_else_leaves_nothing_of_the_first_in_the_browser() -> None:
    async def scenario(home: Home) -> None:
        other = "other@example.com"
        await home.user(other, password=PASSWORD)
        browser = await home.logged_in()
        old = dict(browser.cookies)
        answer = await browser.submit(await browser.authorize(prompt="login"), email=other, password=PASSWORD)
        tokens = (await home.exchange(sent_to(answer)["code"])).json
        told = await home.room.ask(None).get("/oauth2/v2/userinfo", authorization=f"Bearer {tokens['access_token']}")
        assert told.json["sub"] == other
        browser.cookies = old
        assert sent_to(await browser.authorize(prompt="none"))["error"] == "interaction_required"

    at_home(scenario)


def test_a_form_of_another_site_is_sent_round_once_so_that_the_cookie_comes_along() -> None:
    async def scenario(home: Home) -> None:
        browser = await home.logged_in()
        kept, browser.cookies = browser.cookies, {}
        bounced = await browser.post("/oauth2/v2/authorization", request(prompt="none"))
        assert not bounced.cookies, "a cookie of ours must not be overwritten unseen"
        browser.cookies = kept
        assert "code" in sent_to(await browser.follow(bounced))
        unknown = home.browser()
        bounced = await unknown.post("/oauth2/v2/authorization", request())
        assert (await unknown.follow(bounced)).status == 200

    at_home(scenario)


def test_a_client_with_a_login_page_of_its_own_is_given_the_state() -> None:
    async def scenario(home: Home) -> None:
        client = "c1111111-0000-4000-8000-000000000003"
        uri = "https://own.test/cb"
        await home.client(client, name="own", redirect_uri=uri, login_uri="https://own.test/login?a=b")
        await home.provider(
            "d1111111-0000-4000-8000-000000000001", issuer="https://idp.test", type="google", client_id="x"
        )
        await home.provider(
            "d1111111-0000-4000-8000-000000000002", issuer="https://github.test", type="github", client_id="x"
        )
        browser = home.browser()
        reply = await browser.authorize(client_id=client, redirect_uri=uri)
        assert reply.headers["location"].startswith("https://own.test/login?a=b&state=")
        sent = sent_to(reply)
        assert (sent["callback"], sent["providers"]) == (f"{ISSUER}/oauth2/v2/login", "google")
        answer = await browser.post("/oauth2/v2/login", {"state": sent["state"], "email": JO, "password": PASSWORD})
        assert "code" in sent_to(answer)

    at_home(scenario)


def test_the_login_page_says_for_whom_it_is_and_can_be_used_without_a_mouse() -> None:
    async def scenario(home: Home) -> None:
        text = (await home.browser().authorize(login_hint=JO)).body.decode()
        assert "<strong>console</strong>" in text
        assert f'value="{JO}"' in text
        for field in ("email", "password"):
            assert f'<label for="{field}">' in text
        assert 'autocomplete="username"' in text
        assert 'autocomplete="current-password"' in text
        assert text.count("autofocus") == 1

    at_home(scenario)


def test_a_state_of_one_step_is_no_state_of_another() -> None:
    async def scenario(home: Home) -> None:
        browser = await home.logged_in()
        login = Forms.of(await browser.authorize(prompt="login"))[0].fields["state"]
        assert (await browser.get("/oidc/callback", {"state": login, "code": "x"})).status == 400
        assert (await browser.post("/oauth2/v2/device", {"state": login, "answer": "approve"})).status == 400
        assert (await browser.post("/oauth2/v2/logout", {"confirmation": login})).status == 400
        assert CONSOLE in str((await home.store.list(Session)).items)

    at_home(scenario)
