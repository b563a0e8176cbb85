"""What programs do with sessions and tokens is on record: whose they are, how it ended, and where that is told."""

from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any

import msgspec

from remuda.http.audit import AuditRecord
from remuda.identity.kinds.oauth import BrowserLogin, BrowserLoginSpec, OAuth2Provider, OAuth2ProviderSpec
from remuda.identity.kinds.users import User
from remuda.identity.oauth.grants import DEVICE_CODE
from remuda.store.objects import Metadata
from tests.identity.tokens_desk import Desk, answer, at_a_desk, refusal

ANN = "ann@example.com"
PROVIDER = "d1111111-0000-4000-8000-000000000001"

Told = tuple[str, str, str, int]
BEGUN: Told = (ANN, "/oauth2/v2/token", "sessions", 200)
ENDED: Told = (ANN, "/oauth2/v2/token", "sessions", 400)


async def told(desk: Desk, subject: str) -> list[Told]:
    """Return who did what to what, and how it ended, as one reader of the audit sees it."""
    entries = (await desk.store.read("audit", subject)).entries
    records = [msgspec.json.decode(entry.data, type=AuditRecord) for entry in entries]
    return [(each.actor.subject, each.operation.route, each.resource.type, each.result.status) for each in records]


def as_a_member(scenario: Callable[[Desk, User, str], Coroutine[Any, Any, None]]) -> None:
    """Run a scenario with Ann, who is a member of an organization, and its part of the audit."""

    async def run(desk: Desk) -> None:
        organization = await desk.organization()
        ann = await desk.user(ANN, organization)
        await scenario(desk, ann, f"organization/{organization}")
        assert await told(desk, "system") == [], "it is the organization's"

    at_a_desk(run)


def test_a_session_that_begins_goes_on_and_is_revoked_is_told_to_the_organizations_of_its_user() -> None:
    async def scenario(desk: Desk, ann: User, audit: str) -> None:
        app = await desk.app()
        tokens = await desk.log_in(ann, app)
        following = answer(await desk.refresh(tokens["refresh_token"], app))
        await desk.post("/oauth2/v2/revoke", {"token": following["access_token"], **app.proof})
        await desk.post("/oauth2/v2/revoke", {"token": following["refresh_token"], **app.proof})
        revoke = "/oauth2/v2/revoke"
        revoked = [(ANN, revoke, "revocations", 200), (ANN, revoke, "sessions", 200)]
        assert await told(desk, audit) == [BEGUN, BEGUN, *revoked]
        (first, *_) = (await desk.store.read("audit", audit)).entries
        assert msgspec.json.decode(first.data)["scope"] == {"client": app.id}

    as_a_member(scenario)


def test_who_is_a_member_nowhere_is_on_record_with_the_system() -> None:
    async def scenario(desk: Desk) -> None:
        await desk.log_in(await desk.user(ANN), await desk.app())
        assert await told(desk, "system") == [BEGUN]

    at_a_desk(scenario)


def test_a_refresh_token_that_comes_twice_is_on_record_as_refused() -> None:
    async def scenario(desk: Desk, ann: User, audit: str) -> None:
        app = await desk.app()
        tokens = await desk.log_in(ann, app)
        await desk.refresh(tokens["refresh_token"], app)
        assert refusal(await desk.refresh(tokens["refresh_token"], app)) == (400, "invalid_grant")
        assert await told(desk, audit) == [BEGUN, BEGUN, ENDED]

    as_a_member(scenario)


def test_a_code_that_comes_twice_leaves_a_record_of_the_session_that_it_ends() -> None:
    async def scenario(desk: Desk, ann: User, audit: str) -> None:
        app = await desk.app()
        code = await desk.code(ann, app)
        assert (await desk.redeem(code, app)).status == 200
        for _ in range(2):
            assert refusal(await desk.redeem(code, app)) == (400, "invalid_grant")
        assert await told(desk, audit) == [BEGUN, ENDED], "it ended once"

    as_a_member(scenario)


def test_a_session_whose_provider_is_gone_leaves_a_record_of_its_end() -> None:
    async def scenario(desk: Desk, ann: User, audit: str) -> None:
        app = await desk.app()
        spec = OAuth2ProviderSpec(issuer="https://idp.test", client_id="us")
        provider = await desk.store.create(OAuth2Provider(metadata=Metadata(name=PROVIDER), spec=spec))
        tokens = await desk.log_in(ann, app, provider=PROVIDER)
        await desk.store.delete(OAuth2Provider, PROVIDER, uid=provider.uid)
        assert refusal(await desk.refresh(tokens["refresh_token"], app)) == (400, "invalid_grant")
        assert await told(desk, audit) == [BEGUN, ENDED]

    as_a_member(scenario)


def test_a_session_that_has_lost_its_footing_leaves_a_record_of_its_end() -> None:
    async def scenario(desk: Desk, ann: User, audit: str) -> None:
        app, now = await desk.app(), desk.clock.now()
        spec = BrowserLoginSpec(
            user=ann.name, cookie_hash="x", provider="", authenticated=now, expires=now + timedelta(hours=1), ended=now
        )
        await desk.store.create(BrowserLogin(metadata=Metadata(name="logged-out"), spec=spec))
        code = await desk.code(ann, app, login="logged-out")
        assert refusal(await desk.redeem(code, app)) == (400, "invalid_grant")
        assert await told(desk, audit) == [BEGUN, ENDED]

    as_a_member(scenario)


def test_a_device_that_is_let_in_begins_a_session_of_its_user() -> None:
    async def scenario(desk: Desk, ann: User, audit: str) -> None:
        app = await desk.app(is_public=True)
        codes = answer(await desk.post("/oauth2/v2/device_authorization", {"scope": "openid", **app.proof}))
        assert await desk.oauth.devices.approve(codes["user_code"], user=ann.name)
        form = {"grant_type": DEVICE_CODE, "device_code": codes["device_code"], **app.proof}
        assert (await desk.token(form)).status == 200
        assert await told(desk, audit) == [BEGUN]

    as_a_member(scenario)


def test_an_operator_who_gives_a_token_back_is_named() -> None:
    async def scenario(desk: Desk, ann: User, audit: str) -> None:
        issued = await desk.room.tokens.issue_for_operator(ann, operator="root", life=timedelta(minutes=5))
        token = issued.token.reveal()
        reply = await desk.post("/oauth2/v2/revoke", {"token": token}, authorization=f"Bearer {token}")
        assert reply.status == 200
        (entry,) = (await desk.store.read("audit", audit)).entries
        assert msgspec.json.decode(entry.data)["actor"] == {"subject": ANN, "service": "operator root"}

    as_a_member(scenario)


def test_the_token_of_a_service_account_is_given_back_in_the_audit_of_its_organization() -> None:
    async def scenario(desk: Desk) -> None:
        organization = await desk.organization()
        account = await desk.account(organization)
        issued = await desk.room.tokens.issue_for_account(account.name, organization)
        held = {"access_token": issued.hash, "token_id": issued.id, "expiry": issued.expires}
        spec = msgspec.structs.replace(account.spec, **held)
        await desk.store.update(msgspec.structs.replace(account, spec=spec))
        token = issued.token.reveal()
        reply = await desk.post("/oauth2/v2/revoke", {"token": token}, authorization=f"Bearer {token}")
        assert reply.status == 200
        expected = [(account.name, "/oauth2/v2/revoke", "revocations", 200)]
        assert await told(desk, f"organization/{organization}") == expected

    at_a_desk(scenario)
