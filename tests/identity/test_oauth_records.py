"""What programs do with sessions and tokens is on record: whose they are, how it ended, and where that is told."""

from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any

import msgspec

from remuda.http.audit import AuditRecord
from remuda.identity.kinds.oauth import BrowserLogin, BrowserLoginSpec, OAuth2Provider, OAuth2ProviderSpec
from remuda.identity.kinds.users import User
from remuda.identity.oauth.grants import DEVICE_CODE
from remuda.resources.conventions import NAME
from remuda.store.objects import Metadata
from tests.kit.environment import provided_by
from tests.kit.identity.oauth import OAuthEnvironment, answer, rejection, run_oauth

ANN = "ann@example.com"
PROVIDER = "d1111111-0000-4000-8000-000000000001"

Told = tuple[str, str, str, int]
BEGUN: Told = (ANN, "/oauth2/v2/token", "sessions", 200)
ENDED: Told = (ANN, "/oauth2/v2/token", "sessions", 400)


async def told(oauth: OAuthEnvironment, subject: str) -> list[Told]:
    """Return who did what to what, and how it ended, as one reader of the audit sees it."""
    entries = (await oauth.store.read("audit", subject)).entries
    records = [msgspec.json.decode(entry.data, type=AuditRecord) for entry in entries]
    return [(each.actor.subject, each.operation.route, each.resource.type, each.result.status) for each in records]


def as_a_member(scenario: Callable[[OAuthEnvironment, User, str], Coroutine[Any, Any, None]]) -> None:
    """Run a scenario with Ann, who is a member of an organization, and its part of the audit."""

    async def run(oauth: OAuthEnvironment) -> None:
        organization = await oauth.organization()
        ann = await oauth.user(ANN, organization)
        await scenario(oauth, ann, f"organization/{organization}")
        assert await told(oauth, "system") == [], "it is the organization's"

    run_oauth(run)


oauth_records = provided_by(as_a_member)
ann = provided_by(as_a_member, position=1)
audit = provided_by(as_a_member, position=2)


async def test_a_session_that_begins_goes_on_and_is_revoked_is_told_to_the_organizations_of_its_user(
    oauth_records: OAuthEnvironment, ann: User, audit: str
) -> None:
    app = await oauth_records.app()
    tokens = await oauth_records.log_in(ann, app)
    following = answer(await oauth_records.refresh(tokens["refresh_token"], app))
    await oauth_records.post("/oauth2/v2/revoke", {"token": following["access_token"], **app.proof})
    await oauth_records.post("/oauth2/v2/revoke", {"token": following["refresh_token"], **app.proof})
    revoke = "/oauth2/v2/revoke"
    revoked = [(ANN, revoke, "revocations", 200), (ANN, revoke, "sessions", 200)]
    assert await told(oauth_records, audit) == [BEGUN, BEGUN, *revoked]
    (first, *_) = (await oauth_records.store.read("audit", audit)).entries
    assert msgspec.json.decode(first.data)["scope"] == {"client": app.id}


async def test_who_is_a_member_nowhere_is_on_record_with_the_system(oauth: OAuthEnvironment) -> None:
    await oauth.log_in(await oauth.user(ANN), await oauth.app())
    assert await told(oauth, "system") == [BEGUN]


async def test_a_refresh_token_that_comes_twice_is_on_record_as_refused(
    oauth_records: OAuthEnvironment, ann: User, audit: str
) -> None:
    app = await oauth_records.app()
    tokens = await oauth_records.log_in(ann, app)
    await oauth_records.refresh(tokens["refresh_token"], app)
    assert rejection(await oauth_records.refresh(tokens["refresh_token"], app)) == (400, "invalid_grant")
    assert await told(oauth_records, audit) == [BEGUN, BEGUN, ENDED]


async def test_a_code_that_comes_twice_leaves_a_record_of_the_session_that_it_ends(
    oauth_records: OAuthEnvironment, ann: User, audit: str
) -> None:
    app = await oauth_records.app()
    code = await oauth_records.code(ann, app)
    assert (await oauth_records.redeem(code, app)).status == 200
    for _ in range(2):
        assert rejection(await oauth_records.redeem(code, app)) == (400, "invalid_grant")
    assert await told(oauth_records, audit) == [BEGUN, ENDED], "it ended once"


