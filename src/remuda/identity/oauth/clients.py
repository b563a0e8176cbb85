"""Registered clients: authentication and redirect URIs.

A client authenticates with a secret (Basic or form) or with a signed assertion (RFC 7523); a public client sends its id
only. Two methods in one request are an error. An assertion is issued by its own subject, addressed to us, valid for at
most five minutes, and accepted once: its `jti` is stored. Its algorithm follows from the registered key, never from the
assertion.

Redirect URIs are compared as strings. Only for a loopback address registered without a port is any port accepted (RFC
8252).
"""

import base64
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from urllib.parse import SplitResult, urlsplit

import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, Key, OKPKey, RSAKey
from joserfc.jws import deserialize_compact

from remuda.identity.kinds.oauth import OAuth2Client, OAuth2ClientSpec, UsedAssertion, UsedAssertionSpec
from remuda.identity.oauth.schema import ClientForm
from remuda.identity.settings import IdentitySettings
from remuda.identity.tokens.jwt import MAX_TOKEN_BYTES, decode_unverified
from remuda.identity.tokens.secrets import is_hash_of, token_hash
from remuda.kernel.clock import Clock
from remuda.kernel.errors import AlreadyExists, Invalid, OAuthError
from remuda.kernel.percent_encoding import percent_decoded
from remuda.kernel.secrets import Secret
from remuda.resources.conventions import NAME
from remuda.resources.crud import each_once, find, find_by_index, seed
from remuda.store.contract import Store
from remuda.store.objects import Metadata

ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
"""Value that `client_assertion_type` must have."""

_MAX_LIFETIME = timedelta(minutes=5)
_LEEWAY = timedelta(seconds=5)
_MAX_ID_LENGTH = 255
_MAX_BASIC_LENGTH = 16 * 1024
_CURVES = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}
_RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_MIN_RSA_BITS = 2048

ALGORITHMS = (*_CURVES.values(), *_RSA, "Ed25519")
"""Algorithms with which an assertion can be signed."""


@dataclass(frozen=True, slots=True)
class PublicKey:
    """Registered key, and the algorithms that it can verify."""

    key: Key
    algorithms: tuple[str, ...]


class _Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"x5t256": "x5t#S256"}):
    alg: str
    typ: str = ""
    kid: str = ""
    x5t: str = ""
    x5t256: str = ""


class _AssertionClaims(msgspec.Struct, frozen=True):
    iss: str
    sub: str
    aud: str | tuple[str, ...]
    exp: float
    jti: str
    iat: float | None = None
    nbf: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Assertions:
    """Verifier of signed assertions."""

    store: Store
    clock: Clock
    settings: IdentitySettings

    async def verify(self, assertion: Secret, assertion_type: str) -> str:
        """Return the id of the service or client that signed the assertion, or raise OAuthError. Accept it once."""
        if assertion_type != ASSERTION_TYPE:
            raise OAuthError("invalid_request", f"client_assertion_type is not supported: use {ASSERTION_TYPE}")
        claims = await self._claims(assertion, partial(find, self.store, OAuth2Client, include_deleting=False))
        if claims is None:
            raise _invalid_assertion()
        await self._record_use(claims)
        return claims.sub

    async def sender(self, assertion: Secret) -> str:
        """Return the id of the service or client that signed the assertion, used or not; empty if it is not valid."""
        claims = await self._claims(assertion, partial(_find_indexed, self.store))
        return "" if claims is None else claims.sub

    async def _claims(self, assertion: Secret, find_client: "_FindClient") -> _AssertionClaims | None:
        token = assertion.reveal()
        unverified = _unverified(token)
        key = await self._key_of(unverified.sub, find_client) if unverified is not None else None
        claims = _verified(token, key) if key is not None else None
        if claims is None or claims.iss != claims.sub or not self._is_for_us(claims) or not self._is_timely(claims):
            return None
        return claims

    async def _key_of(self, sender: str, find_client: "_FindClient") -> PublicKey | None:
        account = self.settings.system_accounts.get(sender)
        if account is not None:
            return load_public_key(account.public_key) if account.public_key else None
        client = await find_client(sender)
        return load_public_key(client.spec.public_key) if client is not None and client.spec.public_key else None

    def _is_for_us(self, claims: _AssertionClaims) -> bool:
        issuer = self.settings.issuer
        audiences = (claims.aud,) if isinstance(claims.aud, str) else claims.aud
        return issuer in audiences or f"{issuer}/oauth2/v2/token" in audiences

    def _is_timely(self, claims: _AssertionClaims) -> bool:
        now = self.clock.now().timestamp()
        begins = max(claims.iat or 0, claims.nbf or 0)
        ends_in_time = now < claims.exp <= now + (_MAX_LIFETIME + _LEEWAY).total_seconds()
        return ends_in_time and begins <= now + _LEEWAY.total_seconds() and 0 < len(claims.jti) <= _MAX_ID_LENGTH

    async def _record_use(self, claims: _AssertionClaims) -> None:
        expires = datetime.fromtimestamp(claims.exp, UTC)
        name = token_hash(msgspec.json.encode([claims.sub, claims.jti]).decode())
        used = UsedAssertion(metadata=Metadata(name=name), spec=UsedAssertionSpec(expires=expires))
        try:
            await self.store.create(used)
        except AlreadyExists:
            raise _invalid_assertion() from None


