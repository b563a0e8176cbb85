"""Logging in at an external provider: to the end, and whom we do not believe what."""

from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from joserfc.jwk import ECKey, RSAKey
from msgspec.structs import replace

from remuda.identity.kinds.oauth import BrowserLogin
from remuda.identity.kinds.tenancy import Organization
from remuda.identity.kinds.users import user_id
from remuda.identity.settings import RoleBinding
from remuda.kernel.encoding import to_base64url
from tests.kit.asgi.contract import Reply
from tests.kit.environment import options, provided_by
from tests.kit.identity.federation import (
    GOOGLE,
    KEY,
    ORG,
    OTHER_ORG,
    OWN,
    THEIRS,
    come_back,
    depart,
    federated,
    log_in,
)
from tests.kit.identity.login import CONSOLE_URI, ISSUER, JO, PASSWORD, Forms, LoginEnvironment, sent_to
from tests.kit.identity.openid_provider import CLIENT, IDP, Provider, other_key

federation = provided_by(federated)
upstream = provided_by(federated, position=1)


async def assert_refused(logins: LoginEnvironment, reply: Reply, error: str = "", words: str = "") -> None:
    sent = sent_to(reply)
    assert reply.headers["location"].startswith(f"{CONSOLE_URI}&error=")
    assert not error or sent["error"] == error
    assert words in sent["error_description"]
    assert sent["state"] == "client-state"
    assert not reply.cookies
    assert not (await logins.store.list(BrowserLogin)).items


@pytest.mark.parametrize("name", [GOOGLE, "google"])
async def test_somebody_whom_a_provider_of_the_system_vouches_for_gets_tokens(
    federation: LoginEnvironment, upstream: Provider, name: str
) -> None:
    browser, gone = await depart(federation, name, login_hint=JO, max_age="60", acr_values="gold", prompt="login")
    asked = dict(parse_qsl(urlsplit(gone.headers["location"]).query))
    assert asked["redirect_uri"] == f"{ISSUER}/oidc/callback"
    assert (asked["login_hint"], asked["max_age"], asked["acr_values"], asked["prompt"]) == (
        JO,
        "60",
        "gold",
        "login",
    )
    answer = await come_back(browser, upstream, gone)
    tokens = await federation.exchange(sent_to(answer)["code"])
    assert tokens.status == 200
    (login,) = (await federation.store.list(BrowserLogin)).items
    assert (login.spec.user, login.spec.provider) == (user_id(JO), GOOGLE)
    assert "code" in sent_to(await browser.authorize(prompt="none"))


@pytest.mark.parametrize(
    "claims",
    [
        pytest.param({"nonce": "another"}, id="nonce of another login"),
        pytest.param({"nonce": None}, id="no nonce"),
        pytest.param({"iss": "https://evil.test"}, id="another issuer"),
        pytest.param({"iss": f"{IDP}/"}, id="issuer with a slash more"),
        pytest.param({"aud": "somebody else"}, id="another audience"),
        pytest.param({"aud": [CLIENT, "other"]}, id="two audiences without azp"),
        pytest.param({"azp": "other"}, id="another azp"),
        pytest.param({"aud": [CLIENT, "other"], "azp": "other"}, id="two audiences, another azp"),
        pytest.param({"exp": 1}, id="expired"),
        pytest.param({"exp": None}, id="no exp"),
        pytest.param({"exp": "never"}, id="exp is no time"),
        pytest.param({"iat": 4102444800}, id="from the future"),
        pytest.param({"sub": None}, id="no sub"),
        pytest.param({"aud": {"x": 1}}, id="aud is no text"),
    ],
)
@options(lambda claims: {"provider": Provider(key=KEY, claims=claims)})
async def test_an_id_token_that_does_not_fit_is_not_believed(federation: LoginEnvironment, upstream: Provider) -> None:
    await assert_refused(federation, await log_in(federation, upstream), "server_error", "its ID token")


@pytest.mark.parametrize(
    "token",
    [".", "nonsense", "e30=.e30.e30", "e3 0.e30.e30", "é.e30.e30", f"{to_base64url(b'[' * 20_000)}.e30.e30"],
    ids=["empty", "no token", "padded", "with a blank", "not ASCII", "nested without end"],
)
@options(lambda token: {"provider": Provider(key=KEY, id_token=token)})
async def test_what_is_no_id_token_is_told_as_the_providers_fault(
    federation: LoginEnvironment, upstream: Provider
) -> None:
    await assert_refused(federation, await log_in(federation, upstream), "server_error", "its ID token is malformed")


