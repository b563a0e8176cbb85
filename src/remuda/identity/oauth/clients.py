"""Signed assertions: how a service or a client proves who it is with a key of its own (RFC 7523).

One says who it is from (`iss` and `sub`), is for us (`aud`), ends within five minutes, and counts once: its `jti` is
remembered until long after its end, in the store, so that no other process takes it either. The algorithms follow from
the key that we have for the sender, never from what was sent.

Registered clients: who they are, and how they prove it.

A client with a secret sends it in the header Authorization (Basic) or in the form; one with a key signs an assertion;
a public one has neither, says its name, and is believed only as far as PKCE, or the device at hand, goes. Whoever tries
two ways at once is refused.

Where a client may have browsers sent: to addresses that it has registered, compared as a whole, letter by letter.

Only a program on the user's own machine cannot know its port in advance (RFC 8252): where it has registered a loopback
address without a port, any port will do.
"""

import base64
import binascii
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import SplitResult, unquote_plus, urlsplit

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
from remuda.identity.tokens.jwt import MAX_TOKEN_BYTES
from remuda.identity.tokens.secrets import is_hash_of, token_hash
from remuda.kernel import encoding as base64url
from remuda.kernel.clock import Clock
from remuda.kernel.errors import AlreadyExists, Invalid, OAuthError
from remuda.kernel.secrets import Secret
from remuda.resources.conventions import NAME
from remuda.resources.crud import each_once, find, seed
from remuda.store.contract import Store
from remuda.store.objects import Metadata

ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
"""What `client_assertion_type` has to be."""

_LONGEST_LIFE = timedelta(minutes=5)
_LEEWAY = timedelta(seconds=5)
_LONGEST_ID = 255
_PARTS = 3
_CURVES = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}
_RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_SHORTEST_RSA = 2048

ALGORITHMS = (*_CURVES.values(), *_RSA, "Ed25519")
"""Every algorithm that a key of some sender's can be for."""


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A sender's key, and what it can verify."""

    key: Key
    algorithms: tuple[str, ...]


class _Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"x5t256": "x5t#S256"}):
    alg: str
    typ: str = ""
    kid: str = ""
    x5t: str = ""
    x5t256: str = ""


class _Said(msgspec.Struct, frozen=True):
    iss: str
    sub: str
    aud: str | tuple[str, ...]
    exp: float
    jti: str
    iat: float | None = None
    nbf: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Assertions:
    """Checks them."""

    store: Store
    clock: Clock
    settings: IdentitySettings

    async def prove(self, assertion: Secret, assertion_type: str) -> str:
        """Return who proves to be itself, a service or a client by its id, or raise OAuthError. It counts once."""
        if assertion_type != ASSERTION_TYPE:
            raise OAuthError("invalid_request", f"client_assertion_type is not supported: use {ASSERTION_TYPE}")
        token = assertion.reveal()
        claimed = _unverified(token)
        key = await self._key_of(claimed.sub) if claimed is not None else None
        if claimed is None or key is None:
            raise _refused()
        said = _verified(token, key)
        if said is None or said.iss != said.sub or not self._is_for_us(said) or not self._is_timely(said):
            raise _refused()
        await self._use(said)
        return said.sub

    async def _key_of(self, sender: str) -> PublicKey | None:
        account = self.settings.system_accounts.get(sender)
        if account is not None:
            return load_public_key(account.public_key) if account.public_key else None
        client = await find(self.store, OAuth2Client, sender, include_deleting=False)
        return load_public_key(client.spec.public_key) if client is not None and client.spec.public_key else None

    def _is_for_us(self, said: _Said) -> bool:
        issuer = self.settings.issuer
        audiences = (said.aud,) if isinstance(said.aud, str) else said.aud
        return issuer in audiences or f"{issuer}/oauth2/v2/token" in audiences

    def _is_timely(self, said: _Said) -> bool:
        now = self.clock.now().timestamp()
        begins = max(said.iat or 0, said.nbf or 0)
        ends_in_time = now < said.exp <= now + (_LONGEST_LIFE + _LEEWAY).total_seconds()
        return ends_in_time and begins <= now + _LEEWAY.total_seconds() and 0 < len(said.jti) <= _LONGEST_ID

    async def _use(self, said: _Said) -> None:
        expires = datetime.fromtimestamp(said.exp, UTC)
        name = token_hash(msgspec.json.encode([said.sub, said.jti]).decode())
        used = UsedAssertion(metadata=Metadata(name=name), spec=UsedAssertionSpec(expires=expires))
        try:
            await self.store.create(used)
        except AlreadyExists:
            raise _refused() from None