async def test_a_session_whose_provider_is_gone_leaves_a_record_of_its_end(
    oauth_records: OAuthEnvironment, ann: User, audit: str
) -> None:
    app = await oauth_records.app()
    spec = OAuth2ProviderSpec(issuer="https://idp.test", client_id="us")
    provider = await oauth_records.store.create(OAuth2Provider(metadata=Metadata(name=PROVIDER), spec=spec))
    tokens = await oauth_records.log_in(ann, app, provider=PROVIDER)
    await oauth_records.store.delete(OAuth2Provider, PROVIDER, uid=provider.uid)
    assert rejection(await oauth_records.refresh(tokens["refresh_token"], app)) == (400, "invalid_grant")
    assert await told(oauth_records, audit) == [BEGUN, ENDED]


async def test_a_session_that_has_lost_its_validity_leaves_a_record_of_its_end(
    oauth_records: OAuthEnvironment, ann: User, audit: str
) -> None:
    app, now = await oauth_records.app(), oauth_records.clock.now()
    spec = BrowserLoginSpec(
        user=ann.name, cookie_hash="x", provider="", authenticated=now, expires=now + timedelta(hours=1), ended=now
    )
    await oauth_records.store.create(BrowserLogin(metadata=Metadata(name="logged-out"), spec=spec))
    code = await oauth_records.code(ann, app, login="logged-out")
    assert rejection(await oauth_records.redeem(code, app)) == (400, "invalid_grant")
    assert await told(oauth_records, audit) == [BEGUN, ENDED]


async def test_a_device_that_is_let_in_begins_a_session_of_its_user(
    oauth_records: OAuthEnvironment, ann: User, audit: str
) -> None:
    app = await oauth_records.app(is_public=True)
    codes = answer(await oauth_records.post("/oauth2/v2/device_authorization", {"scope": "openid", **app.proof}))
    assert await oauth_records.oauth.devices.approve(codes["user_code"], user=ann.name)
    form = {"grant_type": DEVICE_CODE, "device_code": codes["device_code"], **app.proof}
    assert (await oauth_records.token(form)).status == 200
    assert await told(oauth_records, audit) == [BEGUN]


async def test_an_operator_who_gives_a_token_back_is_named(
    oauth_records: OAuthEnvironment, ann: User, audit: str
) -> None:
    issued = await oauth_records.api.tokens.issue_for_operator(ann, operator="root", lifetime=timedelta(minutes=5))
    token = issued.token.reveal()
    reply = await oauth_records.post("/oauth2/v2/revoke", {"token": token}, authorization=f"Bearer {token}")
    assert reply.status == 200
    (entry,) = (await oauth_records.store.read("audit", audit)).entries
    assert msgspec.json.decode(entry.data)["actor"] == {"subject": ANN, "service": "operator root"}


async def test_the_token_of_a_service_account_is_released_in_the_audit_of_its_organization(
    oauth: OAuthEnvironment,
) -> None:
    organization = await oauth.organization()
    account = await oauth.account(organization)
    issued = await oauth.api.tokens.issue_for_account(account.name, organization)
    held = {"access_token": issued.hash, "token_id": issued.id, "expiry": issued.expires}
    spec = msgspec.structs.replace(account.spec, **held)
    metadata = msgspec.structs.replace(account.metadata, labels=dict(account.metadata.labels) | {NAME: "robot"})
    await oauth.store.update(msgspec.structs.replace(account, metadata=metadata, spec=spec))
    token = issued.token.reveal()
    reply = await oauth.post("/oauth2/v2/revoke", {"token": token}, authorization=f"Bearer {token}")
    assert reply.status == 200
    (entry,) = (await oauth.store.read("audit", f"organization/{organization}")).entries
    assert msgspec.json.decode(entry.data, type=AuditRecord).actor.name == "robot"
    expected = [(account.name, "/oauth2/v2/revoke", "revocations", 200)]
    assert await told(oauth, f"organization/{organization}") == expected
