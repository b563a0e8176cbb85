"""Users with roles of the configuration, of whom it requires a second factor: their permissions, and their login."""

import itertools
from datetime import timedelta

import pytest

from remuda.access.checks import require_everywhere, require_in_organization
from remuda.access.principal import EVERYWHERE, AccessList, Permission, Principal
from remuda.http.authentication import claim_of
from remuda.identity.kinds.factors import LoginProof, SecondFactorPolicy
from remuda.identity.kinds.tokens import Session
from remuda.identity.kinds.users import User, user_id
from remuda.identity.settings import RoleBinding
from remuda.kernel.errors import Forbidden
from tests.kit.environment import options
from tests.kit.identity.account_page import text
from tests.kit.identity.authenticator import AuthenticatorEnvironment, claim
from tests.kit.identity.environment import ORGANIZATIONS, ROOT, IdentityEnvironment, expect
from tests.kit.identity.launch import settings
from tests.kit.identity.login import JO, LoginEnvironment, sent_to
from tests.kit.identity.permissions import PermissionEnvironment, run_permissions
from tests.kit.identity.second_factor import answer, challenged, codes_of, key_of
from tests.kit.identity.software_authenticator import app_code

POLICIES: tuple[SecondFactorPolicy, ...] = ("optional", "password", "always")
PROOFS: tuple[LoginProof, ...] = ("password", "provider", "factor")
OPEN = {
    ("optional", "password"), ("optional", "provider"), ("optional", "factor"),
    ("password", "provider"), ("password", "factor"), ("always", "factor"),
}  # fmt: skip
ELSEWHERE, COMPUTE = "https://login.example.com", "unikorn-compute"


@pytest.mark.parametrize(("policy", "proof"), list(itertools.product(POLICIES, PROOFS)))
def test_m27_roles_of_the_configuration_give_nothing_to_a_login_without_the_second_factor_that_they_require(
    policy: SecondFactorPolicy, proof: LoginProof
) -> None:
    async def scenario(permissions: PermissionEnvironment) -> None:
        acme = await permissions.organization()
        boss, looker, ann = [await permissions.user(f"{name}@example.com", acme) for name in ("boss", "looker", "ann")]
        await permissions.group(acme, "administrator", users=[boss, looker, ann])
        for user in (boss, looker):
            standing = await permissions.standing(user, proof=proof)
            is_open = (policy, proof) in OPEN
            assert bool(standing.access.everywhere) == is_open
            assert standing.closed == (() if is_open else (EVERYWHERE,))
            assert standing.organizations == ((acme,) if is_open else ())
            assert not standing.access.organizations
        assert (await permissions.standing(ann, proof=proof)).access.organizations, "she has no such role"

    run_permissions(
        scenario,
        platform_administrators=("boss@example.com",),
        role_bindings=(RoleBinding(subject="looker@example.com", roles=("platform-reader",)),),
        platform_second_factor=policy,
    )


@options(
    platform_second_factor="always",
    role_bindings=(RoleBinding(issuer=ELSEWHERE, subject="bob@example.com", roles=("platform-reader",)),),
)
async def test_the_token_of_another_issuer_is_no_second_factor(permissions: PermissionEnvironment) -> None:
    found = await permissions.permissions.of_outsider("bob@example.com", issuer=ELSEWHERE)
    assert (found.access, found.closed) == (AccessList(), (EVERYWHERE,))


def test_a_platform_administrator_is_told_the_remedy() -> None:
    read = Permission("region:servers", "read")
    boss = Principal(subject=JO, type="user", closed=(EVERYWHERE,))
    remedy = "a second factor is required here: log in again with one"
    with pytest.raises(Forbidden, match=remedy):
        require_everywhere(boss, read)
    with pytest.raises(Forbidden, match=remedy):
        require_in_organization(boss, read, "acme")


@options(platform_administrators=(JO,), platform_second_factor="password")
async def test_m27_the_login_of_a_platform_administrator_leads_to_a_second_factor(logins: LoginEnvironment) -> None:
    browser, page = await challenged(logins)
    assert "Your roles in this system require a second factor" in text(page)
    form = await browser.submit(page, button=("kind", "app"))
    shown = await browser.submit(form, code=app_code(key_of(form), logins.world.clock.now()))
    assert codes_of(shown)
    await logins.exchange(sent_to(await browser.submit(shown))["code"])
    (session,) = (await logins.store.list(Session)).items
    assert session.spec.proof == "factor"


