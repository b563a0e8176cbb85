"""Routes of OAuth 2.0 and OpenID Connect for clients; the pages for browsers are in `login`.

Discovery documents are built from the configured issuer, never from the Host header, and list only what is implemented.
"""

from functools import partial
from typing import Any

import msgspec

from remuda.http.authentication import read_bearer
from remuda.http.crud import crud
from remuda.http.routes import AnyRoute, Call, Route
from remuda.http.schema import Nothing
from remuda.identity.names import permission
from remuda.identity.oauth import registration, schema
from remuda.identity.oauth.clients import ALGORITHMS
from remuda.identity.oauth.exchange import TOKEN_EXCHANGE
from remuda.identity.oauth.grants import AUTHORIZATION_CODE, CLIENT_CREDENTIALS, DEVICE_CODE, REFRESH_TOKEN
from remuda.identity.oauth.registration import ClientRegistration
from remuda.identity.oauth.schema import OpenIdConfiguration
from remuda.identity.oauth.service import OAuth
from remuda.identity.settings import IdentitySettings
from remuda.kernel.errors import Unauthenticated
from remuda.resources.service_info import SCOPES


def configuration(settings: IdentitySettings) -> OpenIdConfiguration:
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
        # Other claims, such as `azp` and `sid`, are not among the values that existing clients accept here.
        claims_supported=("aud", "email", "email_verified", "exp", "iat", "iss", "sub"),
        response_types_supported=("code",),
        response_modes_supported=("query",),
        subject_types_supported=("public",),
        token_endpoint_auth_methods_supported=("client_secret_basic", "client_secret_post", "private_key_jwt", "none"),
        token_endpoint_auth_signing_alg_values_supported=ALGORITHMS,
        grant_types_supported=(AUTHORIZATION_CODE, CLIENT_CREDENTIALS, REFRESH_TOKEN, TOKEN_EXCHANGE, DEVICE_CODE),
        id_token_signing_alg_values_supported=("ES512",),
        code_challenge_methods_supported=("S256",),
        claims_parameter_supported=False,
        request_parameter_supported=False,
        request_uri_parameter_supported=False,
        authorization_response_iss_parameter_supported=True,
    )


async def token(oauth: OAuth, call: Call[Nothing, schema.TokenQuery, schema.TokenForm]) -> schema.TokenRead:
    return await oauth.token(call.context, call.body, call.query, _authorization(call))


async def authorize_device(
    oauth: OAuth, call: Call[Nothing, Nothing, schema.DeviceAuthorizationForm]
) -> schema.DeviceAuthorization:
    return await oauth.authorize_device(call.body, _authorization(call), peer=call.peer)


async def revoke(oauth: OAuth, call: Call[Nothing, Nothing, schema.TokenReferenceForm]) -> None:
    await oauth.revoke(call.context, call.body, _authorization(call))


async def introspect(oauth: OAuth, call: Call[Nothing, Nothing, schema.TokenReferenceForm]) -> schema.IntrospectionRead:
    return await oauth.introspect(call.body, _authorization(call))


async def read_userinfo(oauth: OAuth, call: Call[Nothing, Nothing, Nothing]) -> schema.UserinfoRead:
    return await oauth.userinfo(_bearer(call))


async def post_userinfo(oauth: OAuth, call: Call[Nothing, Nothing, schema.UserinfoForm]) -> schema.UserinfoRead:
    """Return the claims about the caller, with the token in the form or the header."""
    sent = call.body.access_token
    if sent is not None and _authorization(call):
        raise Unauthenticated("the request has two tokens: send one, in the header or in the form")
    return await oauth.userinfo(sent.reveal() if sent is not None else _bearer(call))


async def _is_genuine_grant(oauth: OAuth, call: Call[Nothing, schema.TokenQuery, schema.TokenForm]) -> bool:
    return await oauth.genuine.is_grant(call.body, _authorization(call))


async def _is_genuine_caller(oauth: OAuth, call: Call[Nothing, Nothing, schema.TokenReferenceForm]) -> bool:
    return await oauth.genuine.is_caller(call.body, _authorization(call))


async def _is_genuine_client(oauth: OAuth, call: Call[Nothing, Nothing, schema.DeviceAuthorizationForm]) -> bool:
    return await oauth.genuine.is_client(call.body, _authorization(call))


async def _is_genuine_reader(oauth: OAuth, call: Call[Nothing, Nothing, Nothing]) -> bool:
    return await oauth.genuine.is_bearer(_authorization(call))


async def _is_genuine_poster(oauth: OAuth, call: Call[Nothing, Nothing, schema.UserinfoForm]) -> bool:
    sent = call.body.access_token
    if sent is None:
        return await oauth.genuine.is_bearer(_authorization(call))
    return await oauth.genuine.is_token(sent.reveal())


async def read_keys(oauth: OAuth, _call: Call[Nothing, Nothing, Nothing]) -> schema.JsonWebKeySet:
    keys = [each.public() for each in await oauth.tokens.keys.all()]
    return msgspec.convert({"keys": keys}, schema.JsonWebKeySet)


