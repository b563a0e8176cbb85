"""Logins at an organization's own provider: whom it can make its administrators into, and who believes it.

The attack that was seen: an organization's administrator claimed a domain of a mail service, entered the victim as a
member, and logged in as the victim at a provider of his own; every client of the platform believed it.
"""

from collections.abc import Callable, Coroutine
from typing import Any

from remuda.identity.kinds.tenancy import Organization
from remuda.identity.oauth.clients import CLI
from remuda.identity.oauth.exchange import ACCESS_TOKEN_TYPE, TOKEN_EXCHANGE
from remuda.identity.tokens.secrets import s256
from tests.kit.asgi.client import Client
from tests.kit.asgi.contract import Reply
from tests.kit.environment import provided_by
from tests.kit.identity.account_page import PATH, text
from tests.kit.identity.environment import ORGANIZATIONS, IdentityEnvironment, expect
from tests.kit.identity.federation import KEY
from tests.kit.identity.launch import run_identity
from tests.kit.identity.login import Browser, sent_to
from tests.kit.identity.openid_provider import CLIENT, IDP, SECRET, Provider
from tests.kit.sim_identity.history import claims_of

MAL, VICTIM = "mal@evil.test", "victim@gmail.test"
DOMAIN = "gmail.test"
APP_URI, CLI_URI = "https://app.test/callback", "http://127.0.0.1:4242/callback"
VERIFIER = "v" * 43


class Attack:
    """Mal's organization with a provider of its own that says whatever Mal wants, and the victim's bank."""

    def __init__(self, identity: IdentityEnvironment, provider: Provider) -> None:
        self.identity, self.upstream = identity, provider
        provider.clock, provider.email = identity.clock, VICTIM  # type: ignore[assignment]  # the clock of the world
        self.home = self.bank = self.mal = self.provider = self.app = self.secret = ""

    async def furnish(self) -> None:
        identity = self.identity
        self.home, self.bank = await identity.organization("evil"), await identity.organization("bank")
        group = await identity.group(self.home, "administrator")
        await identity.user(MAL, self.home, group)
        await identity.user(VICTIM, self.bank, await identity.group(self.bank, "administrator"))
        self.mal = await identity.log_in(MAL)
        client = {"metadata": {"name": "app"}, "spec": {"redirectUris": [APP_URI]}}
        made = expect(await identity.client(identity.root).post("/api/v1/oauth2clients", client), 201)
        self.app, self.secret = made["metadata"]["id"], made["status"]["clientSecret"]
        as_mal = identity.client(self.mal)
        spec = {"issuer": IDP, "clientID": CLIENT, "clientSecret": SECRET}
        body = {"metadata": {"name": "mine"}, "spec": spec}
        self.provider = expect(await as_mal.post(f"{self.path}/oauth2providers", body), 201)["metadata"]["id"]
        claim = {
            "organizationType": "domain",
            "domain": DOMAIN,
            "providerScope": "organization",
            "providerID": self.provider,
        }
        expect(await as_mal.put(self.path, {"metadata": {"name": "evil"}, "spec": claim}), 200)
        entry = {"subject": VICTIM, "state": "active", "groupIDs": [group]}
        assert expect(await as_mal.post(f"{self.path}/users", {"spec": entry}), 201)["spec"]["state"] == "active"

    @property
    def path(self) -> str:
        return f"{ORGANIZATIONS}/{self.home}"

    def browser(self) -> Browser:
        return Browser(Client(app=self.identity.asgi, contract=None, peer=("192.0.2.1", 4711)))

    async def approve(self, *, withdrawn: bool = False) -> None:
        """Let a platform administrator approve the domain, by mistake, or withdraw that."""
        root, path = self.identity.client(self.identity.root), f"{self.path}/domain/approval"
        if withdrawn:
            expect(await root.delete(path), 204)
        else:
            expect(await root.put(path, {"domain": DOMAIN}), 200)

    async def list_for_app(self, **spec: Any) -> Reply:
        """Change the application of somebody else, as a platform administrator."""
        body = {"metadata": {"name": "app"}, "spec": {"redirectUris": [APP_URI], **spec}}
        return await self.identity.client(self.identity.root).put(f"/api/v1/oauth2clients/{self.app}", body)

    async def at_provider(self, browser: Browser, **asked: str) -> Reply:
        """Log in at the provider, whose id Mal knows."""
        gone = await browser.submit(
            await self.page(browser, **asked), email=VICTIM, password="", provider=self.provider
        )
        if gone.status != 302:
            return gone
        return await browser.get("/oidc/callback", self.upstream.authorize(gone.headers["location"]))

    async def page(self, browser: Browser, client: str = CLI, uri: str = CLI_URI) -> Reply:
        challenge = {"code_challenge": s256(VERIFIER), "code_challenge_method": "S256"}
        asked = {
            "client_id": client,
            "redirect_uri": uri,
            "response_type": "code",
            "scope": "openid email",
            "nonce": "n",
        }
        return await browser.get("/oauth2/v2/authorization", asked | challenge)

    async def exchange(self, reply: Reply, client: str = CLI, uri: str = CLI_URI, **more: str) -> Reply:
        form = {"grant_type": "authorization_code", "client_id": client, "redirect_uri": uri, "code_verifier": VERIFIER}
        return await self.token(**form, code=sent_to(reply)["code"], **more)

    async def token(self, **form: str) -> Reply:
        return await self.identity.client().post("/oauth2/v2/token", form=form)

    async def tokens(self) -> Any:
        """Return the tokens of a login through our own client, which works while the domain is approved."""
        return expect(await self.exchange(await self.at_provider(self.browser())), 200)

    async def userinfo(self, token: str) -> Any:
        return expect(await self.identity.client(token).get("/oauth2/v2/userinfo"), 200)

    async def passport(self, token: str, **scope: str) -> Reply:
        subject = {"subject_token": token, "subject_token_type": ACCESS_TOKEN_TYPE}
        return await self.token(grant_type=TOKEN_EXCHANGE, **subject, **scope)