@pytest.mark.parametrize(
    "faults",
    [
        pytest.param({"signing_key": other_key("RSA")}, id="another key of the same name"),
        pytest.param({"algorithm": "none"}, id="no signature"),
        pytest.param({"algorithm": "HS256"}, id="the public key as a secret"),
        pytest.param({"algorithm": "ES256", "signing_key": other_key("EC")}, id="another kind of key"),
        pytest.param({"header": {"kid": "unknown"}}, id="a key that nobody published"),
        pytest.param({"header": {"crit": ["x"], "x": 1}}, id="a header that we must understand"),
    ],
)
@options(lambda faults: {"provider": Provider(key=KEY, **faults)})
async def test_an_id_token_that_the_provider_did_not_sign_is_not_believed(
    federation: LoginEnvironment, upstream: Provider
) -> None:
    await assert_refused(federation, await log_in(federation, upstream), "server_error", "its ID token")


@pytest.mark.parametrize(
    ("key", "algorithm"),
    [(KEY, "RS512"), (KEY, "PS256"), (ECKey.generate_key("P-256", {"kid": "one"}), "ES256")],
)
@options(lambda key, algorithm: {"provider": Provider(key=key, algorithm=algorithm)})
async def test_asymmetric_algorithms_are_believed(federation: LoginEnvironment, upstream: Provider) -> None:
    assert "code" in sent_to(await log_in(federation, upstream))


@pytest.mark.parametrize("verified", [False, None, "false", "no", 0])
@options(lambda verified: {"provider": Provider(key=KEY, claims={"email_verified": verified})})
async def test_an_address_that_was_not_verified_logs_nobody_in(
    federation: LoginEnvironment, upstream: Provider, verified: Any
) -> None:
    reply = await log_in(federation, upstream)
    await assert_refused(federation, reply, "" if verified == 0 else "access_denied")


@options(lambda: {"provider": Provider(key=KEY, claims={"email": None, "email_verified": None})})
async def test_an_address_that_is_not_in_the_id_token_is_asked_for(
    federation: LoginEnvironment, upstream: Provider
) -> None:
    upstream.userinfo = {"sub": "42", "email": JO, "email_verified": True}
    assert "code" in sent_to(await log_in(federation, upstream))


@pytest.mark.parametrize(
    ("told", "error"),
    [
        ({"sub": "43", "email": JO, "email_verified": True}, "server_error"),
        ({"sub": "42", "email": JO, "email_verified": False}, "access_denied"),
        ({"sub": "42", "email": JO}, "access_denied"),
        ({"sub": "42"}, "access_denied"),
        ({"email": JO, "email_verified": True}, "server_error"),
    ],
)
@options(lambda: {"provider": Provider(key=KEY, claims={"email": None, "email_verified": None})})
async def test_what_userinfo_says_counts_only_if_it_is_about_the_same_and_verified(
    federation: LoginEnvironment, upstream: Provider, told: dict[str, Any], error: str
) -> None:
    upstream.userinfo = told
    await assert_refused(federation, await log_in(federation, upstream), error)


@options(lambda: {"provider": Provider(key=KEY, claims={"email_verified": None, "xms_edov": True})})
async def test_microsoft_says_in_other_words_that_an_address_is_verified_and_only_microsoft(
    federation: LoginEnvironment, upstream: Provider
) -> None:
    await assert_refused(federation, await log_in(federation, upstream), "access_denied")
    await federation.provider(OWN, type="microsoft", **THEIRS)
    assert "code" in sent_to(await log_in(federation, upstream, OWN))


@pytest.mark.parametrize(
    ("state", "words"),
    [(None, "user not found"), ("suspended", "user is not active"), ("pending", "user is not active")],
)
@options(lambda: {"provider": Provider(key=KEY, email="Other@Example.com")})
async def test_who_is_not_a_user_here_or_not_active_is_turned_away(
    federation: LoginEnvironment, upstream: Provider, state: str | None, words: str
) -> None:
    if state:
        await federation.user("other@example.com", state=state)
    await assert_refused(federation, await log_in(federation, upstream), "access_denied", words)


