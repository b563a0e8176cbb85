"""Organizations that require a second factor: where permissions are computed, and at login."""

import itertools
from typing import Any

import pytest
from msgspec.structs import replace

from remuda.access.checks import (
    require_for_object,
    require_in_organization,
    require_in_project,
    require_organization_access,
    require_somewhere,
)
from remuda.access.principal import Permission, Principal
from remuda.identity.kinds.factors import LoginProof, SecondFactorPolicy, meets_policy
from remuda.identity.kinds.tenancy import Organization
from remuda.identity.kinds.tokens import Session
from remuda.identity.kinds.users import User, user_id
from remuda.identity.login.browser_sessions import BrowserAuthenticator
from remuda.kernel.errors import Forbidden
from tests.kit.identity.account_page import form_with, text
from tests.kit.identity.environment import ORGANIZATIONS, IdentityEnvironment, expect
from tests.kit.identity.login import APP, COOKIE, JO, PASSWORD, LoginEnvironment, sent_to
from tests.kit.identity.permissions import PermissionEnvironment
from tests.kit.identity.second_factor import answer, challenged, codes_of, enrolled, key_of, options_of
from tests.kit.identity.software_authenticator import SecurityKey, app_code

ANN = "ann@example.com"
ACME, BLUE = "c0000000-0000-4000-8000-000000000003", "d0000000-0000-4000-8000-000000000003"
PROVIDER = "d1111111-0000-4000-8000-000000000001"
POLICIES: tuple[SecondFactorPolicy, ...] = ("optional", "password", "always")
PROOFS: tuple[LoginProof, ...] = ("password", "provider", "factor")


@pytest.mark.parametrize(("policy", "proof"), list(itertools.product(POLICIES, PROOFS)))
async def test_m27_an_organization_is_closed_to_logins_that_do_not_meet_its_policy(
    permissions: PermissionEnvironment, policy: SecondFactorPolicy, proof: LoginProof
) -> None:
    acme, blue = await permissions.organization("acme"), await permissions.organization("blue")
    ann = await permissions.user(ANN, acme, blue)
    for each in (acme, blue):
        await permissions.group(each, "administrator", users=[ann])
    found = await permissions.store.get(Organization, acme)
    open_before = await permissions.standing(ann, proof=proof)
    await permissions.store.update(replace(found, spec=replace(found.spec, second_factor=policy)))
    standing = await permissions.standing(ann, proof=proof)
    expected = {
        ("optional", "password"), ("optional", "provider"), ("optional", "factor"),
        ("password", "provider"), ("password", "factor"), ("always", "factor"),
    }  # fmt: skip
    is_open = (policy, proof) in expected
    assert meets_policy(policy, proof) == is_open
    assert (acme in standing.access.organizations, acme in standing.organizations) == (is_open, is_open)
    assert standing.closed == (() if is_open else (acme,))
    assert standing.access.organizations[blue] == open_before.access.organizations[blue], "others are unaffected"


def test_every_check_names_the_remedy() -> None:
    read = Permission("region:servers", "read")
    ann = Principal(subject=ANN, type="user", closed=("acme",))
    checks: list[Any] = [
        lambda: require_somewhere(ann, read),
        lambda: require_in_organization(ann, read, "acme"),
        lambda: require_in_project(ann, read, "acme", "project"),
        lambda: require_for_object(ann, read, "acme", "project", kind="Server", name="one"),
        lambda: require_organization_access(ann, read, "acme"),
    ]
    for check in checks:
        with pytest.raises(Forbidden, match="a second factor is required here: log in again with one"):
            check()


async def required(identity: IdentityEnvironment, organization: str, policy: str | None) -> None:
    root, path = identity.client(identity.root), f"{ORGANIZATIONS}/{organization}"
    found = expect(await root.get(path), 200)
    spec = {key: value for key, value in found["spec"].items() if key != "secondFactor"}
    body = {"metadata": {"name": "acme"}, "spec": spec | ({"secondFactor": policy} if policy else {})}
    expect(await root.put(path, body), 200)


async def strong_token(identity: IdentityEnvironment, subject: str) -> str:
    tokens = identity.app.tokens
    user = await identity.store.get(User, user_id(subject))
    session = await tokens.sessions.begin(user=user, client="console", methods=("pwd", "otp", "mfa"))
    return (await tokens.tokens.issue_for_session(user, session)).token.reveal()