def run_attack(scenario: Callable[[Attack], Coroutine[Any, Any, None]]) -> None:
    upstream = Provider(key=KEY)

    async def run(identity: IdentityEnvironment) -> None:
        attack = Attack(identity, upstream)
        await attack.furnish()
        await scenario(attack)

    run_identity(run, fetch=upstream)


attack = provided_by(run_attack)


async def test_m27_a_claimed_domain_routes_no_login_and_its_provider_logs_nobody_in(attack: Attack) -> None:
    read = expect(await attack.identity.client(attack.mal).get(attack.path), 200)
    assert read["spec"]["domain"] == DOMAIN
    browser = attack.browser()
    routed = await browser.submit(await attack.page(browser), email=VICTIM, password="")
    assert (routed.status, "no organization has a provider" in routed.body.decode()) == (400, True)
    by_id = await attack.at_provider(attack.browser())
    assert (by_id.status, "This provider is not available" in by_id.body.decode()) == (400, True)
    assert attack.upstream.asked == []


async def test_m27_even_with_a_proven_domain_other_organizations_are_out_of_reach(attack: Attack) -> None:
    await attack.approve()
    tokens = await attack.tokens()
    token, client = tokens["access_token"], attack.identity.client(tokens["access_token"])
    assert (await client.get(f"{ORGANIZATIONS}/{attack.bank}")).status == 403
    assert (await client.get(f"{ORGANIZATIONS}/{attack.bank}/users")).status == 403
    listed = expect(await client.get(ORGANIZATIONS), 200)
    assert [each["metadata"]["id"] for each in listed] == [attack.home]
    assert {each["id"] for each in expect(await client.get("/api/v1/acl"), 200)["organizations"]} == {attack.home}
    assert (await attack.userinfo(token))["https://unikorn-cloud.org/authz"]["orgIds"] == [attack.home]
    passport = claims_of(expect(await attack.passport(token), 200)["access_token"])
    assert passport["org_ids"] == [attack.home]
    assert (await attack.passport(token, x_organization_id=attack.bank)).status == 400


async def test_m27_what_a_brokered_login_yields_names_its_provider(attack: Attack) -> None:
    await attack.approve()
    tokens = await attack.tokens()
    token = tokens["access_token"]
    assert claims_of(token)["idp"] == attack.provider
    id_token = claims_of(tokens["id_token"])
    assert (id_token["idp"], id_token["email"], id_token["email_verified"]) == (attack.provider, VICTIM, True)
    userinfo = await attack.userinfo(token)
    assert (userinfo["idp"], userinfo["email"], userinfo["email_verified"]) == (attack.provider, VICTIM, True)
    assert claims_of(expect(await attack.passport(token), 200)["access_token"])["idp"] == attack.provider
    plain = await attack.identity.log_in(VICTIM)
    assert "idp" not in claims_of(plain)
    assert "idp" not in await attack.userinfo(plain)


async def test_m27_when_the_domain_is_lost_no_address_is_vouched_for_and_the_session_ends(attack: Attack) -> None:
    await attack.approve()
    tokens = await attack.tokens()
    token = tokens["access_token"]
    await attack.approve(withdrawn=True)
    userinfo = await attack.userinfo(token)
    assert "email" not in userinfo
    assert not userinfo.get("email_verified", False)
    assert userinfo["https://unikorn-cloud.org/authz"]["orgIds"] == []
    passport = claims_of(expect(await attack.passport(token), 200)["access_token"])
    assert ("email" in passport, passport["org_ids"]) == (False, [])
    form = {"grant_type": "refresh_token", "client_id": CLI, "refresh_token": tokens["refresh_token"]}
    assert (await attack.token(**form)).json["error"] == "invalid_grant"
    assert (await attack.identity.client(token).get("/api/v1/acl")).status == 401


