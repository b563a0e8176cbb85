"""Service information: the name, release and authorization server of a service, and the routes that tell them."""

from dataclasses import dataclass
from typing import Annotated

import msgspec

from remuda.http.routes import AnyRoute, Route
from remuda.resources.schema import VersionRead

DAY_S = 24 * 60 * 60
"""Cache lifetime of responses that hardly ever change."""
SCOPES = ("openid", "email", "profile")
"""The scopes that change the response to a client: an ID token, and the address in it."""


class OpenIdProtectedResource(msgspec.Struct, frozen=True, kw_only=True):
    """The authorization server of this service (RFC 9728)."""

    resource: Annotated[str, msgspec.Meta(description="URL of the service.")]
    authorization_servers: Annotated[
        tuple[str, ...], msgspec.Meta(description="Issuers whose tokens the service accepts.")
    ]
    scopes_supported: Annotated[tuple[str, ...], msgspec.Meta(description="Scopes that a client may ask for.")]
    bearer_methods_supported: Annotated[
        tuple[str, ...], msgspec.Meta(description="Where a request may carry its token: in the Authorization header.")
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceInfo:
    """Information about a service. Its addresses come from the configuration, never from a request."""

    name: str
    """Clients compare the beginning, up to the second dash."""
    release: str
    url: str
    issuer: str

    def version(self) -> VersionRead:
        """Return the name and release of the service."""
        return VersionRead(name=self.name, version=self.release)

    def protected_resource(self) -> OpenIdProtectedResource:
        """Return the authorization server whose tokens the service accepts."""
        return OpenIdProtectedResource(
            resource=self.url.rstrip("/"),
            authorization_servers=(self.issuer,),
            scopes_supported=SCOPES,
            bearer_methods_supported=("header",),
        )


ROUTES: list[AnyRoute] = [
    Route(
        method="GET",
        path="/api/version",
        name="read_version",
        summary="Read the name and version of the service",
        scope="authenticated",
        response_type=VersionRead,
        service=ServiceInfo,
        calls=ServiceInfo.version,
    ),
    Route(
        method="GET",
        path="/.well-known/openid-protected-resource",
        name="read_protected_resource",
        summary="Read the authorization server of the service",
        scope="public",
        response_type=OpenIdProtectedResource,
        max_age_s=DAY_S,
        service=ServiceInfo,
        calls=ServiceInfo.protected_resource,
    ),
]
"""The routes of `ServiceInfo`."""
