"""Service information: the routes that tell the authorization server and the release of a service."""

from collections.abc import Callable, Coroutine
from typing import Any

import msgspec

from remuda.http.routes import AnyRoute, Call, Route
from remuda.http.schema import Nothing
from remuda.resources.schema import VersionRead

DAY_S = 24 * 60 * 60
"""Cache lifetime of responses that hardly ever change."""
SCOPES = ("openid", "email")
"""The scopes that change the response to a client: an ID token, and the address in it."""

PlainCall = Call[Nothing, Nothing, Nothing]
"""A request without parameters or body."""


class OpenIdProtectedResource(msgspec.Struct, frozen=True, kw_only=True):
    """The authorization server of this service (RFC 9728)."""

    resource: str
    authorization_servers: tuple[str, ...]
    scopes_supported: tuple[str, ...]
    bearer_methods_supported: tuple[str, ...]


def protected_resource(url: str, issuer: str) -> OpenIdProtectedResource:
    """Return the authorization server of this address. Both come from the configuration, never from a request."""
    return OpenIdProtectedResource(
        resource=url, authorization_servers=(issuer,), scopes_supported=SCOPES, bearer_methods_supported=("header",)
    )


def protected_resource_route(
    handler: Callable[[Any, PlainCall], Coroutine[Any, Any, OpenIdProtectedResource]] | None = None,
    *,
    service: type | None = None,
    calls: Callable[..., Any] | None = None,
) -> AnyRoute:
    """Return the route that tells the authorization server. It calls a method of the service, or has a handler."""
    return Route(
        method="GET",
        path="/.well-known/openid-protected-resource",
        name="read_protected_resource",
        summary="Read the authorization server of the service",
        scope="public",
        response_type=OpenIdProtectedResource,
        max_age_s=DAY_S,
        service=service,
        calls=calls,
        handler=handler,
    )


def version_route(*, service: type, calls: Callable[..., Any]) -> AnyRoute:
    """Return the route that tells the release. It calls a method of the service."""
    return Route(
        method="GET",
        path="/api/version",
        name="read_version",
        summary="Read the name and version of the service",
        scope="authenticated",
        response_type=VersionRead,
        service=service,
        calls=calls,
    )
