"""Registered clients: operators register, change and forget them, and each secret is shown once."""

from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from joserfc.jwk import ECKey

from remuda.identity.kinds.oauth import OAuth2Client, OAuth2ClientSpec
from remuda.identity.oauth.clients import CLI, allows_redirect, seed_clients
from remuda.resources.conventions import NAME
from remuda.store.objects import Metadata
from tests.kit.asgi.client import Client
from tests.kit.identity.oauth import CALLBACK, App, OAuthEnvironment, answer, rejection
from tests.kit.identity.oauth_clients import CLIENTS, wanted
from tests.kit.identity.resource_api import everywhere, member

KEY = ECKey.generate_key("P-256").as_pem(private=False).decode()


SHORT = (
    rsa.generate_private_key(65537, 1024)
    .public_key()
    .public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    .decode()
)


def operator(oauth: OAuthEnvironment) -> Client:
    return oauth.mounted.ask(everywhere("operator@example.com", "identity:oauth2providers CRUD"))


async def test_a_client_is_registered_and_logs_users_in_with_the_secret_that_is_shown_once(
    oauth: OAuthEnvironment,
) -> None:
    admin = operator(oauth)
    made = await admin.post(CLIENTS, wanted(loginUri="https://app.example.com/login"))
    assert made.status == 201
    body = answer(made)
    app = App(body["metadata"]["id"], body["status"]["clientSecret"])
    await oauth.log_in(await oauth.user("ann@example.com"), app)
    read = await admin.get(f"{CLIENTS}/{app.id}")
    assert "status" not in answer(read)
    assert answer(read)["spec"] == {
        "redirectUris": [CALLBACK],
        "loginUri": "https://app.example.com/login",
    }
    assert app.secret not in read.body.decode()
    assert app.secret not in (await admin.get(CLIENTS)).body.decode()


async def test_a_rotated_secret_replaces_the_old_one(oauth: OAuthEnvironment) -> None:
    admin, ann = operator(oauth), await oauth.user("ann@example.com")
    body = answer(await admin.post(CLIENTS, wanted()))
    old = App(body["metadata"]["id"], body["status"]["clientSecret"])
    body = answer(await admin.post(f"{CLIENTS}/{old.id}/rotate"))
    new = App(old.id, body["status"]["clientSecret"])
    code = await oauth.code(ann, old)
    assert rejection(await oauth.redeem(code, old)) == (401, "access_denied")
    assert (await oauth.redeem(code, new)).status == 200


async def test_a_public_client_and_one_with_a_key_have_no_secret(oauth: OAuthEnvironment) -> None:
    admin = operator(oauth)
    for spec in ({"isPublic": True}, {"publicKey": KEY}):
        assert answer(await admin.post(CLIENTS, wanted(**spec)))["status"] == {}
    public = answer(await admin.post(CLIENTS, wanted(isPublic=True)))["metadata"]["id"]
    assert (await admin.post(f"{CLIENTS}/{public}/rotate")).status == 422


async def test_a_change_keeps_the_secret_unless_the_client_becomes_public(oauth: OAuthEnvironment) -> None:
    admin, ann = operator(oauth), await oauth.user("ann@example.com")
    body = answer(await admin.post(CLIENTS, wanted()))
    app = App(body["metadata"]["id"], body["status"]["clientSecret"])
    path = f"{CLIENTS}/{app.id}"
    changed = await admin.put(path, wanted(redirectUris=[CALLBACK, "https://other.example.com/"]))
    assert answer(changed)["spec"]["redirectUris"] == [CALLBACK, "https://other.example.com/"]
    await oauth.log_in(ann, app)
    without = answer(await admin.put(path, wanted(isChallengeOptional=True)))
    assert without["spec"]["isChallengeOptional"] is True
    assert "isChallengeOptional" not in answer(await admin.put(path, wanted()))["spec"]
    assert (await admin.put(path, wanted(), if_match='"stale"')).status == 412
    assert (await admin.put(path, wanted(isPublic=True))).status == 200
    assert rejection(await oauth.redeem(await oauth.code(ann, app), app)) == (401, "access_denied")
    await oauth.log_in(ann, App(app.id))


async def test_a_forgotten_client_logs_nobody_in_and_refreshes_nothing(oauth: OAuthEnvironment) -> None:
    admin, ann = operator(oauth), await oauth.user("ann@example.com")
    body = answer(await admin.post(CLIENTS, wanted()))
    app = App(body["metadata"]["id"], body["status"]["clientSecret"])
    tokens = await oauth.log_in(ann, app)
    assert (await admin.delete(f"{CLIENTS}/{app.id}")).status == 204
    assert rejection(await oauth.refresh(tokens["refresh_token"], app)) == (401, "access_denied")
    assert (await admin.get(f"{CLIENTS}/{app.id}")).status == 404
    assert (await admin.delete(f"{CLIENTS}/{app.id}")).status == 404


