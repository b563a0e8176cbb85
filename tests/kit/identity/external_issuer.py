"""An external issuer of bearer tokens, which signs whatever a test wants; and an identity that may trust it.

::

    async def test_…(external_issuer: IssuerEnvironment) -> None:
        await external_issuer.trust()
        principal = await external_issuer.let_in(external_issuer.issuer.token("ann@example.com"))
"""

import base64
import hmac
from collections.abc import Callable, Coroutine
from datetime import datetime
from functools import cache
from typing import Any

import msgspec
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from joserfc.jwk import ECKey, RSAKey
from joserfc.jws import JWSRegistry, serialize_compact
from prometheus_client import CollectorRegistry

from remuda.identity.federation.bearer_tokens import ExternalBearers
from remuda.identity.kinds.oauth import BearerTrust, OAuth2Provider, OAuth2ProviderSpec
from remuda.identity.ports import Fetched
from remuda.identity.settings import IdentitySettings
from remuda.kernel.errors import RemudaError, ServerUnreachable, Unauthenticated
from remuda.resources.conventions import NAME, ORGANIZATION
from remuda.store.objects import Metadata
from remuda.store.sqlite.store import SqliteStore
from tests.kit.identity.authenticator import AuthenticatorEnvironment
from tests.kit.identity.permissions import run_environment
from tests.kit.simulation.runner import World

ELSEWHERE = "https://login.example"
AUDIENCE = "https://cloud.example"
CLAIMS = "https://unikorn-cloud.org"
GROUPS = "https://example.com/groups"
FIRST = "d1111111-0000-4000-8000-000000000001"
SECOND = "d1111111-0000-4000-8000-000000000002"


@cache
def key(kind: str = "RSA", kid: str = "one", *, bits: int = 2048) -> Any:
    """Return a key pair, the same each time: RSA, or the name of a curve."""
    return RSAKey.generate_key(bits, {"kid": kid}) if kind == "RSA" else ECKey.generate_key(kind, {"kid": kid})


def published(pair: Any, **more: Any) -> dict[str, Any]:
    """Return a key as a JWKS has it; None leaves something out."""
    told = {**pair.as_dict(private=False), **more}
    return {name: value for name, value in told.items() if value is not None}


class Issuer:
    """Signs tokens, and answers as `Fetch` does."""

    def __init__(self, now: Callable[[], datetime], url: str = ELSEWHERE) -> None:
        self.now, self.url = now, url
        self.pages: dict[str, Any] = {}
        """What it answers, by the path below its issuer."""
        self.asked: list[str] = []
        self.is_down = False
        self.publish(published(key()))

    def publish(self, *keys: dict[str, Any]) -> None:
        self.pages["/.well-known/jwks.json"] = {"keys": keys}

    async def __call__(
        self, method: str, url: str, headers: dict[str, str], body: bytes | None, *, organization: str
    ) -> Fetched:
        assert (method, headers, body, organization) == ("GET", {"Accept": "application/json"}, None, "")
        self.asked.append(url)
        if self.is_down:
            raise ServerUnreachable("login.example", "it is down")
        page = self.pages.get(url.removeprefix(self.url.removesuffix("/")))
        if page is None:
            return Fetched(status=404, body=b"")
        return Fetched(status=200, body=page if isinstance(page, bytes) else msgspec.json.encode(page))

    def claims(self, email: str, /, **more: Any) -> dict[str, Any]:
        """Return good claims, but for what is given; None leaves one out."""
        now = int(self.now().timestamp())
        said = {
            "iss": self.url,
            "sub": "42",
            "aud": AUDIENCE,
            "iat": now,
            "nbf": now,
            "exp": now + 3600,
            f"{CLAIMS}/email": email,
            f"{CLAIMS}/email_verified": True,
        }
        return {name: value for name, value in (said | more).items() if value is not None}

    def token(self, email: str = "ann@example.com", alg: str = "RS256", by: Any = None, /, **more: Any) -> str:
        """Return a token for an address, signed by a key of ours or by another one."""
        return signed({"alg": alg, "kid": "one"}, self.claims(email, **more), by or key())


def signed(header: dict[str, Any], claims: Any, by: Any) -> str:
    """Sign as it should be done."""
    head = {name: value for name, value in header.items() if value is not None}
    registry = JWSRegistry(algorithms=[header["alg"]], strict_check_header=False)
    return serialize_compact(head, msgspec.json.encode(claims), by, registry=registry)


def forged(header: dict[str, Any], claims: Any, by: Any) -> str:
    """Sign as no decent library would: with nothing, the public key as a secret, any curve, under any header."""
    text = ".".join(_base64(msgspec.json.encode(part)) for part in (header, claims))
    match header["alg"]:
        case "none":
            made = b""
        case "HS256":
            made = hmac.digest(by.as_pem(private=False), text.encode(), "sha256")
        case "ES256":
            halves = decode_dss_signature(by.private_key.sign(text.encode(), ECDSA(SHA256())))
            made = b"".join(half.to_bytes((by.curve_key_size + 7) // 8) for half in halves)
        case _:
            made = by.private_key.sign(text.encode(), PKCS1v15(), SHA256())
    return f"{text}.{_base64(made)}"


def _base64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def trusted(name: str = FIRST, *, issuer: str = ELSEWHERE, organization: str = "", **trust: Any) -> OAuth2Provider:
    """Return a provider whose tokens are believed."""
    labels = {NAME: "elsewhere", **({ORGANIZATION: organization} if organization else {})}
    spec = OAuth2ProviderSpec(issuer=issuer, bearer_trust=BearerTrust(**{"audience": AUDIENCE} | trust))
    return OAuth2Provider(metadata=Metadata(name=name, labels=labels), spec=spec)


class IssuerEnvironment(AuthenticatorEnvironment):
    """An authenticator that knows external issuers, and one of those."""

    def __init__(self, world: World, store: SqliteStore, settings: IdentitySettings) -> None:
        self.issuer = Issuer(world.clock.now)
        self.metrics = CollectorRegistry()
        self.external = ExternalBearers(
            store=store, clock=world.clock, settings=settings, fetch=self._fetch, metrics=self.metrics
        )
        self.others: list[Issuer] = []
        super().__init__(world, store, settings, self.external)

    async def _fetch(
        self, method: str, url: str, headers: dict[str, str], body: bytes | None, *, organization: str
    ) -> Fetched:
        (asked,) = [each for each in (self.issuer, *self.others) if url.startswith(each.url)]
        return await asked(method, url, headers, body, organization=organization)

    async def trust(
        self, name: str = FIRST, *, issuer: str = ELSEWHERE, organization: str = "", **trust: Any
    ) -> OAuth2Provider:
        """Let an issuer's tokens be believed."""
        return await self.store.create(trusted(name, issuer=issuer, organization=organization, **trust))

    async def rejection(self, token: str) -> str:
        """Return why a token is refused."""
        error = await self.error(token)
        assert isinstance(error, Unauthenticated), error
        return error.message

    async def error(self, token: str) -> RemudaError:
        try:
            await self.let_in(token)
        except RemudaError as error:
            return error
        raise AssertionError("the token was let in")

    def counted(self, name: str, **labels: str) -> float:
        """Return what a metric says."""
        return self.metrics.get_sample_value(name, labels) or 0.0


def run_external_issuer(
    scenario: Callable[[IssuerEnvironment], Coroutine[Any, Any, None]], *, seed: int = 5, **settings: Any
) -> None:
    """Run a scenario in simulated time; `settings` are those of identity that it wants otherwise."""
    run_environment(IssuerEnvironment, scenario, seed=seed, **settings)
