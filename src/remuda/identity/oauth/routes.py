"""Routes of OAuth2 and OpenID Connect for programs; the pages for browsers are in `login`.

The documents about this service are built from the configured issuer, never from the Host header of a request, and list
only what is implemented.
"""

from typing import Any

import msgspec

from remuda.http.authentication import read_bearer
from remuda.http.routes import AnyRoute, Call, ListQuery, Nothing, Route
from remuda.identity.oauth import registration as client_wire
from remuda.identity.oauth import schema
from remuda.identity.oauth.clients import ALGORITHMS
from remuda.identity.oauth.exchange import TOKEN_EXCHANGE
from remuda.identity.oauth.grants import AUTHORIZATION_CODE, CLIENT_CREDENTIALS, DEVICE_CODE, REFRESH_TOKEN
from remuda.identity.oauth.registration import Registration, right
from remuda.identity.oauth.schema import OpenIdConfiguration
from remuda.identity.oauth.service import OAuth
from remuda.identity.settings import IdentitySettings
from remuda.kernel.errors import Unauthenticated
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


async def token(oauth: OAuth, call: Call[Nothing, schema.TokenQuery, schema.TokenForm]) -> schema.TokenRead:
    """Exchange a grant for tokens."""
    return await oauth.token(call.context, call.body, call.query, _authorization(call))


async def authorize_device(
    oauth: OAuth, call: Call[Nothing, Nothing, schema.DeviceAuthorizationForm]
) -> schema.DeviceAuthorization:
    """Begin to let a device in."""
    return await oauth.authorize_device(call.body, _authorization(call), peer=call.peer)


async def revoke(oauth: OAuth, call: Call[Nothing, Nothing, schema.ShownToken]) -> None:
    await oauth.revoke(call.context, call.body, _authorization(call))


async def introspect(oauth: OAuth, call: Call[Nothing, Nothing, schema.ShownToken]) -> schema.IntrospectionRead:
    """Tell what a token is good for."""
    return await oauth.introspect(call.body, _authorization(call))


async def read_userinfo(oauth: OAuth, call: Call[Nothing, Nothing, Nothing]) -> schema.UserinfoRead:
    """Tell who asks."""
    return await oauth.userinfo(_bearer(call))


async def post_userinfo(oauth: OAuth, call: Call[Nothing, Nothing, schema.UserinfoForm]) -> schema.UserinfoRead:
    """Tell who asks, by a token in the form or the header."""
    shown = call.body.access_token
    if shown is not None and _authorization(call):
        raise Unauthenticated("there are two tokens: send one, in the header or in the form")
    return await oauth.userinfo(shown.reveal() if shown is not None else _bearer(call))


async def read_keys(oauth: OAuth, _call: Call[Nothing, Nothing, Nothing]) -> schema.JsonWebKeySet:
    """Return the keys that verify our tokens."""
    keys = [each.public() for each in await oauth.tokens.keys.all()]
    return msgspec.convert({"keys": keys}, schema.JsonWebKeySet)


async def read_configuration(oauth: OAuth, _call: Call[Nothing, Nothing, Nothing]) -> schema.OpenIdConfiguration:
    """Return where everything is."""
    return configuration(oauth.settings)


async def read_protected_resource(oauth: OAuth, _call: Call[Nothing, Nothing, Nothing]) -> OpenIdProtectedResource:
    """Return who lets callers in."""
    return protected_resource(oauth.settings.issuer, oauth.settings.issuer)


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
            query_type=schema.TokenQuery,
            body_type=schema.TokenForm,
            response_type=schema.TokenRead,
            errors=(401,),
            service=OAuth,
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
            body_type=schema.DeviceAuthorizationForm,
            response_type=schema.DeviceAuthorization,
            errors=(401, 429),
            service=OAuth,
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
            body_type=schema.ShownToken,
            errors=(401,),
            service=OAuth,
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
            body_type=schema.ShownToken,
            response_type=schema.IntrospectionRead,
            errors=(401,),
            service=OAuth,
            handler=introspect,
        ),
        Route(
            method="GET",
            path=f"{_OAUTH}/userinfo",
            name="read_userinfo",
            summary="Read who the bearer of a token is",
            scope="public",
            headers=_AUTHORIZATION,
            response_type=schema.UserinfoRead,
            errors=(401,),
            service=OAuth,
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
            body_type=schema.UserinfoForm,
            response_type=schema.UserinfoRead,
            errors=(401,),
            service=OAuth,
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
            response_type=schema.JsonWebKeySet,
            service=OAuth,
            handler=read_keys,
        ),
        Route(
            method="GET",
            path=f"{_KNOWN}/openid-configuration",
            name="read_openid_configuration",
            summary="Read where everything is that OpenID Connect needs",
            scope="public",
            response_type=schema.OpenIdConfiguration,
            service=OAuth,
            handler=read_configuration,
        ),
        Route(
            method="GET",
            path=f"{_KNOWN}/oauth-authorization-server",
            name="read_authorization_server",
            summary="Read the same, where OAuth2 looks for it",
            scope="public",
            response_type=schema.OpenIdConfiguration,
            service=OAuth,
            handler=read_configuration,
        ),
        protected_resource_route(read_protected_resource, service=OAuth),
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
            response_type=list[client_wire.ClientRead],
            service=Registration,
            calls=Registration.list,
        ),
        Route(
            method="POST",
            path=_CLIENTS,
            name="create_oauth2_client",
            summary="Register a client",
            scope="everywhere",
            permission=right("create"),
            body_type=client_wire.ClientWrite,
            response_type=client_wire.ClientSecretRead,
            success=201,
            holds_secret=True,
            service=Registration,
            calls=Registration.create,
        ),
        Route(
            method="GET",
            path=_CLIENT,
            name="get_oauth2_client",
            summary="Read a client",
            scope="everywhere",
            permission=right("read"),
            path_type=client_wire.ClientPath,
            response_type=client_wire.ClientRead,
            service=Registration,
            calls=Registration.get,
        ),
        Route(
            method="PUT",
            path=_CLIENT,
            name="update_oauth2_client",
            summary="Update a client",
            scope="everywhere",
            permission=right("update"),
            path_type=client_wire.ClientPath,
            body_type=client_wire.ClientWrite,
            response_type=client_wire.ClientRead,
            is_conditional=True,
            service=Registration,
            calls=Registration.update,
            view=client_wire.CLIENT_VIEW,
        ),
        Route(
            method="DELETE",
            path=_CLIENT,
            name="delete_oauth2_client",
            summary="Delete a client",
            scope="everywhere",
            permission=right("delete"),
            path_type=client_wire.ClientPath,
            success=204,
            is_conditional=True,
            service=Registration,
            calls=Registration.delete,
        ),
        Route(
            method="POST",
            path=f"{_CLIENT}/rotate",
            name="rotate_oauth2_client",
            summary="Replace the secret of a client",
            scope="everywhere",
            permission=right("update"),
            path_type=client_wire.ClientPath,
            response_type=client_wire.ClientSecretRead,
            holds_secret=True,
            service=Registration,
            calls=Registration.rotate,
        ),
    ]


ROUTES: list[AnyRoute] = [*_tokens(), *_documents(), *_clients()]