async def test_m27_a_token_without_a_second_factor_has_no_permissions_where_one_is_required_and_machines_keep_theirs(
    identity: IdentityEnvironment,
) -> None:
    acme = await identity.organization("acme")
    ann = await identity.member(ANN, acme, "administrator")
    group = await identity.group(acme, "administrator", name="robots")
    robot = (await identity.account(acme, group)).token
    users = f"{ORGANIZATIONS}/{acme}/users"
    assert (await identity.client(ann).get(users)).status == 200
    await required(identity, acme, "password")
    refused = await identity.client(ann).get(users)
    assert refused.status == 403
    assert "set one up on your account page" in refused.json["error_description"]
    acl = (await identity.client(ann).get("/api/v1/acl")).json
    assert (acl["secondFactorRequired"], acl.get("organizations", [])) == ([acme], [])
    userinfo = (await identity.client(ann).get("/oauth2/v2/userinfo")).json
    assert not userinfo["https://unikorn-cloud.org/authz"]["orgIds"]
    for token in (await strong_token(identity, ANN), robot, identity.root):
        assert (await identity.client(token).get(users)).status == 200
    await required(identity, acme, "optional")
    assert (await identity.client(ann).get(users)).status == 200


async def test_a_service_that_impersonates_reaches_no_further_than_the_login_did(identity: IdentityEnvironment) -> None:
    acme = await identity.organization("acme")
    ann = await identity.member(ANN, acme, "administrator")
    await required(identity, acme, "password")
    acting = identity.service("unikorn-compute", impersonates=True, actor=ANN, type="user", organizationIds=[])
    assert (await acting.get(f"{ORGANIZATIONS}/{acme}/projects")).status == 403
    exchange = {
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "subject_token": ann,
        "subject_token_type": "urn:ietf:params:oauth:token-type:access_token",
        "x_organization_id": acme,
    }
    assert (await identity.client().post("/oauth2/v2/token", form=exchange)).json["error"] == "invalid_scope"


async def test_a_client_that_does_not_know_the_setting_neither_sees_nor_clears_it(
    identity: IdentityEnvironment,
) -> None:
    acme = await identity.organization("acme")
    path, root = f"{ORGANIZATIONS}/{acme}", identity.client(identity.root)
    assert "secondFactor" not in expect(await root.get(path), 200)["spec"]
    await required(identity, acme, "always")
    await required(identity, acme, None)
    assert expect(await root.get(path), 200)["spec"]["secondFactor"] == "always"
    wrong = {"metadata": {"name": "acme"}, "spec": {"organizationType": "adhoc", "secondFactor": "sometimes"}}
    assert (await root.put(path, wrong)).status == 400
    await required(identity, acme, "optional")
    assert "secondFactor" not in expect(await root.get(path), 200)["spec"]


async def test_the_reset_over_the_api_needs_permission_everywhere(identity: IdentityEnvironment) -> None:
    acme = await identity.organization("acme")
    ann = await identity.member(ANN, acme, "administrator")
    path, body = "/api/v1/secondfactorresets", {"subject": ANN}
    assert (await identity.client(ann).post(path, body)).status == 403
    assert (await identity.client(identity.root).post(path, {"subject": "nobody@example.com"})).status == 404
    expect(await identity.client(identity.root).post(path, body), 204)
    assert (await identity.client(ann).get("/api/v1/acl")).status == 401, "sessions end"


async def requiring(logins: LoginEnvironment, organization: str = ACME, policy: str = "password") -> None:
    await logins.organization(organization, second_factor=policy)
    await logins.member(organization, user_id(JO))


async def test_m27_a_login_leads_to_a_second_factor_where_one_is_required(logins: LoginEnvironment) -> None:
    await requiring(logins)
    browser, page = await challenged(logins)
    assert "Your organization org requires a second factor" in text(page)
    form = await browser.submit(page, button=("kind", "app"))
    shown = await browser.submit(form, code=app_code(key_of(form), logins.world.clock.now()))
    assert len(codes_of(shown)) == 10
    done = await browser.submit(shown)
    await logins.exchange(sent_to(done)["code"])
    (session,) = (await logins.store.list(Session)).items
    assert session.spec.methods == ("pwd", "otp", "mfa")


async def test_a_login_leads_to_a_passkey_as_well(logins: LoginEnvironment) -> None:
    await requiring(logins)
    browser, page = await challenged(logins)
    form = await browser.submit(page, button=("kind", "passkey"))
    shown = await browser.submit(form, credential=SecurityKey().create(options_of(form)))
    done = await browser.submit(shown)
    await logins.exchange(sent_to(done)["code"])
    (session,) = (await logins.store.list(Session)).items
    assert session.spec.methods == ("pwd", "pop", "mfa")


async def test_who_goes_on_without_has_a_weak_session_and_is_asked_again_next_time(logins: LoginEnvironment) -> None:
    await requiring(logins)
    browser, page = await challenged(logins)
    done = await browser.submit(page, button=("decline", "yes"))
    await logins.exchange(sent_to(done)["code"])
    (session,) = (await logins.store.list(Session)).items
    assert session.spec.proof == "password"
    await logins.world.clock.sleep(601)
    again = await browser.authorize()
    assert again.status == 200
    assert "Continue as" not in text(again), "another session would lack it, too"


