"""All of identity with a provider that the configuration trusts: over HTTP, from the start to the removal."""

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
from prometheus_client import CollectorRegistry

from remuda.identity.federation.providers import provider_id
from remuda.identity.kinds.oauth import BearerTrust, OAuth2Provider
from remuda.identity.settings import GroupBinding, PlatformProvider
from remuda.kernel.clock import SystemClock
from remuda.kernel.secrets import Secret
from tests.kit.identity.environment import ORGANIZATIONS, ROOT, IdentityEnvironment, expect
from tests.kit.identity.external_issuer import AUDIENCE, ELSEWHERE, GROUPS, Issuer
from tests.kit.identity.launch import running, settings

ANN = "ann@example.com"
EXCHANGE = {
    "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
    "subject_token_type": "urn:ietf:params:oauth:token-type:access_token",
}


def trusted(**more: Any) -> dict[str, PlatformProvider]:
    trust = BearerTrust(audience=AUDIENCE, groups_claim=GROUPS, **more)
    return {"staff": PlatformProvider(issuer=ELSEWHERE, bearer_trust=trust)}


@asynccontextmanager
async def trusting_identity(directory: Path, **more: Any) -> AsyncIterator[tuple[IdentityEnvironment, Issuer]]:
    issuer, metrics = Issuer(SystemClock().now), CollectorRegistry()
    chosen = settings(
        providers=trusted(**more),
        group_bindings=(GroupBinding(issuer=ELSEWHERE, group="ops", roles=("platform-reader",)),),
    )
    async with running(directory, fetch=issuer, settings=chosen, metrics=metrics) as identity:
        yield identity, issuer
        assert metrics.get_sample_value("remuda_external_key_refreshes_throttled_total") is not None


async def test_a_trusted_token_works_everywhere_a_token_does(tmp_path: Path) -> None:
    async with trusting_identity(tmp_path) as (identity, issuer):
        acme, other = await identity.organization("acme"), await identity.organization("other")
        await identity.member(ANN, acme, "administrator")
        client = identity.client(issuer.token("Ann@Example.com"))
        assert expect(await client.get(f"{ORGANIZATIONS}/{acme}"), 200)["metadata"]["id"] == acme
        assert expect(await client.get(f"{ORGANIZATIONS}/{other}"), 403)
        assert [each["metadata"]["id"] for each in expect(await client.get(ORGANIZATIONS), 200)] == [acme]
        info = expect(await client.get("/oauth2/v2/userinfo"), 200)
        assert (info["sub"], info["https://unikorn-cloud.org/authz"]) == (ANN, {"acctype": "user", "orgIds": [acme]})


async def test_a_token_that_does_not_hold_is_401_everywhere(tmp_path: Path) -> None:
    async with trusting_identity(tmp_path) as (identity, issuer):
        await identity.user(ANN, await identity.organization("acme"), state="suspended")
        for token in (issuer.token("eve@example.com"), issuer.token(aud="x"), issuer.token(iss="https://evil.example")):
            for path in (ORGANIZATIONS, "/api/v1/acl", "/oauth2/v2/userinfo"):
                assert expect(await identity.client(token).get(path), 401)
            reply = await identity.client().post("/oauth2/v2/token", form={**EXCHANGE, "subject_token": token})
            assert expect(reply, 401)["error"] == "access_denied"


async def test_an_issuer_that_does_not_answer_is_503(tmp_path: Path) -> None:
    async with trusting_identity(tmp_path) as (identity, issuer):
        issuer.is_down = True
        token = issuer.token(ANN)
        assert expect(await identity.client(token).get(ORGANIZATIONS), 503)
        reply = await identity.client().post("/oauth2/v2/token", form={**EXCHANGE, "subject_token": token})
        assert expect(reply, 503)


async def test_an_administrator_of_ours_is_none_when_somebody_else_says_so(tmp_path: Path) -> None:
    async with trusting_identity(tmp_path) as (identity, issuer):
        assert expect(await identity.client(identity.root).get("/api/v1/acl"), 200)["global"]
        assert expect(await identity.client(issuer.token(ROOT)).get("/api/v1/acl"), 200) == {}
        body = {"metadata": {"name": "mine"}, "spec": {"organizationType": "adhoc"}}
        assert expect(await identity.client(issuer.token(ROOT)).post(ORGANIZATIONS, body), 403)


async def test_a_passport_says_who_vouched_and_has_no_groups(tmp_path: Path) -> None:
    async with trusting_identity(tmp_path, allow_external_identity=True) as (identity, issuer):
        acme = await identity.organization("acme")
        token = issuer.token("eve@example.com", **{GROUPS: ["ops"]})
        assert expect(await identity.client(token).get(f"{ORGANIZATIONS}/{acme}"), 200)
        form = {**EXCHANGE, "subject_token": token}
        passport = expect(await identity.client().post("/oauth2/v2/token", form=form), 200)["access_token"]
        said = msgspec.json.decode(base64.urlsafe_b64decode(passport.split(".")[1] + "=="))
        assert (said["source"], said["src_iss"]) == (provider_id("staff"), ELSEWHERE)
        assert (said["sub"], said["email"], said["acctype"]) == ("eve@example.com", "eve@example.com", "user")
        assert said["org_ids"] == []
        assert "ops" not in str(said)
        reply = await identity.client().post("/oauth2/v2/token", form={**form, "x_organization_id": acme})
        assert expect(reply, 400)["error"] == "invalid_scope"
        assert expect(await identity.client(passport).get(ORGANIZATIONS), 401)


async def test_a_configured_secret_is_in_no_byte_of_the_store(tmp_path: Path) -> None:
    google = PlatformProvider(
        issuer="https://accounts.google.com", client_id="client-in-the-clear", client_secret=Secret("canary-of-google")
    )
    async with running(tmp_path, settings=settings(providers={"google": google})) as identity:
        (stored,) = (await identity.store.list(OAuth2Provider)).items
        assert stored.spec.client_secret == Secret("canary-of-google")
    assert is_written(tmp_path, b"client-in-the-clear")
    assert not is_written(tmp_path, b"canary-of-google")


def is_written(directory: Path, text: bytes) -> bool:
    return any(text in path.read_bytes() for path in directory.iterdir())


async def test_only_providers_to_log_in_at_are_listed(tmp_path: Path) -> None:
    google = PlatformProvider(issuer="https://accounts.google.com", type="google", client_id="us")
    async with running(tmp_path, settings=settings(providers={"google": google, **trusted()})) as identity:
        (listed,) = expect(await identity.client(identity.root).get("/api/v1/oauth2providers"), 200)
        assert (listed["metadata"]["name"], listed["metadata"]["id"]) == ("google", provider_id("google"))
        assert listed["spec"] == {"issuer": google.issuer, "type": "google", "clientID": "us"}


async def test_a_provider_that_is_configured_no_more_is_gone_with_the_next_start(tmp_path: Path) -> None:
    issuer = Issuer(SystemClock().now)
    async with running(tmp_path, fetch=issuer, settings=settings(providers=trusted())) as identity:
        await identity.member(ANN, await identity.organization("acme"))
        assert expect(await identity.client(issuer.token(ANN)).get(ORGANIZATIONS), 200)
        assert [each.spec.issuer for each in (await identity.store.list(OAuth2Provider)).items] == [ELSEWHERE]
    async with running(tmp_path, fetch=issuer) as identity:
        assert expect(await identity.client(issuer.token(ANN)).get(ORGANIZATIONS), 401)
        assert (await identity.store.list(OAuth2Provider)).items == []