@pytest.mark.parametrize(
    "spec",
    [
        {"redirectUris": ["/callback"]},
        {"redirectUris": ["app.example.com/callback"]},
        {"redirectUris": ["http://app.example.com/callback"]},
        {"redirectUris": ["https://app.example.com/callback#here"]},
        {"redirectUris": ["https://app.example.com/callback#"]},
        {"redirectUris": ["https://*.example.com/callback"]},
        {"redirectUris": ["https://user@app.example.com/callback"]},
        {"redirectUris": ["javascript:alert(1)"]},
        {"redirectUris": ["https://app.example.com/\\evil"]},
        {"redirectUris": ["https://[broken/"]},
        {"redirectUris": ["https://äpp.example.com/"]},
        {"loginUri": "http://app.example.com/login"},
        {"publicKey": "no key"},
        {"publicKey": SHORT},
        {"publicKey": ECKey.generate_key("P-256").as_pem(private=True).decode()},
        {"publicKey": KEY, "isPublic": True},
        {"isChallengeOptional": True, "isPublic": True},
    ],
)
async def test_a_client_that_makes_no_sense_is_not_registered(oauth: OAuthEnvironment, spec: dict[str, Any]) -> None:
    admin = operator(oauth)
    assert (await admin.post(CLIENTS, wanted(**spec))).status == 422
    assert not (await oauth.store.list(OAuth2Client)).items


async def test_only_who_has_the_right_everywhere_may_register_clients(oauth: OAuthEnvironment) -> None:
    made = answer(await operator(oauth).post(CLIENTS, wanted()))["metadata"]["id"]
    reader = oauth.mounted.ask(everywhere("reader@example.com", "identity:oauth2providers R"))
    assert (await reader.get(CLIENTS)).status == 200
    tenant = oauth.mounted.ask(member("ann@example.com", text="identity:oauth2providers CRUD"))
    path = f"{CLIENTS}/{made}"
    for client in (reader, tenant):
        assert (await client.post(CLIENTS, wanted())).status == 403
        assert (await client.put(path, wanted())).status == 403
        assert (await client.post(f"{path}/rotate")).status == 403
        assert (await client.delete(path)).status == 403
    assert (await tenant.get(CLIENTS)).status == 403
    assert (await tenant.get(path)).status == 403
    assert (await oauth.anybody.get(CLIENTS)).status == 401


async def test_the_built_in_client_is_there_after_every_start_and_cannot_be_changed(oauth: OAuthEnvironment) -> None:
    await seed_clients(oauth.store)
    first = await oauth.store.get(OAuth2Client, CLI)
    await seed_clients(oauth.store)
    assert await oauth.store.get(OAuth2Client, CLI) == first
    admin = operator(oauth)
    assert answer(await admin.get(f"{CLIENTS}/{CLI}"))["spec"]["isPublic"] is True
    assert (await admin.put(f"{CLIENTS}/{CLI}", wanted())).status == 403
    assert (await admin.delete(f"{CLIENTS}/{CLI}")).status == 403
    assert (await admin.post(f"{CLIENTS}/{CLI}/rotate")).status == 403


def client(*redirects: str) -> OAuth2Client:
    spec = OAuth2ClientSpec(redirect_uri=redirects[0], redirect_uris=redirects[1:])
    return OAuth2Client(metadata=Metadata(name="app", labels={NAME: "app"}), spec=spec)


@pytest.mark.parametrize(
    ("uri", "is_allowed"),
    [
        ("https://app.example.com/a", True),
        ("https://app.example.com/b?x=1", True),
        ("http://127.0.0.1/callback", True),
        ("http://127.0.0.1:51234/callback", True),
        ("http://[::1]:51234/callback", True),
        ("https://app.example.com/a/", False),
        ("https://app.example.com/A", False),
        ("https://app.example.com:444/a", False),
        ("https://app.example.com/a?", False),
        ("https://app.example.com@evil.example.com/a", False),
        ("https://app.example.com.evil.example.com/a", False),
        ("http://app.example.com/a", False),
        ("http://127.0.0.1:51234/callback?x=1", False),
        ("http://127.0.0.1:51234/other", False),
        ("http://127.0.0.1:51234@evil.example.com/callback", False),
        ("http://127.0.0.1:99999999/callback", False),
        ("http://127.0.0.1:/callback", False),
        ("https://127.0.0.1:51234/callback", False),
        ("http://127.0.0.2:51234/callback", False),
        ("http://127.0.0.1:51234/callback\r\nx", False),
        ("", False),
    ],
)
def test_browsers_are_sent_to_registered_addresses_alone(uri: str, is_allowed: bool) -> None:  # noqa: FBT001  a case
    registered = client(
        "https://app.example.com/a",
        "https://app.example.com/b?x=1",
        "http://127.0.0.1/callback",
        "http://[::1]/callback",
    )
    assert allows_redirect(registered, uri) is is_allowed