_FindClient = Callable[[str], Awaitable[OAuth2Client | None]]


async def _find_indexed(store: Store, client_id: str) -> OAuth2Client | None:
    """Return a client without asking the API server on Kubernetes, or None."""
    client = await find_by_index(store, OAuth2Client, "id", client_id)
    return None if client is None or client.is_deleting else client


def load_public_key(pem: str) -> PublicKey:
    """Return a public key that can verify assertions, or raise Invalid."""
    try:
        key = load_pem_public_key(pem.encode())
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if isinstance(key, ec.EllipticCurvePublicKey) and key.curve.name in _CURVES:
        return PublicKey(ECKey.import_key(pem), (_CURVES[key.curve.name],))
    if isinstance(key, rsa.RSAPublicKey) and key.key_size >= _MIN_RSA_BITS:
        return PublicKey(RSAKey.import_key(pem), _RSA)
    if isinstance(key, ed25519.Ed25519PublicKey):
        return PublicKey(OKPKey.import_key(pem), ("Ed25519", "EdDSA"))
    raise Invalid(
        "spec.publicKey", "is not a supported public key", remedy="send the PEM of an EC, Ed25519 or 2048-bit RSA key"
    )


def _unverified(token: str) -> _AssertionClaims | None:
    """Return the claims before verification, to find the key of the sender."""
    decoded = decode_unverified(token, _Header, _AssertionClaims, max_bytes=MAX_TOKEN_BYTES)
    return None if decoded is None else decoded[1]


def _verified(token: str, key: PublicKey) -> _AssertionClaims | None:
    try:
        payload = deserialize_compact(token, key.key, key.algorithms).payload
        return msgspec.json.decode(payload or b"", type=_AssertionClaims)
    except (JoseError, ValueError, RecursionError):
        return None


def _invalid_assertion() -> OAuthError:
    return OAuthError("access_denied", "client_assertion is not valid: sign a new one with the registered key", 401)


CLI = "remuda-cli"
"""Client id of our command line."""

_CLI_SPEC = OAuth2ClientSpec(redirect_uri="http://127.0.0.1/callback", is_public=True, is_first_party=True)
_CHALLENGE = (b"www-authenticate", b'Basic realm="remuda"')


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthClientCredentials:
    """Credentials with which a client authenticates."""

    client_id: str = ""
    secret: Secret | None = None
    assertion_type: str = ""
    assertion: Secret | None = None
    is_basic: bool = False
    """The credentials were in the Authorization header."""

    @classmethod
    def from_request(cls, form: ClientForm, authorization: str = "") -> "OAuthClientCredentials":
        """Return the credentials of a form and an Authorization header, or raise OAuthError if they conflict."""
        basic = _read_basic(authorization)
        if basic is None:
            return cls(
                client_id=form.client_id,
                secret=form.client_secret,
                assertion_type=form.client_assertion_type,
                assertion=form.client_assertion,
            )
        if form.client_secret is not None or form.client_assertion is not None:
            raise OAuthError("invalid_request", "the client authenticates twice: use the header or the form")
        if form.client_id not in {"", basic.client_id}:
            raise OAuthError("invalid_request", "client_id differs from the one in the header: send one of them")
        return basic


@dataclass(frozen=True, slots=True, kw_only=True)
class Clients:
    """Registered clients, and their authentication."""

    store: Store
    assertions: Assertions

    async def find(self, client_id: str) -> OAuth2Client | None:
        return await find(self.store, OAuth2Client, client_id, include_deleting=False)

    async def display_name(self, client_id: str) -> str:
        """Return the name of the client with this id, or the id if the client no longer exists."""
        found = await self.find(client_id)
        return client_id if found is None else found.metadata.labels.get(NAME, client_id)

    async def authenticate(self, credentials: OAuthClientCredentials) -> OAuth2Client:
        """Return the authenticated client, or raise OAuthError."""
        if credentials.assertion is not None:
            client_id = await self.assertions.verify(credentials.assertion, credentials.assertion_type)
            client = await self.find(client_id)
            if client is None or credentials.client_id not in {"", client_id}:
                raise _invalid_client(credentials)
            return client
        if not credentials.client_id:
            raise OAuthError("invalid_request", "client_id is missing: send the client's id, and its secret if any")
        client = await self.find(credentials.client_id)
        if not _is_authentic(client, credentials):
            raise _invalid_client(credentials)
        assert client is not None, "an unknown client is not authentic"
        return client

    async def recognize(self, credentials: OAuthClientCredentials) -> OAuth2Client | None:
        """Return the client if these are its credentials, or None, by an index. An assertion may be used already."""
        client_id = credentials.client_id
        if credentials.assertion is not None:
            sender = await self.assertions.sender(credentials.assertion)
            return await _find_indexed(self.store, sender) if sender and client_id in {"", sender} else None
        client = await _find_indexed(self.store, client_id)
        return client if _is_authentic(client, credentials) else None