@options(settings=settings(platform_second_factor="password"))
async def test_m27_a_platform_administrator_without_the_factor_has_no_permissions_until_there_is_one(
    identity: IdentityEnvironment,
) -> None:
    acme = {"metadata": {"name": "acme"}, "spec": {"organizationType": "adhoc"}}
    weak = identity.client(identity.root)
    refused = await weak.post(ORGANIZATIONS, acme)
    assert refused.status == 403
    assert "set one up on your account page" in refused.json["error_description"]
    acl = (await weak.get("/api/v1/acl")).json
    assert (acl["secondFactorRequired"], acl.get("global", [])) == (["*"], [])
    tokens = identity.app.tokens
    user = await identity.store.get(User, user_id(ROOT))
    session = await tokens.sessions.begin(user=user, client="console", methods=("pwd", "otp", "mfa"))
    strong = identity.client((await tokens.tokens.issue_for_session(user, session)).token.reveal())
    expect(await strong.post(ORGANIZATIONS, acme), 202)
    operator = await tokens.tokens.issue_for_operator(user, operator="on the machine", lifetime=timedelta(minutes=5))
    expect(await identity.client(operator.token.reveal()).get(ORGANIZATIONS), 200)


@options(platform_administrators=(JO,), platform_second_factor="password")
async def test_a_platform_administrator_who_goes_on_without_is_asked_again_next_time(logins: LoginEnvironment) -> None:
    browser, page = await challenged(logins)
    done = await browser.submit(page, button=("decline", "yes"))
    await logins.exchange(sent_to(done)["code"])
    (weak,) = (await logins.store.list(Session)).items
    assert weak.spec.proof == "password"
    await logins.world.clock.sleep(601)
    asked = await browser.authorize()
    assert asked.status == 200
    assert "Continue as" not in text(asked), "another session would lack it, too"


@options(platform_administrators=(JO,), platform_second_factor="always")
async def test_m27_a_password_alone_does_not_log_an_enrolled_platform_administrator_in(
    logins: LoginEnvironment,
) -> None:
    owner, first = await challenged(logins)
    form = await owner.submit(first, button=("kind", "app"))
    await owner.submit(form, code=app_code(key_of(form), logins.world.clock.now()))
    await logins.world.clock.sleep(90)
    _, page = await challenged(logins, (thief := logins.browser()))
    assert sent_to(await thief.authorize(prompt="none"))["error"] == "interaction_required"
    browser, page = await challenged(logins)
    assert not [each for each in (await logins.store.list(Session)).items if each.spec.proof != "factor"]
    done = await answer(browser, page, code=app_code(key_of(form), logins.world.clock.now()))
    assert "code" in sent_to(done)


@options(platform_administrators=("root@example.com",), platform_second_factor="password")
async def test_a_service_reaches_as_far_as_the_login_of_the_platform_administrator_did(
    authentication: AuthenticatorEnvironment,
) -> None:
    acme = await authentication.organization()
    root = await authentication.user("root@example.com", acme)
    ann = await authentication.user("ann@example.com", acme)
    await authentication.group(acme, "administrator", users=[root, ann])
    certificate = authentication.certificate(COMPUTE)

    async def impersonated(subject: str, *, has_global_access: bool) -> AccessList:
        as_them = claim(subject, type="user", has_global_access=has_global_access)
        return (await authentication.let_in(certificate=certificate, claim=as_them, impersonate=True)).access

    assert (await impersonated(root.spec.subject, has_global_access=True)).everywhere
    assert await impersonated(root.spec.subject, has_global_access=False) == AccessList()
    assert await impersonated(ann.spec.subject, has_global_access=True) == AccessList(), "she has none, and gets none"


def test_the_claim_for_a_caller_says_whether_its_login_had_global_permissions() -> None:
    everywhere = AccessList(everywhere=frozenset({Permission("region:servers", "read")}))
    assert claim_of(Principal(subject=JO, type="user", access=everywhere)).has_global_access
    assert not claim_of(Principal(subject=JO, type="user", closed=(EVERYWHERE,))).has_global_access
    assert not claim_of(Principal(subject=COMPUTE, type="system", access=everywhere)).has_global_access