@pytest.mark.parametrize(
    "about",
    [
        pytest.param({"issuer": "https://evil.test"}, id="another issuer"),
        pytest.param({"issuer": f"{IDP}/"}, id="issuer with a slash more"),
        pytest.param({"authorization_endpoint": "javascript:alert(1)"}, id="a script for a page"),
        pytest.param({"authorization_endpoint": "http://idp.test/authorize"}, id="a page without TLS"),
        pytest.param({"token_endpoint": 7}, id="no address"),
        pytest.param({"authorization_endpoint": f"{IDP}/a\r\nSet-Cookie: a=b"}, id="another header"),
        pytest.param({"authorization_endpoint": f"{IDP}/a#b"}, id="a fragment"),
        pytest.param({"authorization_endpoint": f"{IDP}/ä"}, id="another alphabet"),
        pytest.param({"authorization_endpoint": f"{IDP}/{'a' * 2048}"}, id="too long an address"),
        pytest.param({"jwks_uri": f"{IDP}/{'a' * 2048}"}, id="too long an address of keys"),
    ],
)
@options(lambda about: {"provider": Provider(key=KEY, about=about)})
async def test_a_provider_that_describes_itself_wrongly_is_not_used(
    federation: LoginEnvironment, upstream: Provider
) -> None:
    _, reply = await depart(federation)
    await assert_refused(federation, reply, "server_error", "the provider cannot be used")
    assert len(upstream.asked) == 1


async def test_a_provider_that_does_not_answer_is_told_to_the_client(
    federation: LoginEnvironment, upstream: Provider
) -> None:
    upstream.is_down = True
    _, reply = await depart(federation)
    await assert_refused(federation, reply, "temporarily_unavailable")
    upstream.is_down = False
    await federation.world.clock.sleep(5)
    browser, gone = await depart(federation)
    back = upstream.authorize(gone.headers["location"])
    upstream.token_status = 500
    await assert_refused(federation, await browser.get("/oidc/callback", back), "server_error")


async def test_what_the_provider_rejects_is_told_to_the_client_in_our_own_words(
    federation: LoginEnvironment, upstream: Provider
) -> None:
    browser, gone = await depart(federation)
    state = upstream.authorize(gone.headers["location"])["state"]
    told = {"state": state, "error": 'access_denied"><b>', "error_description": "<script>"}
    reply = await browser.get("/oidc/callback", told)
    await assert_refused(federation, reply, "access_denied")
    assert sent_to(reply)["error_description"] == "the provider rejected the login"


@pytest.mark.parametrize("iss", ["https://evil.test", ""])
async def test_another_provider_cannot_answer_in_the_place_of_the_first(
    federation: LoginEnvironment, upstream: Provider, iss: str
) -> None:
    browser, gone = await depart(federation)
    back = upstream.authorize(gone.headers["location"]) | {"iss": iss}
    await assert_refused(federation, await browser.get("/oidc/callback", back), "server_error", "from another issuer")


async def test_a_callback_counts_in_the_browser_that_left_and_once(
    federation: LoginEnvironment, upstream: Provider
) -> None:
    browser, gone = await depart(federation)
    victim = federation.browser()
    await victim.authorize()
    back = upstream.authorize(gone.headers["location"])
    for other in (victim, federation.browser()):
        reply = await other.get("/oidc/callback", back)
        assert reply.status == 400
        assert not reply.cookies
    assert "code" in sent_to(await browser.get("/oidc/callback", back))
    assert (await browser.get("/oidc/callback", back)).status == 400


async def test_a_code_that_was_put_into_another_login_is_not_exchanged(
    federation: LoginEnvironment, upstream: Provider
) -> None:
    _, gone = await depart(federation)
    stolen = upstream.authorize(gone.headers["location"])["code"]
    victim, gone = await depart(federation)
    back = upstream.authorize(gone.headers["location"]) | {"code": stolen}
    await assert_refused(federation, await victim.get("/oidc/callback", back), "server_error")


@pytest.mark.parametrize(
    "query", [{}, {"state": "x"}, {"code": "x"}, {"state": "x" * 20_000, "code": "y"}, {"error": "x"}]
)
async def test_a_callback_without_a_state_of_ours_is_a_page(
    federation: LoginEnvironment, upstream: Provider, query: dict[str, str]
) -> None:
    browser, _ = await depart(federation)
    reply = await browser.get("/oidc/callback", query)
    assert (reply.status, reply.media) == (400, "text/html")
    assert not [url for _, url in upstream.asked if url.endswith("/token")]


@pytest.mark.parametrize("name", ["github", "nonsense", "d1111111-0000-4000-8000-00000000000f", OWN])
async def test_a_provider_that_cannot_be_used_is_a_choice_that_can_be_repeated(
    federation: LoginEnvironment, name: str
) -> None:
    await federation.provider(OWN, type="github", issuer="https://github.test", client_id="x")
    browser, reply = await depart(federation, name)
    assert reply.status == 400
    assert "This provider is not available" in reply.body.decode()
    buttons = [button for form in Forms.of(reply) for button in form.buttons]
    assert buttons == [("provider", GOOGLE)]
    assert (await browser.submit(reply, email="", password="", provider=GOOGLE)).status == 302