def _is_authentic(client: OAuth2Client | None, credentials: OAuthClientCredentials) -> bool:
    """Return whether credentials without an assertion are those of a client: its secret, or none if it is public."""
    secret = credentials.secret.reveal() if credentials.secret is not None else ""
    # Compared even for an unknown client, so that response times do not reveal which clients exist.
    has_secret = is_hash_of(client.spec.secret_hash if client else "0" * 64, secret)
    return client is not None and (has_secret or (client.spec.is_public and not secret))


def accepts_logins_of(client: OAuth2Client, organization: str) -> bool:
    """Tell whether a client accepts logins at the own provider of an organization. With no organization it does."""
    return not organization or client.spec.is_first_party or organization in client.spec.organizations


def rejected_login() -> OAuthError:
    """Return the error for a login at an organization's own provider that the client does not accept."""
    return OAuthError(
        "access_denied",
        "this client accepts no logins at the provider of that organization: log in with a password or at another "
        "provider, or let a platform administrator list the organization for the client",
    )


async def seed_clients(store: Store) -> None:
    """Write the built-in clients of this release. Called at every start."""
    built_in = OAuth2Client(metadata=Metadata(name=CLI, labels={NAME: CLI}), spec=_CLI_SPEC)
    await seed(store, built_in, lambda found: msgspec.structs.replace(found, spec=_CLI_SPEC))


def _read_basic(authorization: str) -> OAuthClientCredentials | None:
    scheme, _, encoded = authorization.strip().partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        raw = base64.b64decode(encoded.strip(), validate=True) if len(encoded) <= _MAX_BASIC_LENGTH else b""
        name, colon, secret = raw.partition(b":")
        client_id, secret_text = _form_decoded(name), _form_decoded(secret)
    except ValueError:
        colon = b""
    if not colon:
        raise OAuthError("invalid_request", "the header Authorization is malformed: send Basic with id and secret")
    return OAuthClientCredentials(client_id=client_id, secret=Secret(secret_text), is_basic=True)


def _form_decoded(text: bytes) -> str:
    """Return an id or a secret, which OAuth 2 encodes as in a form. Some clients do not encode a percent sign."""
    try:
        decoded = percent_decoded(text.replace(b"+", b" "))
    except ValueError:
        decoded = text
    return decoded.decode()


def _invalid_client(credentials: OAuthClientCredentials) -> OAuthError:
    headers = (_CHALLENGE,) if credentials.is_basic else ()
    return OAuthError("access_denied", "the client is unknown, or its secret is wrong", 401, headers=headers)


_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_MAX_URI_LENGTH = 2048


def redirect_uris_of(client: OAuth2Client) -> tuple[str, ...]:
    spec = client.spec
    return each_once(filter(None, (spec.redirect_uri, *spec.redirect_uris)))


def needs_challenge(client: OAuth2Client) -> bool:
    """Tell whether the authorization requests of a client need a code challenge."""
    return client.spec.is_public or not client.spec.is_challenge_optional


def allows_redirect(client: OAuth2Client, uri: str) -> bool:
    """Tell whether a redirect URI is registered for a client."""
    registered = redirect_uris_of(client)
    return uri in registered or any(_differs_only_in_port(each, uri) for each in registered)


def check_redirect_uris(field: str, uris: tuple[str, ...]) -> None:
    """Raise Invalid unless all of these can be registered."""
    for uri in uris:
        parts = _split(uri)
        if parts is None or not parts.netloc or parts.username is not None or len(uri) > _MAX_URI_LENGTH:
            raise Invalid(field, "has a URI that is not absolute", remedy="write it as https://host/path")
        if parts.fragment or "#" in uri or "*" in uri:
            raise Invalid(field, "has a URI with '#' or '*'", remedy="list each URI, without a fragment")
        if parts.scheme != "https" and not _is_loopback(parts):
            raise Invalid(field, "has a URI without TLS", remedy="use https, or http with 127.0.0.1 or [::1]")


def _differs_only_in_port(registered: str, uri: str) -> bool:
    known, requested = _split(registered), _split(uri)
    if known is None or requested is None or not _is_loopback(known) or known.port is not None:
        return False
    host = f"[{known.hostname}]" if ":" in (known.hostname or "") else known.hostname
    return uri == registered.replace(f"//{known.netloc}", f"//{host}:{requested.port}", 1)


def _is_loopback(parts: SplitResult) -> bool:
    return parts.scheme == "http" and parts.hostname in _LOOPBACK


def _split(uri: str) -> SplitResult | None:
    """Return the parts of a URI, or None if it is malformed."""
    if len(uri) > _MAX_URI_LENGTH or not uri.isascii() or not uri.isprintable() or " " in uri or "\\" in uri:
        return None
    try:
        parts = urlsplit(uri)
        _ = parts.port  # raises ValueError if it is not a number
    except ValueError:
        return None
    return parts
