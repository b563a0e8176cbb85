"""The routes that programs use; those for browsers are those of the room `login`.

What we tell about ourselves: only what is true.

The reference lists things that it does not do (the response type `id_token`, the scope `profile`, its name as whatever
the request's Host header says); here every address comes from the configured issuer.

The handlers of the oauth room: each asks the service and renders what it says.
"""

from typing import Any

import msgspec

from remuda.http.authentication import read_bearer
from remuda.http.responses import Collection, Shown
from remuda.http.routes import AnyRoute, Call, ListQuery, Nothing, Route
from remuda.identity.kinds.oauth import OAuth2Client
from remuda.identity.oauth import registration as client_wire
from remuda.identity.oauth import schema as wire
from remuda.identity.oauth.clients import ALGORITHMS
from remuda.identity.oauth.exchange import TOKEN_EXCHANGE
from remuda.identity.oauth.grants import AUTHORIZATION_CODE, CLIENT_CREDENTIALS, DEVICE_CODE, REFRESH_TOKEN
from remuda.identity.oauth.registration import right
from remuda.identity.oauth.schema import OpenIdConfiguration
from remuda.identity.oauth.service import OAuth
from remuda.identity.settings import IdentitySettings
from remuda.kernel.errors import Unauthenticated
from remuda.kernel.secrets import Secret
from remuda.resources.service_info import SCOPES, OpenIdProtectedResource, protected_resource, protected_resource_route


def configuration(settings: IdentitySettings) -> OpenIdConfiguration:
    """Return where everything is, and what we can do."""
    below = f"{settings.issuer}/oauth2/v2"
    return OpenIdConfiguration(
        issuer=settings.issuer,
        authorization_endpoint=f"{below}/authorization",
        token_endpoint=f"{below}/token",
        userinfo_endpoint=f"{below}/userinfo",
        jwks_uri=f"{below}/jwks",
        revocation_endpoint=f"{below}/revoke",
        introspection_endpoint=f"{below}/introspect",
        device_authorization_endpoint=f"{below}/device_authorization",
        end_session_endpoint=f"{below}/logout",
        scopes_supported=SCOPES,
        # Other claims of ours, such as `azp` and `sid`, are not among the values that existing clients take here.
        claims_supported=("aud", "email", "email_verified", "exp", "iat", "iss", "sub"),
        response_types_supported=("code",),
        response_modes_supported=("query",),
        subject_types_supported=("public",),
        token_endpoint_auth_methods_supported=(
            "client_secret_basic",
            "client_secret_post",
            "private_key_jwt",
            "none",
        ),
        token_endpoint_auth_signing_alg_values_supported=ALGORITHMS,
        grant_types_supported=(AUTHORIZATION_CODE, CLIENT_CREDENTIALS, REFRESH_TOKEN, TOKEN_EXCHANGE, DEVICE_CODE),
        id_token_signing_alg_values_supported=("ES512",),
        code_challenge_methods_supported=("plain", "S256"),
        claims_parameter_supported=False,
        request_parameter_supported=False,
        request_uri_parameter_supported=False,
        authorization_response_iss_parameter_supported=True,
    )


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


_OAUTH = "/oauth2/v2"
_KNOWN = "/.well-known"
_CLIENTS = "/api/v1/oauth2clients"
_CLIENT = f"{_CLIENTS}/{{clientID}}"
_AUTHORIZATION = ("authorization",)


def routes() -> list[AnyRoute]:
    """Return all of them."""
    return [*_tokens(), *_documents(), *_clients()]