async def test_a_login_from_before_the_requirement_is_not_used_for_another_client(logins: LoginEnvironment) -> None:
    browser = await logins.logged_in()
    assert (await browser.authorize()).status == 302
    await requiring(logins)
    page = await browser.authorize()
    assert page.status == 200
    assert "Continue as" not in text(page)
    silent = sent_to(await browser.authorize(prompt="none"))
    assert silent["error"] == "interaction_required"
    asked = await browser.submit(page, email=JO, password=PASSWORD)
    assert "requires a second factor" in text(asked)


async def test_a_device_leads_to_a_second_factor_and_going_on_without_does_not_loop(logins: LoginEnvironment) -> None:
    browser = await logins.logged_in()
    await requiring(logins)
    form = {"client_id": APP, "scope": "openid"}
    device = (await logins.api.ask(None).post("/oauth2/v2/device_authorization", form=form)).json
    login = await browser.get("/oauth2/v2/device", {"user_code": device["user_code"]})
    page = await browser.submit(login, email=JO, password=PASSWORD)
    assert "requires a second factor" in text(page)
    approve = await browser.follow(await browser.submit(page, button=("decline", "yes")))
    assert form_with(approve, "decision")


async def test_a_password_alone_never_adds_an_authenticator_beside_others(logins: LoginEnvironment) -> None:
    await requiring(logins)
    thief, page = await challenged(logins)
    form = await thief.submit(page, button=("kind", "app"))
    await enrolled_at_login(logins)
    added = await thief.submit(form, code=app_code(key_of(form), logins.world.clock.now()))
    assert "You have a second factor by now" in added.body.decode()


@pytest.mark.parametrize("policy", ["password", "always"])
async def test_m27_a_login_that_began_before_the_user_had_an_authenticator_completes_only_with_it(
    logins: LoginEnvironment, policy: str
) -> None:
    await requiring(logins, policy=policy)
    thief, page = await challenged(logins)
    key = await enrolled_at_login(logins)
    asked = await thief.submit(page, button=("decline", "yes"))
    assert asked.status == 200, "no login"
    assert (await thief.authorize(prompt="none")).status == 302
    assert sent_to(await thief.authorize(prompt="none"))["error"] == "interaction_required"
    await logins.world.clock.sleep(90)
    done = await answer(thief, asked, code=app_code(key, logins.world.clock.now()))
    assert "code" in sent_to(done), "who has the authenticator goes on"


async def enrolled_at_login(logins: LoginEnvironment) -> str:
    browser, page = await challenged(logins)
    form = await browser.submit(page, button=("kind", "app"))
    await browser.submit(form, code=app_code(key_of(form), logins.world.clock.now()))
    return key_of(form)


@pytest.mark.parametrize("policy", ["password", "always"])
async def test_a_login_at_a_provider_is_asked_only_where_an_organization_always_requires_it(
    logins: LoginEnvironment, policy: str
) -> None:
    await enrolled(logins)
    await requiring(logins, policy=policy)
    await logins.provider(PROVIDER, issuer="https://idp.test", type="google", client_id="x")
    login, user = logins.services.login, await logins.store.get(User, user_id(JO))
    closed = await login.redirects.requirement.closed_organizations(user, methods=(), provider=PROVIDER)
    assert list(closed) == ([] if policy == "password" else ["org"])


async def test_the_organizations_own_provider_is_limited_to_its_requirement(logins: LoginEnvironment) -> None:
    await requiring(logins, policy="always")
    await logins.organization(BLUE)
    await logins.member(BLUE, user_id(JO))
    await logins.provider(PROVIDER, organization=BLUE, issuer="https://idp.test", client_id="x")
    login, user = logins.services.login, await logins.store.get(User, user_id(JO))
    closed = await login.redirects.requirement.closed_organizations(user, methods=(), provider=PROVIDER)
    assert not closed, "the requirement of another organization does not concern this login"


async def test_pages_that_a_browser_reads_by_its_cookie_are_limited_alike(logins: LoginEnvironment) -> None:
    await requiring(logins)
    browser, page = await challenged(logins)
    await browser.submit(page, button=("decline", "yes"))
    login = logins.services.login
    reader = BrowserAuthenticator(
        store=logins.store,
        cookie=login.cookie,
        logins=login.logins,
        permissions=login.redirects.requirement.permissions,
    )
    principal = await reader.find(f"{COOKIE}={browser.cookies[COOKIE]}")
    assert (principal.closed, principal.organizations) == ((ACME,), ())