def own_provider(scope: str = "organization") -> dict[str, str]:
    return {"domain": "Example.com", "provider_scope": scope, "provider_id": OWN if scope != "global" else GOOGLE}


@pytest.mark.parametrize("scope", ["organization", "global"])
async def test_an_address_leads_to_the_provider_of_its_organization(
    federation: LoginEnvironment, upstream: Provider, scope: str
) -> None:
    await federation.provider(OWN, organization=ORG, **THEIRS)
    await federation.organization(ORG, **own_provider(scope))
    await federation.member(ORG, user_id(JO))
    browser = federation.browser()
    gone = await browser.submit(await browser.authorize(), email="JO@example.com", password="")
    if scope == "organization":
        gone = await browser.submit(gone, button=("provider", OWN))
    assert dict(parse_qsl(urlsplit(gone.headers["location"]).query))["login_hint"] == "JO@example.com"
    assert "code" in sent_to(await come_back(browser, upstream, gone))
    (login,) = (await federation.store.list(BrowserLogin)).items
    assert login.spec.provider == (OWN if scope == "organization" else GOOGLE)


async def test_before_an_address_leads_to_an_organizations_own_provider_somebody_is_told_which_and_may_stay(
    federation: LoginEnvironment, upstream: Provider
) -> None:
    await federation.provider(OWN, organization=ORG, **THEIRS)
    await federation.organization(ORG, **own_provider())
    browser = federation.browser()
    page = await browser.submit(await browser.authorize(), email=JO, password="")
    assert (page.status, page.media) == (200, "text/html")
    assert "<dd>org</dd>" in page.body.decode()
    assert '<dd class="code">idp.test</dd>' in page.body.decode()
    assert upstream.asked == []
    (form,) = Forms.of(page)
    assert form.buttons == [("provider", OWN), ("use_password", "yes")]
    stayed = await browser.submit(page, button=("use_password", "yes"))
    assert (stayed.status, Forms.of(stayed)[0].fields["email"]) == (200, JO)
    assert "code" in sent_to(await browser.submit(stayed, password=PASSWORD))


@pytest.mark.parametrize("email", ["", "eve@elsewhere.test"])
async def test_m27_the_id_of_an_organizations_own_provider_leads_there_only_with_an_address_in_its_domain(
    federation: LoginEnvironment, upstream: Provider, email: str
) -> None:
    await federation.provider(OWN, organization=ORG, **THEIRS)
    await federation.organization(ORG, **own_provider())
    browser = federation.browser()
    page = await browser.submit(await browser.authorize(), email=email, password="", provider=OWN)
    assert page.status == 400
    assert "This provider is not available" in page.body.decode()
    assert upstream.asked == []
    assert (await browser.submit(page, email=JO, password="", provider=OWN)).status == 302


@options(platform_administrators=("boss@example.com",))
async def test_in_the_domain_of_a_platform_administrator_no_organizations_own_provider_is_offered(
    federation: LoginEnvironment,
) -> None:
    await federation.provider(OWN, organization=ORG, **THEIRS)
    await federation.organization(ORG, **own_provider())
    browser = federation.browser()
    reply = await browser.submit(await browser.authorize(), email="Root@EXAMPLE.com", password="")
    assert reply.status == 400
    assert "Enter your password: no organization" in reply.body.decode()


@options(platform_administrators=("boss@example.com",))
async def test_in_the_domain_of_a_platform_administrator_a_provider_of_the_system_is_still_found(
    federation: LoginEnvironment,
) -> None:
    await federation.organization(ORG, **own_provider("global"))
    browser = federation.browser()
    assert (await browser.submit(await browser.authorize(), email=JO, password="")).status == 302


async def test_a_domain_is_the_organizations_that_has_it_and_not_everybodys_who_requests_it(
    federation: LoginEnvironment, upstream: Provider
) -> None:
    await federation.organization(OTHER_ORG, domain="example.com", provider_scope="global", provider_id=GOOGLE)
    await federation.provider(OWN, organization=ORG, **THEIRS)
    await federation.organization(ORG, **own_provider())
    await federation.member(ORG, user_id(JO))
    _, refused = await depart(federation, OWN)
    assert refused.status == 400
    browser = federation.browser()
    gone = await browser.submit(await browser.authorize(), email=JO, password="")
    await come_back(browser, upstream, gone)
    (login,) = (await federation.store.list(BrowserLogin)).items
    assert login.spec.provider == GOOGLE