def _tokens() -> list[AnyRoute]:
    return [
        Route(
            method="POST",
            path=f"{_OAUTH}/token",
            name="exchange_grant",
            summary="Get tokens",
            scope="public",
            form=True,
            oauth=True,
            holds_secret=True,
            headers=_AUTHORIZATION,
            query_type=wire.TokenQuery,
            body_type=wire.TokenForm,
            answer_type=wire.TokenRead,
            errors=(401,),
            handler=token,
        ),
        Route(
            method="POST",
            path=f"{_OAUTH}/device_authorization",
            name="authorize_device",
            summary="Begin to log in on a device without a browser",
            scope="public",
            form=True,
            oauth=True,
            holds_secret=True,
            headers=_AUTHORIZATION,
            body_type=wire.DeviceAuthorizationForm,
            answer_type=wire.DeviceAuthorization,
            errors=(401, 429),
            handler=authorize_device,
        ),
        Route(
            method="POST",
            path=f"{_OAUTH}/revoke",
            name="revoke_token",
            summary="Revoke a token",
            scope="public",
            form=True,
            oauth=True,
            headers=_AUTHORIZATION,
            body_type=wire.ShownToken,
            errors=(401,),
            handler=revoke,
        ),
        Route(
            method="POST",
            path=f"{_OAUTH}/introspect",
            name="introspect_token",
            summary="Ask what a token is good for",
            scope="public",
            form=True,
            oauth=True,
            headers=_AUTHORIZATION,
            body_type=wire.ShownToken,
            answer_type=wire.IntrospectionRead,
            errors=(401,),
            handler=introspect,
        ),
        Route(
            method="GET",
            path=f"{_OAUTH}/userinfo",
            name="read_userinfo",
            summary="Read who the bearer of a token is",
            scope="public",
            headers=_AUTHORIZATION,
            answer_type=wire.UserinfoRead,
            errors=(401,),
            handler=read_userinfo,
        ),
        Route(
            method="POST",
            path=f"{_OAUTH}/userinfo",
            name="post_userinfo",
            summary="Read who the bearer of a token is, by a form",
            scope="public",
            form=True,
            headers=_AUTHORIZATION,
            body_type=wire.UserinfoForm,
            answer_type=wire.UserinfoRead,
            errors=(401,),
            handler=post_userinfo,
        ),
    ]


def _documents() -> list[AnyRoute]:
    return [
        Route(
            method="GET",
            path=f"{_OAUTH}/jwks",
            name="read_keys",
            summary="Read the keys that verify our tokens",
            scope="public",
            answer_type=wire.JsonWebKeySet,
            handler=read_keys,
        ),
        Route(
            method="GET",
            path=f"{_KNOWN}/openid-configuration",
            name="read_openid_configuration",
            summary="Read where everything is that OpenID Connect needs",
            scope="public",
            answer_type=wire.OpenIdConfiguration,
            handler=read_configuration,
        ),
        Route(
            method="GET",
            path=f"{_KNOWN}/oauth-authorization-server",
            name="read_authorization_server",
            summary="Read the same, where OAuth2 looks for it",
            scope="public",
            answer_type=wire.OpenIdConfiguration,
            handler=read_configuration,
        ),
        protected_resource_route(read_protected_resource),
    ]


def _clients() -> list[AnyRoute]:
    return [
        Route(
            method="GET",
            path=_CLIENTS,
            name="list_oauth2_clients",
            summary="List the registered clients",
            scope="everywhere",
            permission=right("read"),
            query_type=ListQuery,
            answer_type=list[client_wire.ClientRead],
            handler=list_clients,
        ),
        Route(
            method="POST",
            path=_CLIENTS,
            name="create_oauth2_client",
            summary="Register a client",
            scope="everywhere",
            permission=right("create"),
            body_type=client_wire.ClientWrite,
            answer_type=client_wire.ClientSecretRead,
            success=201,
            holds_secret=True,
            handler=create_client,
        ),
        Route(
            method="GET",
            path=_CLIENT,
            name="get_oauth2_client",
            summary="Read a client",
            scope="everywhere",
            permission=right("read"),
            path_type=client_wire.ClientPath,
            answer_type=client_wire.ClientRead,
            handler=get_client,
        ),
        Route(
            method="PUT",
            path=_CLIENT,
            name="update_oauth2_client",
            summary="Change a client",
            scope="everywhere",
            permission=right("update"),
            path_type=client_wire.ClientPath,
            body_type=client_wire.ClientWrite,
            answer_type=client_wire.ClientRead,
            is_conditional=True,
            handler=update_client,
        ),
        Route(
            method="DELETE",
            path=_CLIENT,
            name="delete_oauth2_client",
            summary="Forget a client",
            scope="everywhere",
            permission=right("delete"),
            path_type=client_wire.ClientPath,
            success=204,
            is_conditional=True,
            handler=delete_client,
        ),
        Route(
            method="POST",
            path=f"{_CLIENT}/rotate",
            name="rotate_oauth2_client",
            summary="Give a client a new secret",
            scope="everywhere",
            permission=right("update"),
            path_type=client_wire.ClientPath,
            answer_type=client_wire.ClientSecretRead,
            holds_secret=True,
            handler=rotate_client,
        ),
    ]
