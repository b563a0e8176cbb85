"""Registered OAuth 2.0 clients: schema and service.

The permission is `identity:oauth2providers`, granted everywhere: the reference contract has no endpoint for clients,
and a caller who may choose where users log in may also choose which clients they log in to. Built-in clients cannot be
changed.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

import msgspec
from msgspec.structs import asdict, replace

from remuda.access.checks import require_everywhere
from remuda.access.principal import Context, Permission, Principal, Verb
from remuda.http.responses import Collection, etag_view
from remuda.http.schema import Id, Parameters, Wire
from remuda.identity.kinds.oauth import OAUTH2_CLIENT, OAuth2Client, OAuth2ClientSpec
from remuda.identity.oauth.clients import CLI, check_redirect_uris, load_public_key, redirect_uris_of
from remuda.identity.tokens.secrets import new_secret, token_hash
from remuda.kernel.clock import Clock
from remuda.kernel.errors import Forbidden, Invalid
from remuda.kernel.fields import common_fields
from remuda.kernel.randomness import Randomness
from remuda.kernel.secrets import Secret
from remuda.kernel.tags import Tag
from remuda.resources.metadata import (
    changed_metadata,
    new_metadata,
    new_tags,
    read_metadata,
    updated_tags,
    writable_metadata,
)
from remuda.resources.schema import MetadataRead, MetadataWrite
from remuda.resources.service import ResourceService

_Uri = Annotated[str, msgspec.Meta(max_length=2048)]


class ClientPath(Parameters, frozen=True, rename={"client": "clientID"}):
    """Path of a client."""

    client: Annotated[
        str,
        msgspec.Meta(pattern="^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$", description="Id of the client: its client_id."),
    ]


class OAuth2ClientWire(Wire, frozen=True):
    """Application that users log in to."""

    redirect_uris: Annotated[
        tuple[_Uri, ...],
        msgspec.Meta(
            max_length=20,
            description="Redirect URIs: absolute https URIs, compared as strings. For a "
            "program on the user's machine http://127.0.0.1/path, which matches any port.",
            examples=[["https://app.example.com/callback"]],
        ),
    ] = ()
    home_uri: Annotated[
        _Uri, msgspec.Meta(description="Page of the application.", examples=["https://app.example.com/"])
    ] = ""
    login_uri: Annotated[_Uri, msgspec.Meta(description="Page of the application where a login begins.")] = ""
    error_uri: Annotated[
        _Uri, msgspec.Meta(description="Page of the application for errors that cannot be sent to a redirect URI.")
    ] = ""
    is_public: Annotated[bool, msgspec.Meta(description="The client has no secret.")] = False
    is_challenge_optional: Annotated[
        bool,
        msgspec.Meta(
            description="Authorization requests need no code_challenge (PKCE). Only for a client that has a secret or "
            "a key, and cannot send one."
        ),
    ] = False
    public_key: Annotated[
        str,
        msgspec.Meta(max_length=8192, description="PEM. The client authenticates with assertions signed by this key."),
    ] = ""
    is_first_party: Annotated[
        bool,
        msgspec.Meta(
            description="The client is the platform's own: it accepts logins at the provider of every organization."
        ),
    ] = False
    organizations: Annotated[
        tuple[Id, ...],
        msgspec.Meta(
            max_length=1000,
            description="Organizations whose own providers users may log in at for this client.",
        ),
    ] = msgspec.field(default=(), name="organizationIDs")


class ClientWrite(Wire, frozen=True):
    """Client to be registered or updated."""

    metadata: MetadataWrite
    spec: OAuth2ClientWire


class ClientMetadataRead(MetadataRead, frozen=True, kw_only=True):
    """Metadata of a client."""

    id: Annotated[
        str, msgspec.Meta(description="Id of the client, its client_id: a built-in one has a word as its id.")
    ]


class ClientRead(Wire, frozen=True):
    """A registered client. Its id is the client_id."""

    metadata: ClientMetadataRead
    spec: OAuth2ClientWire


class ClientSecret(Wire, frozen=True):
    """Secret that is returned once."""

    client_secret: Annotated[Secret | None, msgspec.Meta(description="The secret, shown only once.")] = None


class ClientSecretRead(ClientRead, frozen=True):
    """Registered client with its new secret, which is returned once. Some clients have none."""

    status: ClientSecret


def check_client(client: ClientWrite) -> None:
    spec = client.spec
    check_redirect_uris("spec.redirectUris", spec.redirect_uris)
    for name, uri in (("homeUri", spec.home_uri), ("loginUri", spec.login_uri), ("errorUri", spec.error_uri)):
        check_redirect_uris(f"spec.{name}", (uri,) if uri else ())
    if spec.public_key and spec.is_public:
        raise Invalid("spec.publicKey", "is set for a public client", remedy="remove publicKey or isPublic")
    if spec.is_challenge_optional and spec.is_public:
        remedy = "remove isChallengeOptional or isPublic"
        raise Invalid("spec.isChallengeOptional", "is set for a public client", remedy=remedy)
    if spec.public_key:
        load_public_key(spec.public_key)


def new_client(name: str, body: ClientWrite, who: Principal, *, secret_hash: str) -> OAuth2Client:
    metadata = new_metadata(name, body.metadata, who, labels={})
    tags = new_tags(body.metadata, who)
    return OAuth2Client(metadata=metadata, spec=_spec(body.spec, tags, secret_hash))


def changed_client(client: OAuth2Client, body: ClientWrite, who: Principal, now: datetime) -> OAuth2Client:
    """Return a client with the writable fields replaced. A client that becomes public loses its secret."""
    secret_hash = "" if body.spec.is_public else client.spec.secret_hash
    metadata = changed_metadata(client.metadata, body.metadata, who, now)
    tags = updated_tags(client.spec.tags, body.metadata, who)
    return replace(client, metadata=metadata, spec=_spec(body.spec, tags, secret_hash))


def writable_client(client: OAuth2Client) -> ClientWrite:
    return ClientWrite(metadata=writable_metadata(client.metadata, client.spec.tags), spec=_wire(client))


def read_client(client: OAuth2Client) -> ClientRead:
    metadata = ClientMetadataRead(**asdict(read_metadata(client.metadata, client.spec.tags)))
    return ClientRead(metadata=metadata, spec=_wire(client))


_same_fields = common_fields(OAuth2ClientWire, OAuth2ClientSpec, without={"redirect_uris"})


def _spec(spec: OAuth2ClientWire, tags: tuple[Tag, ...], secret_hash: str) -> OAuth2ClientSpec:
    return OAuth2ClientSpec(
        **_same_fields(spec),
        redirect_uri=spec.redirect_uris[0] if spec.redirect_uris else "",
        redirect_uris=spec.redirect_uris[1:],
        secret_hash=secret_hash,
        tags=tags,
    )


def _wire(client: OAuth2Client) -> OAuth2ClientWire:
    return OAuth2ClientWire(**_same_fields(client.spec), redirect_uris=redirect_uris_of(client))


CLIENT_VIEW = etag_view(read_client, writable_client)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientRegistration(ResourceService[OAuth2Client, ClientRead]):
    """Service of registered clients."""

    kind, endpoint, view, noun = OAUTH2_CLIENT, "identity:oauth2providers", CLIENT_VIEW, "client"

    clock: Clock
    randomness: Randomness

    async def list(self, context: Context) -> Collection[OAuth2Client, list[ClientRead]]:
        self._authorize(context, "read")
        return Collection(store=self.store, kind=OAuth2Client, view=CLIENT_VIEW)

    async def get(self, context: Context, client: str) -> OAuth2Client:
        self._authorize(context, "read")
        return await self.store.get(OAuth2Client, client)

    async def create(self, context: Context, body: ClientWrite) -> ClientSecretRead:
        """Register a client, and return its secret once. Public clients and clients with a key have none.

        A retry after a lost response returns no secret: rotate it.
        """
        self._authorize(context, "create")
        check_client(body)
        secret = None if body.spec.is_public or body.spec.public_key else new_secret(self.randomness)
        secret_hash = "" if secret is None else token_hash(secret.reveal())
        new = new_client(context.operation, body, context.principal, secret_hash=secret_hash)
        created = await self.insert(context, new)
        return _with_secret(created, secret if created.spec.secret_hash == secret_hash else None)

    async def update(self, context: Context, client: str, body: ClientWrite) -> OAuth2Client:
        self._authorize(context, "update")
        check_client(body)

        async def changed(found: OAuth2Client) -> OAuth2Client:
            _reject_built_in(found)
            return changed_client(found, body, context.principal, self.clock.now())

        return await self.update_found(context, lambda: self.store.get(OAuth2Client, client), changed)

    async def rotate(self, context: Context, client: str) -> ClientSecretRead:
        """Replace the secret of a client, and return the new one once. The old one is no longer valid."""
        self._authorize(context, "update")
        secret = new_secret(self.randomness)

        async def rotated(found: OAuth2Client) -> OAuth2Client:
            _reject_built_in(found)
            if found.spec.is_public:
                raise Invalid("the client", "is public and has no secret", remedy="set isPublic to false first")
            return replace(found, spec=replace(found.spec, secret_hash=token_hash(secret.reveal())))

        written = await self.update_found(context, lambda: self.store.get(OAuth2Client, client), rotated)
        return _with_secret(written, secret)

    async def delete(self, context: Context, client: str) -> None:
        """Delete a client. Users can no longer log in through it, and its refresh tokens are no longer valid."""
        self._authorize(context, "delete")
        await self.delete_found(context, lambda: self.store.get(OAuth2Client, client))

    async def check_deletion(self, found: OAuth2Client) -> None:
        _reject_built_in(found)

    def _authorize(self, context: Context, verb: Verb) -> None:
        require_everywhere(context.principal, Permission(self.endpoint, verb))


def _reject_built_in(client: OAuth2Client) -> None:
    if client.name == CLI:
        raise Forbidden(f"The client {CLI} is built in and cannot be changed: register another one.")


def _with_secret(client: OAuth2Client, secret: Secret | None) -> ClientSecretRead:
    read = read_client(client)
    return ClientSecretRead(metadata=read.metadata, spec=read.spec, status=ClientSecret(client_secret=secret))
