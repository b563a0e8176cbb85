"""Registered clients: who they are, and how they prove it.

A client with a secret sends it in the header Authorization (Basic) or in the form; one with a key signs an assertion;
a public one has neither, says its name, and is believed only as far as PKCE, or the device at hand, goes. Whoever tries
two ways at once is refused.
"""

import base64
import binascii
from dataclasses import dataclass
from urllib.parse import unquote_plus

import msgspec

from remuda.identity.kinds.oauth import OAuth2Client, OAuth2ClientSpec
from remuda.identity.oauth.assertion import Assertions
from remuda.identity.oauth.schema import ClientForm
from remuda.identity.tokens.secrets import is_hash_of
from remuda.kernel.errors import OAuthRefusal
from remuda.kernel.secrets import Secret
from remuda.resources.conventions import NAME
from remuda.resources.crud import find, seed
from remuda.store.contract import Store
from remuda.store.objects import Metadata

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
        """Return what a form and the header Authorization say together, or raise OAuthRefusal if they contradict."""
        basic = _read_basic(authorization)
        if basic is None:
            return cls(
                client_id=form.client_id,
                secret=form.client_secret,
                assertion_type=form.client_assertion_type,
                assertion=form.client_assertion,
            )
        if form.client_secret is not None or form.client_assertion is not None:
            raise OAuthRefusal("invalid_request", "the client proves itself twice: use the header or the form")
        if form.client_id not in {"", basic.client_id}:
            raise OAuthRefusal("invalid_request", "client_id is another one than in the header: send one of them")
        return basic


@dataclass(frozen=True, slots=True, kw_only=True)
class Clients:
    """Finds and checks clients."""

    store: Store
    assertions: Assertions

    async def find(self, client_id: str) -> OAuth2Client | None:
        """Return the client with this id, or None."""
        return await find(self.store, OAuth2Client, client_id, marked=False)

    async def called(self, client_id: str) -> str:
        """Return what people call the client with this id; the id itself if it is gone."""
        found = await self.find(client_id)
        return client_id if found is None else found.metadata.labels.get(NAME, client_id)

    async def authenticate(self, proof: ClientProof) -> OAuth2Client:
        """Return the client that has proved who it is, or raise OAuthRefusal."""
        if proof.assertion is not None:
            name = await self.assertions.prove(proof.assertion, proof.assertion_type)
            client = await self.find(name)
            if client is None or proof.client_id not in {"", name}:
                raise _denied(proof)
            return client
        if not proof.client_id:
            raise OAuthRefusal("invalid_request", "client_id is missing: send the client's id, and its secret if any")
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
        raise OAuthRefusal("invalid_request", "the header Authorization is malformed: send Basic with id and secret")
    return ClientProof(client_id=unquote_plus(name), secret=Secret(unquote_plus(secret)), is_basic=True)


def _denied(proof: ClientProof) -> OAuthRefusal:
    headers = (_CHALLENGE,) if proof.is_basic else ()
    return OAuthRefusal("access_denied", "the client is unknown, or its secret is wrong", 401, headers=headers)
