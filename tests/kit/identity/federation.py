"""Logins at an external OpenID provider."""

from typing import Any

from joserfc.jwk import RSAKey

from remuda.kernel.secrets import Secret
from tests.kit.asgi.contract import Reply
from tests.kit.identity.login import JO, Browser, LoginEnvironment, run_login
from tests.kit.identity.openid_provider import CLIENT, IDP, SECRET, Provider

GOOGLE = "d1111111-0000-4000-8000-000000000001"
OWN = "d1111111-0000-4000-8000-000000000002"
ORG = "c0000000-0000-4000-8000-000000000003"
OTHER_ORG = "c0000000-0000-4000-8000-000000000004"
THEIRS: dict[str, Any] = {"issuer": IDP, "client_id": CLIENT, "client_secret": Secret(SECRET)}
KEY = RSAKey.generate_key(2048, {"kid": "one"})


def federated(scenario: Any, *, provider: Provider | None = None, **settings: Any) -> None:
    """Run a scenario with a provider of the whole system that knows Jo."""
    upstream = provider or Provider(key=KEY)

    async def run(logins: LoginEnvironment) -> None:
        upstream.clock = logins.world.clock
        await logins.provider(GOOGLE, type="google", **THEIRS)
        await scenario(logins, upstream)

    run_login(run, fetch=upstream, **settings)


async def depart(logins: LoginEnvironment, provider: str = GOOGLE, **asked: str) -> tuple[Browser, Reply]:
    browser, email = logins.browser(), JO if provider == OWN else ""
    return browser, await browser.submit(await browser.authorize(**asked), email=email, password="", provider=provider)


async def come_back(browser: Browser, upstream: Provider, gone: Reply) -> Reply:
    return await browser.get("/oidc/callback", upstream.authorize(gone.headers["location"]))


async def log_in(logins: LoginEnvironment, upstream: Provider, provider: str = GOOGLE) -> Reply:
    browser, gone = await depart(logins, provider)
    return await come_back(browser, upstream, gone)