def load_public_key(pem: str) -> PublicKey:
    """Return a public key that can verify assertions, or raise Invalid."""
    try:
        key = load_pem_public_key(pem.encode())
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if isinstance(key, ec.EllipticCurvePublicKey) and key.curve.name in _CURVES:
        return PublicKey(ECKey.import_key(pem), (_CURVES[key.curve.name],))
    if isinstance(key, rsa.RSAPublicKey) and key.key_size >= _SHORTEST_RSA:
        return PublicKey(RSAKey.import_key(pem), _RSA)
    if isinstance(key, ed25519.Ed25519PublicKey):
        return PublicKey(OKPKey.import_key(pem), ("Ed25519", "EdDSA"))
    raise Invalid(
        "spec.publicKey",
        "is no public key that we can use",
        remedy="send the PEM of an EC, Ed25519 or 2048-bit RSA key",
    )


def _unverified(token: str) -> _Said | None:
    """Return what an assertion says, to know whose key it must hold against."""
    parts = token.split(".") if len(token) <= MAX_TOKEN_BYTES else []
    if len(parts) != _PARTS:
        return None
    try:
        msgspec.json.decode(base64url.decode(parts[0]), type=_Header)
        return msgspec.json.decode(base64url.decode(parts[1]), type=_Said)
    except (ValueError, RecursionError):
        return None


def _verified(token: str, key: PublicKey) -> _Said | None:
    try:
        payload = deserialize_compact(token, key.key, key.algorithms).payload
        return msgspec.json.decode(payload or b"", type=_Said)
    except (JoseError, ValueError, RecursionError):
        return None


def _refused() -> OAuthError:
    return OAuthError("access_denied", "client_assertion does not hold: sign a new one with the registered key", 401)


CLI = "remuda-cli"
"""The client id of our command line."""

_CLI_SPEC = OAuth2ClientSpec(redirect_uri="http://127.0.0.1/callback", is_public=True)
_CHALLENGE = (b"www-authenticate", b'Basic realm="remuda"')


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientProof:
    """How a client says who it is."""

    client_id: str = ""
    secret: Secret | None = None
    assertion_type: str = ""
    assertion: Secret | None = None
    is_basic: bool = False
    """It came in the header Authorization."""

    @classmethod
    def of(cls, form: ClientForm, authorization: str = "") -> "ClientProof":
        """Return what a form and the header Authorization say together, or raise OAuthError if they contradict."""
        basic = _read_basic(authorization)
        if basic is None:
            return cls(
                client_id=form.client_id,
                secret=form.client_secret,
                assertion_type=form.client_assertion_type,
                assertion=form.client_assertion,
            )
        if form.client_secret is not None or form.client_assertion is not None:
            raise OAuthError("invalid_request", "the client proves itself twice: use the header or the form")
        if form.client_id not in {"", basic.client_id}:
            raise OAuthError("invalid_request", "client_id is another one than in the header: send one of them")
        return basic


