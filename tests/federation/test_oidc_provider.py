"""Logging in at an OpenID provider that we did not write, from the first page to a token that is good."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urljoin

import httpx2
import pytest

from remuda.identity.kinds.oauth import BrowserLogin
from tests.federation.openid_provider import (
    CALLBACK,
    CLIENT,
    PROVIDER,
    SECRET,
    Ours,
    Wanderer,
    install,
    providing,
    query_of,
    serving,
)
from tests.kit.identity.login import CONSOLE, CONSOLE_SECRET

pytestmark = pytest.mark.federation

ACCOUNTS = {
    "jo": {"email": "Jo@Example.com", "email_verified": True},
    "unverified": {"email": "jo@example.com", "email_verified": False},
    "silent": {},
    "stranger": {"email": "stranger@example.com", "email_verified": True},
    "gone": {"email": "gone@example.com", "email_verified": True},
}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(tmp_path_factory.mktemp("provider"))


@asynccontextmanager
async def federation(installed: Path, directory: Path, **more: Any) -> AsyncIterator[Ours]:
    async with serving(directory) as ours:
        client = {"client_id": CLIENT, "client_secret": SECRET, "redirect_uris": [f"{ours.issuer}/oidc/callback"]}
        usual = {"client": client, "accounts": ACCOUNTS, "inIdToken": True, "authMethod": "client_secret_basic"}
        async with providing(installed, usual | more) as issuer:
            await ours.knows(issuer)
            yield ours


def request(ours: Ours) -> str:
    asked = {
        "client_id": CONSOLE,
        "redirect_uri": CALLBACK,
        "response_type": "code",
        "scope": "openid email",
        "state": "s",
        "nonce": "n",
    }
    return f"{ours.issuer}/oauth2/v2/authorization?{urlencode(asked)}"


async def at_provider(browser: Wanderer, ours: Ours, until: str = CALLBACK) -> httpx2.Response:
    """Choose the provider on our page, and return its login page, or what leads to `until`."""
    page = await browser.get(request(ours))
    assert page.status_code == 200
    return await browser.submit(page, until, provider=PROVIDER)


async def through(browser: Wanderer, page: httpx2.Response, login: str) -> httpx2.Response:
    """Log in and consent at the provider, and return what leads back to the console."""
    consent = await browser.submit(page, login=login, password="any password")
    return await browser.submit(consent, prompt="consent")


async def userinfo(browser: Wanderer, ours: Ours, code: str) -> httpx2.Response:
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": CALLBACK,
        "client_id": CONSOLE,
        "client_secret": CONSOLE_SECRET,
    }
    tokens = await browser.http.post(f"{ours.issuer}/oauth2/v2/token", data=form)
    assert tokens.status_code == 200, tokens.text
    authorization = {"Authorization": f"Bearer {tokens.json()['access_token']}"}
    return await browser.http.get(f"{ours.issuer}/oauth2/v2/userinfo", headers=authorization)


@pytest.mark.parametrize("in_id_token", [True, False], ids=["address in the ID token", "address from userinfo"])
@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
async def test_somebody_logs_in_to_the_end(installed: Path, tmp_path: Path, *, in_id_token: bool, method: str) -> None:
    async with federation(installed, tmp_path, inIdToken=in_id_token, authMethod=method) as ours, Wanderer() as browser:
        answer = await through(browser, await at_provider(browser, ours), "jo")
        sent = query_of(answer)
        assert (sent["state"], sent["iss"]) == ("s", ours.issuer)
        told = await userinfo(browser, ours, sent["code"])
        assert told.json()["sub"] == "jo@example.com"
        again = await browser.get(f"{request(ours)}&prompt=none")
        assert "code" in query_of(again)


@pytest.mark.parametrize(
    ("login", "words"),
    [
        ("unverified", "has not verified"),
        ("silent", "does not send"),
        ("stranger", "user not found"),
        ("gone", "user is not active"),
    ],
)
async def test_who_is_not_let_in(installed: Path, tmp_path: Path, login: str, words: str) -> None:
    async with federation(installed, tmp_path) as ours, Wanderer() as browser:
        answer = await through(browser, await at_provider(browser, ours), login)
        sent = query_of(answer)
        assert (sent["error"], sent["state"]) == ("access_denied", "s")
        assert words in sent["error_description"]
        assert not (await ours.store.list(BrowserLogin)).items


async def test_an_id_token_of_another_login_is_not_believed(installed: Path, tmp_path: Path) -> None:
    async with federation(installed, tmp_path) as ours, Wanderer() as browser:
        gone = await at_provider(browser, ours, until="http")
        changed, count = re.subn(r"nonce=[^&]+", "nonce=another", gone.headers["location"])
        assert count == 1
        answer = await through(browser, await browser.get(changed), "jo")
        assert query_of(answer)["error"] == "server_error"
        assert "of another login" in query_of(answer)["error_description"]


async def test_a_code_verifier_of_another_login_is_refused_by_the_provider(installed: Path, tmp_path: Path) -> None:
    async with federation(installed, tmp_path) as ours, Wanderer() as browser:
        gone = await at_provider(browser, ours, until="http")
        changed = re.sub(r"code_challenge=[^&]+", f"code_challenge={'x' * 43}", gone.headers["location"])
        answer = await through(browser, await browser.get(changed), "jo")
        assert query_of(answer)["error"] == "server_error"


async def test_the_way_back_is_no_way_for_another_browser(installed: Path, tmp_path: Path) -> None:
    async with federation(installed, tmp_path) as ours, Wanderer() as browser, Wanderer() as victim:
        page = await at_provider(browser, ours)
        consent = await browser.submit(page, login="jo", password="any password")
        back = await browser.submit(consent, until=f"{ours.issuer}/oidc/callback", prompt="consent")
        await victim.get(request(ours))
        assert (await victim.http.get(back.headers["location"])).status_code == 400
        assert "code" in query_of(await browser.http.get(back.headers["location"]))
        assert (await browser.http.get(back.headers["location"])).status_code == 400


async def test_who_says_no_at_the_provider_comes_back_refused(installed: Path, tmp_path: Path) -> None:
    async with federation(installed, tmp_path) as ours, Wanderer() as browser:
        page = await at_provider(browser, ours)
        (abort,) = {*re.findall(r'href="([^"]+/abort)"', page.text)}
        answer = await browser.get(urljoin(str(page.url), abort))
        assert query_of(answer)["error"] == "access_denied"