async def read_configuration(oauth: OAuth, _call: Call[Nothing, Nothing, Nothing]) -> schema.OpenIdConfiguration:
    return configuration(oauth.settings)


def _authorization(call: Call[Any, Any, Any]) -> str:
    return call.headers.get("authorization", "")


def _bearer(call: Call[Any, Any, Any]) -> str:
    if not _authorization(call):
        raise Unauthenticated("authorization header not set")
    return read_bearer(_authorization(call).encode("latin-1"))


_OAUTH, _KNOWN = "/oauth2/v2", "/.well-known"


def _endpoint(method: str, path: str, name: str, summary: str, handler: Any, **more: Any) -> AnyRoute:
    fields: dict[str, Any] = {"method": method, "path": path, "name": name, "summary": summary, "handler": handler}
    return Route(**fields, **more, scope="public", service=OAuth)


def _token_endpoint(path: str, name: str, summary: str, handler: Any, **more: Any) -> AnyRoute:
    common: dict[str, Any] = {
        "form": True,
        "oauth": True,
        "is_genuine": _is_genuine_caller,
        "headers": ("authorization",),
        "errors": (401,),
    }
    return _endpoint("POST", f"{_OAUTH}/{path}", name, summary, handler, **common | more)


def _tokens() -> list[AnyRoute]:
    userinfo, summary = f"{_OAUTH}/userinfo", "Read the claims about the bearer of a token"
    claims: dict[str, Any] = {
        "headers": ("authorization",),
        "response_type": schema.UserinfoRead,
        "errors": (401,),
    }
    return [
        _token_endpoint(
            "token",
            "exchange_grant",
            "Get tokens",
            token,
            is_genuine=_is_genuine_grant,
            has_secret=True,
            query_type=schema.TokenQuery,
            body_type=schema.TokenForm,
            response_type=schema.TokenRead,
        ),
        _token_endpoint(
            "device_authorization",
            "authorize_device",
            "Start a device authorization",
            authorize_device,
            is_genuine=_is_genuine_client,
            has_secret=True,
            body_type=schema.DeviceAuthorizationForm,
            response_type=schema.DeviceAuthorization,
            errors=(401, 429),
        ),
        _token_endpoint("revoke", "revoke_token", "Revoke a token", revoke, body_type=schema.TokenReferenceForm),
        _token_endpoint(
            "introspect",
            "introspect_token",
            "Introspect a token",
            introspect,
            body_type=schema.TokenReferenceForm,
            response_type=schema.IntrospectionRead,
        ),
        _endpoint("GET", userinfo, "read_userinfo", summary, read_userinfo, is_genuine=_is_genuine_reader, **claims),
        _endpoint(
            "POST",
            userinfo,
            "post_userinfo",
            f"{summary}, by a form",
            post_userinfo,
            is_genuine=_is_genuine_poster,
            form=True,
            body_type=schema.UserinfoForm,
            **claims,
        ),
    ]


def _documents() -> list[AnyRoute]:
    def document(path: str, name: str, summary: str, handler: Any, kind: type) -> AnyRoute:
        return _endpoint("GET", path, name, summary, handler, response_type=kind)

    metadata, kind = "Read the OpenID provider metadata", schema.OpenIdConfiguration
    oauth, server = f"{_KNOWN}/oauth-authorization-server", "Read the authorization server metadata"
    keys = "Read the keys that verify our tokens"
    return [
        document(f"{_OAUTH}/jwks", "read_keys", keys, read_keys, schema.JsonWebKeySet),
        document(f"{_KNOWN}/openid-configuration", "read_openid_configuration", metadata, read_configuration, kind),
        document(oauth, "read_authorization_server", server, read_configuration, kind),
    ]


_CLIENTS: list[AnyRoute] = [
    *crud(
        ClientRegistration,
        path="/api/v1/oauth2clients",
        item=registration.ClientPath,
        name="oauth2_client",
        noun="a client",
        scope="everywhere",
        permission=partial(permission, "oauth2providers"),
        view=registration.CLIENT_VIEW,
        create=registration.ClientWrite,
        update=registration.ClientWrite,
        read=registration.ClientRead,
        accepted=(),
        summaries={"list": "List the registered clients", "create": "Register a client"},
        overrides={
            "create": {"response_type": registration.ClientSecretRead, "view": None, "has_secret": True, "errors": ()},
            "delete": {"success": 204},
        },
    ),
    Route(
        method="POST",
        path="/api/v1/oauth2clients/{clientID}/rotate",
        name="rotate_oauth2_client",
        summary="Replace the secret of a client",
        scope="everywhere",
        permission=permission("oauth2providers", "update"),
        path_type=registration.ClientPath,
        response_type=registration.ClientSecretRead,
        has_secret=True,
        service=ClientRegistration,
        calls=ClientRegistration.rotate,
    ),
]


ROUTES: list[AnyRoute] = [*_tokens(), *_documents(), *_CLIENTS]