@dataclass(frozen=True, slots=True, kw_only=True)
class Clients:
    """Finds and checks clients."""

    store: Store
    assertions: Assertions

    async def find(self, client_id: str) -> OAuth2Client | None:
        """Return the client with this id, or None."""
        return await find(self.store, OAuth2Client, client_id, include_deleting=False)

    async def called(self, client_id: str) -> str:
        """Return what people call the client with this id; the id itself if it is gone."""
        found = await self.find(client_id)
        return client_id if found is None else found.metadata.labels.get(NAME, client_id)

    async def authenticate(self, proof: ClientProof) -> OAuth2Client:
        """Return the client that has proved who it is, or raise OAuthError."""
        if proof.assertion is not None:
            name = await self.assertions.prove(proof.assertion, proof.assertion_type)
            client = await self.find(name)
            if client is None or proof.client_id not in {"", name}:
                raise _denied(proof)
            return client
        if not proof.client_id:
            raise OAuthError("invalid_request", "client_id is missing: send the client's id, and its secret if any")
        client = await self.find(proof.client_id)
        shown = proof.secret.reveal() if proof.secret is not None else ""
        # Compared even where there is no such client, so that the clock tells nobody which ones there are.
        is_proved = is_hash_of(client.spec.secret_hash if client else "0" * 64, shown)
        is_public = client is not None and client.spec.is_public and not shown
        if client is None or not (is_proved or is_public):
            raise _denied(proof)
        return client


async def seed_clients(store: Store) -> None:
    """Write the clients that are built in, as they have to be in this release. Ask at each start."""
    built_in = OAuth2Client(metadata=Metadata(name=CLI, labels={NAME: CLI}), spec=_CLI_SPEC)
    await seed(store, built_in, lambda found: msgspec.structs.replace(found, spec=_CLI_SPEC))


def _read_basic(authorization: str) -> ClientProof | None:
    scheme, _, encoded = authorization.strip().partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        name, colon, secret = base64.b64decode(encoded.strip(), validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        colon = ""
    if not colon:
        raise OAuthError("invalid_request", "the header Authorization is malformed: send Basic with id and secret")
    return ClientProof(client_id=unquote_plus(name), secret=Secret(unquote_plus(secret)), is_basic=True)


def _denied(proof: ClientProof) -> OAuthError:
    headers = (_CHALLENGE,) if proof.is_basic else ()
    return OAuthError("access_denied", "the client is unknown, or its secret is wrong", 401, headers=headers)


_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_LONGEST = 2048


def redirects_of(client: OAuth2Client) -> tuple[str, ...]:
    """Return every address that a client has registered."""
    spec = client.spec
    return each_once(filter(None, (spec.redirect_uri, *spec.redirect_uris)))


def allows_redirect(client: OAuth2Client, uri: str) -> bool:
    """Tell whether browsers may be sent to this address for a client."""
    registered = redirects_of(client)
    return uri in registered or any(_is_same_but_for_port(each, uri) for each in registered)


def check_redirects(field: str, uris: tuple[str, ...]) -> None:
    """Raise Invalid unless all of these can be registered."""
    for uri in uris:
        parts = _split(uri)
        if parts is None or not parts.netloc or parts.username is not None or len(uri) > _LONGEST:
            raise Invalid(field, "has an address that is not absolute", remedy="write it out: https://host/path")
        if parts.fragment or "#" in uri or "*" in uri:
            raise Invalid(field, "has an address with '#' or '*'", remedy="write out each address, without a fragment")
        if parts.scheme != "https" and not _is_loopback(parts):
            raise Invalid(field, "has an address without TLS", remedy="use https, or http to 127.0.0.1 or [::1] alone")


def _is_same_but_for_port(registered: str, uri: str) -> bool:
    known, asked = _split(registered), _split(uri)
    if known is None or asked is None or not _is_loopback(known) or known.port is not None:
        return False
    host = f"[{known.hostname}]" if ":" in (known.hostname or "") else known.hostname
    return uri == registered.replace(f"//{known.netloc}", f"//{host}:{asked.port}", 1)


def _is_loopback(parts: SplitResult) -> bool:
    return parts.scheme == "http" and parts.hostname in _LOOPBACK


def _split(uri: str) -> SplitResult | None:
    """Return the parts of an address, or None where it has none that make sense."""
    if not uri.isascii() or not uri.isprintable() or " " in uri or "\\" in uri:
        return None
    try:
        parts = urlsplit(uri)
        _ = parts.port  # raises if it is no number
    except ValueError:
        return None
    return parts
