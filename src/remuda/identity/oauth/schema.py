"""Schema of the OAuth 2.0 endpoints. Field names are those of the standards."""

from typing import Annotated

import msgspec

from remuda.http.schema import Parameters
from remuda.kernel.secrets import Secret

BEARER = "Bearer"

_Short = Annotated[str, msgspec.Meta(max_length=2048)]
_Misplaced = Annotated[tuple[str, ...], msgspec.Meta(description="Rejected: send it in the form body.")]


class _Snake(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base whose field names are not converted and whose defaults are omitted."""


class ClientForm(_Snake, frozen=True):
    """Client credentials, unless they are in the Authorization header."""

    client_id: Annotated[
        _Short,
        msgspec.Meta(
            description="Id of the client, unless it is in the Authorization header.", examples=["remuda-cli"]
        ),
    ] = ""
    client_secret: Annotated[
        Secret | None, msgspec.Meta(description="Secret of the client, unless it is in the Authorization header.")
    ] = None
    client_assertion_type: Annotated[
        _Short,
        msgspec.Meta(description="With a client assertion: urn:ietf:params:oauth:client-assertion-type:jwt-bearer."),
    ] = ""
    client_assertion: Annotated[
        Secret | None,
        msgspec.Meta(description="JWT that the client has signed with its key, in place of a secret (RFC 7523)."),
    ] = None


class TokenForm(ClientForm, frozen=True, kw_only=True):
    """Token request. The required fields depend on the grant."""

    grant_type: Annotated[
        _Short,
        msgspec.Meta(
            description="Kind of the request: authorization_code, refresh_token, client_credentials, or the URN of "
            "the device grant or of a token exchange.",
            examples=["refresh_token"],
        ),
    ]
    code: Annotated[Secret | None, msgspec.Meta(description="For authorization_code: the code of the redirect.")] = None
    redirect_uri: Annotated[
        _Short, msgspec.Meta(description="For authorization_code: the redirect URI of the authorization request.")
    ] = ""
    code_verifier: Annotated[
        Secret | None, msgspec.Meta(description="For authorization_code: the verifier of the code_challenge (PKCE).")
    ] = None
    refresh_token: Annotated[
        Secret | None,
        msgspec.Meta(
            description="For refresh_token: the refresh token. It is replaced by the new one in the response.",
            examples=["the-refresh-token-of-the-last-response"],
        ),
    ] = None
    device_code: Annotated[
        Secret | None,
        msgspec.Meta(description="For the device grant: the device_code of the device authorization response."),
    ] = None
    scope: Annotated[_Short, msgspec.Meta(description="Scopes, separated by spaces.")] = ""
    subject_token: Annotated[
        Secret | None, msgspec.Meta(description="For a token exchange: the token to be exchanged.")
    ] = None
    subject_token_type: Annotated[
        _Short, msgspec.Meta(description="For a token exchange: the URN of the type of the subject token.")
    ] = ""
    requested_token_type: Annotated[
        _Short, msgspec.Meta(description="For a token exchange: the URN of the type of the token to be issued.")
    ] = ""
    actor_token: Annotated[Secret | None, msgspec.Meta(description="For a token exchange: not supported.")] = None
    actor_token_type: Annotated[_Short, msgspec.Meta(description="For a token exchange: not supported.")] = ""
    audience: Annotated[
        tuple[_Short, ...], msgspec.Meta(description="For a token exchange: the service that the token is for.")
    ] = ()
    resource: Annotated[
        tuple[_Short, ...],
        msgspec.Meta(description="For a token exchange: the URL of the service that the token is for."),
    ] = ()
    x_organization_id: Annotated[
        _Short, msgspec.Meta(description="For a token exchange: the organization that the token is restricted to.")
    ] = ""
    x_project_id: Annotated[
        _Short, msgspec.Meta(description="For a token exchange: the project that the token is restricted to.")
    ] = ""


class TokenQuery(Parameters, frozen=True):
    """Parameters that are rejected in the query, where proxies may log them."""

    code: _Misplaced = ()
    client_secret: _Misplaced = ()
    client_assertion: _Misplaced = ()
    refresh_token: _Misplaced = ()
    device_code: _Misplaced = ()
    subject_token: _Misplaced = ()
    subject_token_type: _Misplaced = ()
    requested_token_type: _Misplaced = ()
    actor_token: _Misplaced = ()
    actor_token_type: _Misplaced = ()
    audience: _Misplaced = ()
    resource: _Misplaced = ()
    scope: _Misplaced = ()
    x_organization_id: _Misplaced = ()
    x_project_id: _Misplaced = ()


class TokenRead(_Snake, frozen=True):
    """Token response."""

    access_token: Annotated[Secret, msgspec.Meta(description="Token to send as Authorization: Bearer.")]
    token_type: Annotated[str, msgspec.Meta(description="Always Bearer.")]
    expires_in: Annotated[int, msgspec.Meta(description="Seconds until the access token expires.")]
    refresh_token: Annotated[
        Secret | None, msgspec.Meta(description="Token that gets the next access token, once.")
    ] = None
    id_token: Annotated[
        Secret | None,
        msgspec.Meta(description="Claims about the login, as a signed JWT, if the scope openid was requested."),
    ] = None
    issued_token_type: Annotated[
        str, msgspec.Meta(description="After a token exchange: the URN of the type of the token.")
    ] = ""
    scope: Annotated[str, msgspec.Meta(description="Scopes of the token, if they differ from the requested ones.")] = ""


class DeviceAuthorizationForm(ClientForm, frozen=True):
    """Device authorization request."""

    scope: Annotated[_Short, msgspec.Meta(description="Scopes, separated by spaces.", examples=["openid email"])] = ""


class DeviceAuthorization(_Snake, frozen=True, omit_defaults=False):
    """Device authorization response (RFC 8628)."""

    device_code: Annotated[Secret, msgspec.Meta(description="Code with which the client asks for the token.")]
    user_code: Annotated[Secret, msgspec.Meta(description="Code that the user enters in a browser.")]
    verification_uri: Annotated[str, msgspec.Meta(description="Page where the user enters the code.")]
    verification_uri_complete: Annotated[Secret, msgspec.Meta(description="The same page, with the code.")]
    expires_in: Annotated[int, msgspec.Meta(description="Seconds until the codes expire.")]
    interval: Annotated[int, msgspec.Meta(description="Seconds to wait between two requests for the token.")]


class TokenReferenceForm(ClientForm, frozen=True, kw_only=True):
    """Token to be revoked or introspected."""

    token: Annotated[Secret, msgspec.Meta(description="Access token or refresh token.", examples=["the-token"])]
    token_type_hint: Annotated[
        _Short,
        msgspec.Meta(description="Type of the token: access_token or refresh_token. It is found without it, too."),
    ] = ""


class IntrospectionRead(_Snake, frozen=True):
    """State of a token (RFC 7662). An inactive token has no other fields."""

    active: Annotated[bool, msgspec.Meta(description="Whether the token is valid.")]
    scope: Annotated[str, msgspec.Meta(description="Scopes of the token.")] = ""
    client_id: Annotated[str, msgspec.Meta(description="Client that the token was issued to.")] = ""
    username: Annotated[str, msgspec.Meta(description="User of the token, by e-mail address.")] = ""
    token_type: Annotated[str, msgspec.Meta(description="Always Bearer.")] = ""
    exp: Annotated[int | None, msgspec.Meta(description="Time of the expiry, in seconds since 1970.")] = None
    iat: Annotated[int | None, msgspec.Meta(description="Time of the issue, in seconds since 1970.")] = None
    nbf: Annotated[
        int | None, msgspec.Meta(description="Time before which the token is not valid, in seconds since 1970.")
    ] = None
    sub: Annotated[str, msgspec.Meta(description="Subject of the token.")] = ""
    aud: Annotated[tuple[str, ...], msgspec.Meta(description="Services that the token is for.")] = ()
    iss: Annotated[str, msgspec.Meta(description="Issuer of the token.")] = ""
    jti: Annotated[str, msgspec.Meta(description="Id of the token.")] = ""
    idp: Annotated[str, msgspec.Meta(description="Provider of an organization at which the user logged in.")] = ""


class UserinfoForm(_Snake, frozen=True):
    """Access token, unless it is in the Authorization header."""

    access_token: Annotated[
        Secret | None,
        msgspec.Meta(
            description="Access token, unless it is in the Authorization header.", examples=["the-access-token"]
        ),
    ] = None


class Authz(msgspec.Struct, frozen=True, kw_only=True):
    """Account type and organizations of the bearer."""

    acctype: Annotated[
        str,
        msgspec.Meta(
            extra_json_schema={"enum": ["system", "service", "user"]},
            description="Type of the account: a user, a service account (service), or a service of the platform "
            "(system).",
        ),
    ]
    org_ids: Annotated[tuple[str, ...], msgspec.Meta(description="Organizations of the bearer, by id.")] = (
        msgspec.field(name="orgIds")
    )


class UserinfoRead(_Snake, frozen=True):
    """Claims about the bearer of a token. There are no profiles: of their claims, service accounts have a name."""

    sub: Annotated[str, msgspec.Meta(description="Subject of the token.")]
    authz: Authz = msgspec.field(name="https://unikorn-cloud.org/authz")
    email: Annotated[str, msgspec.Meta(description="E-mail address of the user.")] = ""
    email_verified: Annotated[bool, msgspec.Meta(description="Whether the address has been verified.")] = False
    name: Annotated[str, msgspec.Meta(description="Name of a service account.")] = ""
    given_name: Annotated[str, msgspec.Meta(description="Not set.")] = ""
    family_name: Annotated[str, msgspec.Meta(description="Not set.")] = ""
    middle_name: Annotated[str, msgspec.Meta(description="Not set.")] = ""
    nickname: Annotated[str, msgspec.Meta(description="Not set.")] = ""
    preferred_username: Annotated[str, msgspec.Meta(description="Not set.")] = ""
    profile: Annotated[str, msgspec.Meta(description="Not set.")] = ""
    picture: Annotated[str, msgspec.Meta(description="Not set.")] = ""
    website: Annotated[str, msgspec.Meta(description="Not set.")] = ""
    gender: Annotated[str, msgspec.Meta(description="Not set.")] = ""
    birthdate: Annotated[str, msgspec.Meta(description="Not set.")] = ""
    zoneinfo: Annotated[str, msgspec.Meta(description="Not set.")] = ""
    locale: Annotated[str, msgspec.Meta(description="Not set.")] = ""
    updated_at: Annotated[str, msgspec.Meta(description="Not set.")] = ""
    idp: Annotated[str, msgspec.Meta(description="Provider of an organization at which the user logged in.")] = ""


class JsonWebKey(_Snake, frozen=True):
    """Public key (RFC 7517)."""

    kty: Annotated[str, msgspec.Meta(description="Key type.")]
    crv: Annotated[str, msgspec.Meta(description="Curve of the key.")]
    x: Annotated[str, msgspec.Meta(description="First coordinate of the public point, in base64url.")]
    y: Annotated[str, msgspec.Meta(description="Second coordinate of the public point, in base64url.")]
    use: Annotated[str, msgspec.Meta(description="Use of the key: signatures (sig).")]
    alg: Annotated[str, msgspec.Meta(description="Algorithm of the signatures.")]
    kid: Annotated[str, msgspec.Meta(description="Id of the key.")]


class JsonWebKeySet(_Snake, frozen=True, omit_defaults=False):
    """Keys that verify our tokens."""

    keys: Annotated[tuple[JsonWebKey, ...], msgspec.Meta(description="The keys; a token names its key (kid).")]


class OpenIdConfiguration(_Snake, frozen=True, omit_defaults=False):
    """Metadata of this authorization server (OpenID Connect Discovery, RFC 8414)."""

    issuer: Annotated[str, msgspec.Meta(description="Issuer of the tokens.")]
    authorization_endpoint: Annotated[str, msgspec.Meta(description="URL where a browser begins a login.")]
    token_endpoint: Annotated[str, msgspec.Meta(description="URL where clients get tokens.")]
    userinfo_endpoint: Annotated[str, msgspec.Meta(description="URL that returns claims about the bearer of a token.")]
    jwks_uri: Annotated[str, msgspec.Meta(description="URL of the keys that verify tokens.")]
    revocation_endpoint: Annotated[str, msgspec.Meta(description="URL where clients revoke tokens.")]
    introspection_endpoint: Annotated[str, msgspec.Meta(description="URL that returns the state of a token.")]
    device_authorization_endpoint: Annotated[
        str, msgspec.Meta(description="URL where a client without a browser begins a login.")
    ]
    end_session_endpoint: Annotated[str, msgspec.Meta(description="URL where a browser logs out.")]
    scopes_supported: Annotated[tuple[str, ...], msgspec.Meta(description="Scopes that a client may ask for.")]
    claims_supported: Annotated[tuple[str, ...], msgspec.Meta(description="Claims that tokens and responses may have.")]
    response_types_supported: Annotated[tuple[str, ...], msgspec.Meta(description="Supported values of response_type.")]
    response_modes_supported: Annotated[tuple[str, ...], msgspec.Meta(description="Supported values of response_mode.")]
    subject_types_supported: Annotated[
        tuple[str, ...], msgspec.Meta(description="Kinds of subjects: public ones are the same for every client.")
    ]
    token_endpoint_auth_methods_supported: Annotated[
        tuple[str, ...], msgspec.Meta(description="Ways by which clients authenticate.")
    ]
    token_endpoint_auth_signing_alg_values_supported: Annotated[
        tuple[str, ...], msgspec.Meta(description="Algorithms that clients may sign assertions with.")
    ]
    grant_types_supported: Annotated[tuple[str, ...], msgspec.Meta(description="Supported values of grant_type.")]
    id_token_signing_alg_values_supported: Annotated[
        tuple[str, ...], msgspec.Meta(description="Algorithms that ID tokens are signed with.")
    ]
    code_challenge_methods_supported: Annotated[tuple[str, ...], msgspec.Meta(description="Supported methods of PKCE.")]
    claims_parameter_supported: Annotated[
        bool, msgspec.Meta(description="Whether an authorization request may name claims.")
    ]
    request_parameter_supported: Annotated[
        bool, msgspec.Meta(description="Whether an authorization request may be a JWT.")
    ]
    request_uri_parameter_supported: Annotated[
        bool, msgspec.Meta(description="Whether an authorization request may be fetched from a URL.")
    ]
    authorization_response_iss_parameter_supported: Annotated[
        bool, msgspec.Meta(description="Whether the redirect names the issuer (RFC 9207).")
    ]
