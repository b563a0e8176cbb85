"""The routes that programs use; those for browsers are those of the room `login`."""

from remuda.http.routes import AnyRoute, ListQuery, Route
from remuda.identity.oauth import client_wire, handlers
from remuda.identity.oauth import schema as wire
from remuda.identity.oauth.registration import right
from remuda.resources.service_info import protected_resource_route

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
            handler=handlers.token,
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
            handler=handlers.authorize_device,
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
            handler=handlers.revoke,
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
            handler=handlers.introspect,
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
            handler=handlers.read_userinfo,
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
            handler=handlers.post_userinfo,
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
            handler=handlers.read_keys,
        ),
        Route(
            method="GET",
            path=f"{_KNOWN}/openid-configuration",
            name="read_openid_configuration",
            summary="Read where everything is that OpenID Connect needs",
            scope="public",
            answer_type=wire.OpenIdConfiguration,
            handler=handlers.read_configuration,
        ),
        Route(
            method="GET",
            path=f"{_KNOWN}/oauth-authorization-server",
            name="read_authorization_server",
            summary="Read the same, where OAuth2 looks for it",
            scope="public",
            answer_type=wire.OpenIdConfiguration,
            handler=handlers.read_configuration,
        ),
        protected_resource_route(handlers.read_protected_resource),
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
            handler=handlers.list_clients,
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
            handler=handlers.create_client,
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
            handler=handlers.get_client,
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
            handler=handlers.update_client,
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
            handler=handlers.delete_client,
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
            handler=handlers.rotate_client,
        ),
    ]
