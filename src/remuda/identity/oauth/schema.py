"""Schema of the OAuth 2.0 endpoints. Field names are those of the standards."""

from typing import Annotated

import msgspec

from remuda.http.schema import Parameters
from remuda.kernel.secrets import Secret

BEARER = "Bearer"

_Short = Annotated[str, msgspec.Meta(max_length=2048)]
_Misplaced = Annotated[str, msgspec.Meta(description="Rejected: send it in the form body.")]


class _Snake(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base whose field names are not converted and whose defaults are omitted."""


class ClientForm(_Snake, frozen=True):
    """Client credentials, unless they are in the Authorization header."""

    client_id: _Short = ""
    client_secret: Secret | None = None
    client_assertion_type: _Short = ""
    client_assertion: Secret | None = None


class TokenForm(ClientForm, frozen=True, kw_only=True):
    """Token request. The required fields depend on the grant."""

    grant_type: _Short
    code: Secret | None = None
    redirect_uri: _Short = ""
    code_verifier: Secret | None = None
    refresh_token: Secret | None = None
    device_code: Secret | None = None
    scope: _Short = ""
    subject_token: Secret | None = None
    subject_token_type: _Short = ""
    requested_token_type: _Short = ""
    actor_token: Secret | None = None
    actor_token_type: _Short = ""
    audience: tuple[_Short, ...] = ()
    resource: tuple[_Short, ...] = ()
    x_organization_id: _Short = ""
    x_project_id: _Short = ""


class TokenQuery(Parameters, frozen=True):
    """Parameters that are rejected in the query, where proxies may log them."""

    code: tuple[_Misplaced, ...] = ()
    client_secret: tuple[_Misplaced, ...] = ()
    client_assertion: tuple[_Misplaced, ...] = ()
    refresh_token: tuple[_Misplaced, ...] = ()
    device_code: tuple[_Misplaced, ...] = ()
    subject_token: tuple[_Misplaced, ...] = ()
    subject_token_type: tuple[_Misplaced, ...] = ()
    requested_token_type: tuple[_Misplaced, ...] = ()
    actor_token: tuple[_Misplaced, ...] = ()
    actor_token_type: tuple[_Misplaced, ...] = ()
    audience: tuple[_Misplaced, ...] = ()
    resource: tuple[_Misplaced, ...] = ()
    scope: tuple[_Misplaced, ...] = ()
    x_organization_id: tuple[_Misplaced, ...] = ()
    x_project_id: tuple[_Misplaced, ...] = ()


class TokenRead(_Snake, frozen=True):
    """Token response."""

    access_token: Secret
    token_type: str
    expires_in: int
    refresh_token: Secret | None = None
    id_token: Secret | None = None
    issued_token_type: str = ""
    scope: str = ""


class DeviceAuthorizationForm(ClientForm, frozen=True):
    """Device authorization request."""

    scope: _Short = ""


class DeviceAuthorization(_Snake, frozen=True, omit_defaults=False):
    """Device authorization response (RFC 8628)."""

    device_code: Secret
    user_code: Secret
    verification_uri: str
    verification_uri_complete: Secret
    expires_in: int
    interval: int


class TokenReferenceForm(ClientForm, frozen=True, kw_only=True):
    """Token to be revoked or introspected."""

    token: Secret
    token_type_hint: _Short = ""


class IntrospectionRead(_Snake, frozen=True):
    """State of a token (RFC 7662). An inactive token has no other fields."""

    active: bool
    scope: str = ""
    client_id: str = ""
    username: str = ""
    token_type: str = ""
    exp: int | None = None
    iat: int | None = None
    nbf: int | None = None
    sub: str = ""
    aud: tuple[str, ...] = ()
    iss: str = ""
    jti: str = ""
    idp: str = ""


class UserinfoForm(_Snake, frozen=True):
    """Access token, unless it is in the Authorization header."""

    access_token: Secret | None = None


class Authz(msgspec.Struct, frozen=True, kw_only=True):
    """Account type and organizations of the bearer."""

    acctype: Annotated[str, msgspec.Meta(extra_json_schema={"enum": ["system", "service", "user"]})]
    org_ids: tuple[str, ...] = msgspec.field(name="orgIds")


class UserinfoRead(_Snake, frozen=True):
    """Claims about the bearer of a token. There are no profiles, so profile claims are never set."""

    sub: str
    authz: Authz = msgspec.field(name="https://unikorn-cloud.org/authz")
    email: str = ""
    email_verified: bool = False
    name: str = ""
    given_name: str = ""
    family_name: str = ""
    middle_name: str = ""
    nickname: str = ""
    preferred_username: str = ""
    profile: str = ""
    picture: str = ""
    website: str = ""
    gender: str = ""
    birthdate: str = ""
    zoneinfo: str = ""
    locale: str = ""
    updated_at: str = ""
    idp: str = ""
    """Provider of an organization at which the user logged in."""


class JsonWebKey(_Snake, frozen=True):
    """Public key (RFC 7517)."""

    kty: str
    crv: str
    x: str
    y: str
    use: str
    alg: str
    kid: str


class JsonWebKeySet(_Snake, frozen=True, omit_defaults=False):
    """Keys that verify our tokens."""

    keys: tuple[JsonWebKey, ...]


class OpenIdConfiguration(_Snake, frozen=True, omit_defaults=False):
    """Metadata of this authorization server (OpenID Connect Discovery, RFC 8414)."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    userinfo_endpoint: str
    jwks_uri: str
    revocation_endpoint: str
    introspection_endpoint: str
    device_authorization_endpoint: str
    end_session_endpoint: str
    scopes_supported: tuple[str, ...]
    claims_supported: tuple[str, ...]
    response_types_supported: tuple[str, ...]
    response_modes_supported: tuple[str, ...]
    subject_types_supported: tuple[str, ...]
    token_endpoint_auth_methods_supported: tuple[str, ...]
    token_endpoint_auth_signing_alg_values_supported: tuple[str, ...]
    grant_types_supported: tuple[str, ...]
    id_token_signing_alg_values_supported: tuple[str, ...]
    code_challenge_methods_supported: tuple[str, ...]
    claims_parameter_supported: bool
    request_parameter_supported: bool
    request_uri_parameter_supported: bool
    authorization_response_iss_parameter_supported: bool
