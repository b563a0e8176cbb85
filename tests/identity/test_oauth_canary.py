"""No secret of tokens and logins is in a byte of the database, a line of the log, or an answer that rejects it."""

import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from remuda.identity.kinds.tokens import SigningKey
from remuda.identity.tokens.keys import NAME
from tests.kit.identity.oauth import FORM, VERIFIER, App, OAuthEnvironment, answer
from tests.kit.identity.oauth_clients import CLIENTS, wanted
from tests.kit.identity.resource_api import everywhere
from tests.kit.store.disguises import disguises


@pytest.fixture
def output(capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> Iterator[list[str]]:
    """Collect the secrets of a test, and look for them in all that was printed or logged."""
    secrets: list[str] = []
    caplog.set_level(logging.DEBUG)
    with structlog.testing.capture_logs() as events:
        yield secrets
    printed = capfd.readouterr()
    assert secrets
    assert_unseen("the output", "\n".join([repr(events), caplog.text, printed.out, printed.err]).encode(), secrets)


def assert_unseen(where: str, content: bytes, secrets: list[str]) -> None:
    for secret in secrets:
        for disguise in disguises(secret):
            assert disguise not in content, f"a secret is in {where}"


async def assert_unstored(oauth: OAuthEnvironment, secrets: list[str]) -> None:
    files = [path for path in oauth.world.disk.directory.rglob("*") if path.is_file()]
    assert {"remuda.db", "remuda.db-wal"} <= {path.name for path in files}
    for path in files:
        assert_unseen(path.name, path.read_bytes(), secrets)


async def used_secrets(oauth: OAuthEnvironment) -> list[str]:
    """Use every kind of secret once, and return them."""
    admin = oauth.mounted.ask(everywhere("operator@example.com", "identity:oauth2providers CRUD"))
    made = answer(await admin.post(CLIENTS, wanted()))
    app = App(made["metadata"]["id"], made["status"]["clientSecret"])
    rotated = answer(await admin.post(f"{CLIENTS}/{app.id}/rotate"))["status"]["clientSecret"]
    secrets, app = [app.secret, rotated], App(app.id, rotated)
    ann = await oauth.user("ann@example.com")
    code = await oauth.code(ann, app)
    tokens: dict[str, Any] = answer(await oauth.redeem(code, app))
    following = answer(await oauth.refresh(tokens["refresh_token"], app))
    codes = answer(await oauth.post("/oauth2/v2/device_authorization", app.proof))
    await oauth.oauth.devices.approve(codes["user_code"], user=ann.name)
    account = await oauth.api.tokens.issue_for_account(ann.name, "some-organization")
    await oauth.post("/oauth2/v2/revoke", {"token": tokens["access_token"], **app.proof})
    (key,) = (await oauth.store.get(SigningKey, NAME)).spec.private_keys
    pem = "".join(key.pem.reveal().splitlines()[1:-1])
    both = [each[name] for each in (tokens, following) for name in ("access_token", "refresh_token")]
    secrets += [code, VERIFIER, tokens["id_token"], *both, codes["device_code"], account.token.reveal(), pem]
    return [*secrets, *(each.split(".")[-1] for each in both), codes["user_code"]]


async def test_no_secret_is_in_a_file_of_the_store_or_in_the_output(oauth: OAuthEnvironment, output: list[str]) -> None:
    output.extend(await used_secrets(oauth))
    await assert_unstored(oauth, output)


async def test_no_rejection_repeats_what_was_sent(oauth: OAuthEnvironment, output: list[str]) -> None:
    canary = "canary-7f3a9c-of-the-lazy-S-that-nobody-may-see"
    output.append(canary)
    forms: list[dict[str, str]] = [
        {"grant_type": canary},
        {"grant_type": "authorization_code", "code": canary, "redirect_uri": canary, "client_id": canary},
        {"grant_type": "refresh_token", "refresh_token": canary, "client_id": "x", "client_secret": canary},
        {"grant_type": "client_credentials", "client_assertion": canary, "client_assertion_type": canary},
        {"grant_type": "urn:ietf:params:oauth:grant-type:device_code", "device_code": canary, "client_id": canary},
        {"grant_type": "urn:ietf:params:oauth:grant-type:token-exchange", "subject_token": canary},
        {"code": canary, "client_secret": canary},
    ]
    replies = [await oauth.token(form) for form in forms]
    replies += [await oauth.token(forms[1], authorization=f"{scheme} {canary}") for scheme in ("Basic", "Bearer")]
    replies.append(await oauth.userinfo(canary))
    replies.append(
        await oauth.anybody.send(
            "POST", "/oauth2/v2/token", query={"code": canary}, body=b"grant_type=x", headers={"content_type": FORM}
        )
    )
    for path in ("revoke", "introspect"):
        replies.append(await oauth.post(f"/oauth2/v2/{path}", {"token": canary, "client_id": canary}))
    for reply in replies:
        assert reply.status in {400, 401}
        assert_unseen("an answer", reply.body + repr(reply.headers).encode(), [canary])
    await assert_unstored(oauth, [canary])


async def test_the_search_would_find_a_secret_that_was_stored(oauth: OAuthEnvironment, output: list[str]) -> None:
    output.append("no such thing")
    await oauth.user("canary@example.com")
    with pytest.raises(AssertionError, match="a secret is in remuda"):
        await assert_unstored(oauth, ["canary@example.com"])