async def test_m27_other_clients_get_a_brokered_login_only_if_the_organization_is_listed(attack: Attack) -> None:
    await attack.approve()
    as_app = {"client": attack.app, "uri": APP_URI}
    page = await attack.at_provider(attack.browser(), **as_app)
    assert (page.status, "accepts no logins at the provider" in page.body.decode()) == (400, True)
    browser = attack.browser()
    assert "code" in sent_to(await attack.at_provider(browser))
    shown = await attack.page(browser, **as_app)
    assert "continue_as_current" not in shown.body.decode(), "the login of another client is not offered"
    forged = await browser.submit(shown, button=("continue_as_current", "yes"), email="", password="")
    assert forged.status != 302
    assert (await attack.list_for_app(organizationIDs=[attack.home])).status == 200
    listed = await attack.exchange(
        await attack.at_provider(attack.browser(), **as_app), **as_app, client_secret=attack.secret
    )
    assert claims_of(listed.json["id_token"])["idp"] == attack.provider
    refresh = {
        "grant_type": "refresh_token",
        "client_id": attack.app,
        "client_secret": attack.secret,
        "refresh_token": listed.json["refresh_token"],
    }
    assert (await attack.list_for_app(organizationIDs=[attack.bank])).status == 200
    assert (await attack.token(**refresh)).json["error"] == "access_denied"
    assert (await attack.list_for_app(isFirstParty=True)).status == 200
    answer = await attack.at_provider(attack.browser(), **as_app)
    assert (await attack.exchange(answer, **as_app, client_secret=attack.secret)).status == 200


async def test_a_code_is_worthless_once_its_client_no_longer_accepts_the_organization(attack: Attack) -> None:
    await attack.approve()
    as_app = {"client": attack.app, "uri": APP_URI}
    assert (await attack.list_for_app(organizationIDs=[attack.home])).status == 200
    answer = await attack.at_provider(attack.browser(), **as_app)
    assert (await attack.list_for_app()).status == 200
    refused = await attack.exchange(answer, **as_app, client_secret=attack.secret)
    assert (refused.status, refused.json["error"]) == (400, "access_denied")


async def test_only_a_platform_administrator_says_which_clients_believe_an_organization(attack: Attack) -> None:
    body = {"metadata": {"name": "app"}, "spec": {"redirectUris": [APP_URI], "isFirstParty": True}}
    as_mal = attack.identity.client(attack.mal)
    assert (await as_mal.put(f"/api/v1/oauth2clients/{attack.app}", body)).status == 403
    assert (await as_mal.post("/api/v1/oauth2clients", body)).status == 403


async def test_a_device_of_another_client_is_not_approved_by_a_brokered_login(attack: Attack) -> None:
    await attack.approve()
    form = {"client_id": attack.app, "client_secret": attack.secret}
    started = expect(await attack.identity.client().post("/oauth2/v2/device_authorization", form=form), 200)
    browser = attack.browser()
    await attack.at_provider(browser)
    page = await browser.get("/oauth2/v2/device", {"user_code": started["user_code"]})
    refused = await browser.submit(page, button=("decision", "approve"))
    assert (refused.status, "accepts no logins at the provider" in refused.body.decode()) == (400, True)
    grant = {"grant_type": "urn:ietf:params:oauth:grant-type:device_code", "device_code": started["device_code"]}
    assert (await attack.token(**grant, **form)).json["error"] == "authorization_pending"


async def test_a_brokered_login_neither_shows_nor_accepts_what_others_invite_to(attack: Attack) -> None:
    await attack.approve()
    identity = attack.identity
    other = await identity.organization("other")
    await identity.user(MAL, other, await identity.group(other, "administrator"))
    entry = {"spec": {"subject": VICTIM, "state": "active", "groupIDs": []}}
    expect(await identity.client(attack.mal).post(f"{ORGANIZATIONS}/{other}/users", entry), 201)
    browser = attack.browser()
    assert "code" in sent_to(await attack.at_provider(browser)), "nothing is asked in between"
    account = text(await browser.get(PATH))
    assert "evil" in account
    assert "bank" not in account
    assert "to accept or decline" not in account
    assert "No organization invites you." in text(await browser.get("/oauth2/v2/invitations"))


async def test_the_victim_of_the_attack_is_not_shown_to_the_organization(attack: Attack) -> None:
    await attack.identity.log_in(VICTIM)
    as_mal = attack.identity.client(attack.mal)
    listed = expect(await as_mal.get(f"{attack.path}/users"), 200)
    (shown,) = [each for each in listed if each["spec"]["subject"] == VICTIM]
    assert shown["status"] == {}
    assert expect(await as_mal.get(f"{attack.path}/audit", [("actor", VICTIM)]), 200) == []
    assert (await attack.identity.store.get(Organization, attack.home)).spec.domain == DOMAIN
