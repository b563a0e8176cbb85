"""The handlers of the oauth room: each asks the service and renders what it says."""

from typing import Any

import msgspec

from remuda.http.authentication import read_bearer
from remuda.http.responses import Collection, Shown
from remuda.http.routes import Call, ListQuery, Nothing
from remuda.identity.kinds.oauth import OAuth2Client
from remuda.identity.oauth import client_wire
from remuda.identity.oauth import schema as wire
from remuda.identity.oauth.discovery import configuration
from remuda.identity.oauth.service import OAuth
from remuda.kernel.errors import Unauthenticated
from remuda.kernel.secrets import Secret
from remuda.resources.service_info import OpenIdProtectedResource, protected_resource


async def token(oauth: OAuth, call: Call[Nothing, wire.TokenQuery, wire.TokenForm]) -> wire.TokenRead:
    """Exchange a grant for tokens."""
    return await oauth.token(call.context, call.body, call.query, _authorization(call))


async def authorize_device(
    oauth: OAuth, call: Call[Nothing, Nothing, wire.DeviceAuthorizationForm]
) -> wire.DeviceAuthorization:
    """Begin to let a device in."""
    return await oauth.authorize_device(call.body, _authorization(call), peer=call.peer)


async def revoke(oauth: OAuth, call: Call[Nothing, Nothing, wire.ShownToken]) -> None:
    await oauth.revoke(call.context, call.body, _authorization(call))


async def introspect(oauth: OAuth, call: Call[Nothing, Nothing, wire.ShownToken]) -> wire.IntrospectionRead:
    """Tell what a token is good for."""
    return await oauth.introspect(call.body, _authorization(call))


async def read_userinfo(oauth: OAuth, call: Call[Nothing, Nothing, Nothing]) -> wire.UserinfoRead:
    """Tell who asks."""
    return await oauth.userinfo(_bearer(call))


async def post_userinfo(oauth: OAuth, call: Call[Nothing, Nothing, wire.UserinfoForm]) -> wire.UserinfoRead:
    """Tell who asks, by a token in the form or the header."""
    shown = call.body.access_token
    if shown is not None and _authorization(call):
        raise Unauthenticated("there are two tokens: send one, in the header or in the form")
    return await oauth.userinfo(shown.reveal() if shown is not None else _bearer(call))


async def read_keys(oauth: OAuth, _call: Call[Nothing, Nothing, Nothing]) -> wire.JsonWebKeySet:
    """Return the keys that verify our tokens."""
    keys = [each.public() for each in await oauth.tokens.keys.all()]
    return msgspec.convert({"keys": keys}, wire.JsonWebKeySet)


async def read_configuration(oauth: OAuth, _call: Call[Nothing, Nothing, Nothing]) -> wire.OpenIdConfiguration:
    """Return where everything is."""
    return configuration(oauth.settings)


async def read_protected_resource(oauth: OAuth, _call: Call[Nothing, Nothing, Nothing]) -> OpenIdProtectedResource:
    """Return who lets callers in."""
    return protected_resource(oauth.settings.issuer, oauth.settings.issuer)


async def list_clients(
    oauth: OAuth, call: Call[Nothing, ListQuery, Nothing]
) -> Collection[OAuth2Client, list[client_wire.ClientRead]]:
    return await oauth.registration.list(call.context)


async def create_client(
    oauth: OAuth, call: Call[Nothing, Nothing, client_wire.ClientWrite]
) -> client_wire.ClientSecretRead:
    return _with_secret(*await oauth.registration.create(call.context, call.body))


async def get_client(
    oauth: OAuth, call: Call[client_wire.ClientPath, Nothing, Nothing]
) -> Shown[client_wire.ClientRead]:
    return Shown(client_wire.CLIENT_VIEW, await oauth.registration.get(call.context, call.path.client))


async def update_client(
    oauth: OAuth, call: Call[client_wire.ClientPath, Nothing, client_wire.ClientWrite]
) -> Shown[client_wire.ClientRead]:
    changed = await oauth.registration.update(call.context, call.path.client, call.body)
    return Shown(client_wire.CLIENT_VIEW, changed)


async def rotate_client(
    oauth: OAuth, call: Call[client_wire.ClientPath, Nothing, Nothing]
) -> client_wire.ClientSecretRead:
    return _with_secret(*await oauth.registration.rotate(call.context, call.path.client))


async def delete_client(oauth: OAuth, call: Call[client_wire.ClientPath, Nothing, Nothing]) -> None:
    await oauth.registration.delete(call.context, call.path.client)


def _with_secret(client: OAuth2Client, secret: Secret | None) -> client_wire.ClientSecretRead:
    read = client_wire.read_client(client)
    shown = client_wire.ClientSecret(client_secret=secret)
    return client_wire.ClientSecretRead(metadata=read.metadata, spec=read.spec, status=shown)


def _authorization(call: Call[Any, Any, Any]) -> str:
    return call.headers.get("authorization", "")


def _bearer(call: Call[Any, Any, Any]) -> str:
    if not _authorization(call):
        raise Unauthenticated("authorization header not set")
    return read_bearer(_authorization(call).encode("latin-1"))