async def test_an_organization_cannot_send_users_to_the_provider_of_another(federation: LoginEnvironment) -> None:
    await federation.provider(OWN, organization=OTHER_ORG, **THEIRS)
    await federation.organization(ORG, **own_provider())
    for email in (JO, "no address", "@example.com", "jo@", "jo@@example.com@", "x@nowhere.test"):
        browser = federation.browser()
        reply = await browser.submit(await browser.authorize(), email=email, password="")
        assert reply.status == 400
        assert "Enter your password: no organization" in reply.body.decode()


POWERS: dict[str, dict[str, Any]] = {
    "platform administrator": {"platform_administrators": (JO,)},
    "bound to a role everywhere": {"role_bindings": (RoleBinding(subject=JO, roles=("platform-reader",)),)},
}


@pytest.mark.parametrize(
    "how",
    [
        "no member",
        "suspended member",
        "another domain meanwhile",
        "no domain meanwhile",
        "bound to a role everywhere",
        "organization is gone meanwhile",
    ],
)
@options(lambda how: {**POWERS.get(how, {})})
async def test_an_organizations_provider_cannot_make_its_administrators_into_somebody_else(
    federation: LoginEnvironment, upstream: Provider, how: str
) -> None:
    await federation.provider(OWN, organization=ORG, **THEIRS)
    await federation.organization(ORG, **own_provider())
    if how != "no member":
        await federation.member(ORG, user_id(JO), state="suspended" if how == "suspended member" else "active")
    browser, gone = await depart(federation, OWN)
    assert gone.status == 302
    if how == "organization is gone meanwhile":
        found = await federation.store.get(Organization, ORG)
        await federation.store.delete(Organization, ORG, uid=found.uid)
    elif how.endswith("meanwhile"):
        domain = "evil.test" if how == "another domain meanwhile" else ""
        found = await federation.store.get(Organization, ORG)
        await federation.store.update(replace(found, spec=replace(found.spec, domain=domain)))
    reply = await come_back(browser, upstream, gone)
    await assert_refused(federation, reply, "access_denied", "belongs to an organization")


@pytest.mark.parametrize("how", ["another domain", "no domain", "platform administrator", "organization is gone"])
@options(lambda how: {**POWERS.get(how, {})})
async def test_m27_an_organizations_own_provider_is_not_redirected_to_for_somebody_outside_its_domain(
    federation: LoginEnvironment, upstream: Provider, how: str
) -> None:
    domain = {"another domain": "evil.test", "no domain": ""}.get(how, "example.com")
    await federation.provider(OWN, organization=ORG, **THEIRS)
    if how != "organization is gone":
        await federation.organization(ORG, domain=domain, provider_scope="organization", provider_id=OWN)
        await federation.member(ORG, user_id(JO))
    _, page = await depart(federation, OWN)
    assert page.status == 400
    assert "This provider is not available" in page.body.decode()
    assert upstream.asked == []


async def test_what_a_provider_says_about_itself_is_kept_for_an_hour_and_new_keys_are_looked_for(
    federation: LoginEnvironment, upstream: Provider
) -> None:
    await log_in(federation, upstream)
    await log_in(federation, upstream)
    fetched = [url for method, url in upstream.asked if method == "GET"]
    assert fetched == [f"{IDP}/.well-known/openid-configuration", f"{IDP}/jwks"]
    upstream.key = RSAKey.generate_key(2048, {"kid": "two"})
    upstream.header = {"kid": "two"}
    assert sent_to(await log_in(federation, upstream))["error"] == "server_error", "within a minute nobody looks again"
    await federation.world.clock.sleep(60)
    assert "code" in sent_to(await log_in(federation, upstream))
    assert [url for _, url in upstream.asked].count(f"{IDP}/jwks") == 2
    await federation.world.clock.sleep(3600)
    await log_in(federation, upstream)
    assert [url for _, url in upstream.asked].count(f"{IDP}/.well-known/openid-configuration") == 2


@options(lambda: {"provider": Provider(key=KEY, claims={"email_verified": False})})
async def test_a_device_whose_user_the_provider_rejects_shows_a_page(
    federation: LoginEnvironment, upstream: Provider
) -> None:
    form = {"client_id": "b1111111-0000-4000-8000-000000000002"}
    device = (await federation.api.ask(None).post("/oauth2/v2/device_authorization", form=form)).json
    browser = federation.browser()
    login = await browser.submit(await browser.get("/oauth2/v2/device"), user_code=device["user_code"])
    gone = await browser.submit(login, email="", password="", provider=GOOGLE)
    reply = await come_back(browser, upstream, gone)
    assert (reply.status, reply.media) == (403, "text/html")
