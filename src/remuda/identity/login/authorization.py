"""Authorization requests (RFC 6749, RFC 7636, OpenID Connect Core).

An unknown client, or a redirect URI that is not registered, gets an error page and never a redirect: this prevents an
open redirect. Every later error is sent to the redirect URI with the client's `state` and our `iss` (RFC 9207). Every
client must use PKCE with S256, except a confidential client that was registered without.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated

import msgspec

from remuda.http.pages import with_query
from remuda.http.schema import Parameters
from remuda.identity.kinds.oauth import OAuth2Client
from remuda.identity.oauth.clients import allows_redirect, needs_challenge
from remuda.identity.tokens.jwt import ID, IdClaims
from remuda.identity.tokens.service import Tokens
from remuda.kernel.errors import Malformed, OAuthError, Unauthenticated

_Short = Annotated[str, msgspec.Meta(max_length=512)]
_Long = Annotated[str, msgspec.Meta(max_length=2048)]
_Hint = Annotated[str, msgspec.Meta(max_length=8192)]

_CHALLENGE = re.compile(r"[A-Za-z0-9._~-]{43,128}")
_SECONDS = re.compile(r"[0-9]{1,9}")
_PROMPTS = frozenset({"none", "login", "consent", "select_account"})


class AuthorizationRequest(Parameters, frozen=True, omit_defaults=True):
    """Parameters of an authorization request. All are strings, so that every error can be sent to the client."""

    client_id: Annotated[_Short, msgspec.Meta(description="Id of the client.", examples=["remuda-cli"])] = ""
    redirect_uri: Annotated[
        _Long,
        msgspec.Meta(
            description="One of the redirect URIs of the client.", examples=["http://127.0.0.1:8400/callback"]
        ),
    ] = ""
    response_type: Annotated[_Short, msgspec.Meta(description="Must be code.", examples=["code"])] = ""
    response_mode: Annotated[_Short, msgspec.Meta(description="query, or form_post.")] = ""
    scope: Annotated[_Long, msgspec.Meta(description="Scopes, separated by spaces.", examples=["openid email"])] = ""
    state: Annotated[
        _Long,
        msgspec.Meta(
            description="Value that the redirect repeats, by which the client recognizes its request.",
            examples=["af0ifjsldkj"],
        ),
    ] = ""
    nonce: Annotated[_Short, msgspec.Meta(description="Value that the ID token repeats.")] = ""
    code_challenge: Annotated[
        _Short, msgspec.Meta(description="Challenge of PKCE.", examples=["E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"])
    ] = ""
    code_challenge_method: Annotated[_Short, msgspec.Meta(description="Must be S256.", examples=["S256"])] = ""
    max_age: Annotated[_Short, msgspec.Meta(description="Seconds after which the user has to log in again.")] = ""
    prompt: Annotated[
        _Short,
        msgspec.Meta(
            description="none: fail rather than ask the user. login, consent or select_account: ask in any case."
        ),
    ] = ""
    login_hint: Annotated[_Short, msgspec.Meta(description="E-mail address of the user.")] = ""
    acr_values: Annotated[
        _Short, msgspec.Meta(description="Requested classes of authentication, separated by spaces.")
    ] = ""
    display: Annotated[_Short, msgspec.Meta(description="Ignored.")] = ""
    ui_locales: Annotated[_Short, msgspec.Meta(description="Ignored.")] = ""
    id_token_hint: Annotated[
        _Hint, msgspec.Meta(description="ID token of an earlier login: another user is rejected.")
    ] = ""
    request: Annotated[_Hint, msgspec.Meta(description="Not supported.")] = ""
    request_uri: Annotated[_Long, msgspec.Meta(description="Not supported.")] = ""
    registration: Annotated[_Long, msgspec.Meta(description="Not supported.")] = ""


def check_redirect_uri(request: AuthorizationRequest, client: OAuth2Client | None) -> OAuth2Client:
    """Return the client of a request, or raise Malformed if it is unknown or the redirect URI is not registered."""
    for name, value in (("client_id", request.client_id), ("redirect_uri", request.redirect_uri)):
        if not value:
            raise Malformed(f"The application sent no {name}: contact its operator.")
    if client is None:
        raise Malformed("No application is registered with this client_id: contact the operator of the application.")
    if not allows_redirect(client, request.redirect_uri):
        raise Malformed(
            "The redirect_uri of the application is not registered: contact the operator of the application."
        )
    return client


def check_request(request: AuthorizationRequest, client: OAuth2Client) -> None:
    """Raise OAuthError, in the order that clients rely on, if the request is not supported."""
    if request.request:
        raise OAuthError("request_not_supported", "request is not supported: send each parameter on its own")
    if request.request_uri:
        raise OAuthError("request_uri_not_supported", "request_uri is not supported: send the parameters themselves")
    if request.registration:
        raise OAuthError("registration_not_supported", "registration is not supported: an operator registers clients")
    if request.response_type != "code":
        raise OAuthError("unsupported_response_type", "response_type is not supported: use code")
    if request.response_mode not in {"", "query"}:
        raise OAuthError("request_not_supported", "response_mode is not supported: use query")
    _check_challenge(request, client)
    _check_prompt(request)


def _check_challenge(request: AuthorizationRequest, client: OAuth2Client) -> None:
    challenge, method = request.code_challenge, request.code_challenge_method
    if method != ("S256" if challenge else ""):
        raise OAuthError("invalid_request", "code_challenge_method is not supported: send a code_challenge with S256")
    if challenge and not _CHALLENGE.fullmatch(challenge):
        raise OAuthError("invalid_request", "code_challenge is malformed: send 43 to 128 unreserved characters")
    if not challenge and needs_challenge(client):
        raise OAuthError("invalid_request", "code_challenge is missing: send one with the method S256")


def _check_prompt(request: AuthorizationRequest) -> None:
    requested = prompts(request)
    if requested - _PROMPTS:
        raise OAuthError("invalid_request", f"prompt is not supported: use {', '.join(sorted(_PROMPTS))}")
    if "none" in requested and len(requested) > 1:
        raise OAuthError("invalid_request", "prompt has none together with other values: send none alone")
    if request.max_age and not _SECONDS.fullmatch(request.max_age):
        raise OAuthError("invalid_request", "max_age is malformed: send a number of seconds")


def prompts(request: AuthorizationRequest) -> frozenset[str]:
    return frozenset(request.prompt.split())


def provider_parameters(request: AuthorizationRequest | None, email: str) -> Mapping[str, str]:
    """Return the parameters of a client's request that are forwarded to an external provider."""
    if request is None:
        return {"login_hint": email}
    return {
        "login_hint": email or request.login_hint,
        "max_age": request.max_age,
        "acr_values": request.acr_values,
        "prompt": " ".join(sorted(prompts(request) - {"none"})),
    }


def is_fresh(request: AuthorizationRequest, authenticated: datetime | None, now: datetime) -> bool:
    """Tell whether a login of that time satisfies the request. With a `max_age` of 0 none does."""
    if prompts(request) & {"login", "select_account"}:
        return False
    if not request.max_age:
        return True
    return authenticated is not None and (now - authenticated).total_seconds() < int(request.max_age)


def response_location(request: AuthorizationRequest, issuer: str, parameters: Mapping[str, str]) -> str:
    sent = {**parameters, **({"state": request.state} if request.state else {}), "iss": issuer}
    return with_query(request.redirect_uri, sent)


def error_location(request: AuthorizationRequest, issuer: str, error: OAuthError) -> str:
    return response_location(request, issuer, {"error": error.error, "error_description": error.message})


async def read_id_token_hint(tokens: Tokens, token: str) -> IdClaims | None:
    """Return the claims of an ID token that we issued, even an expired one, or None."""
    try:
        return await tokens.read(token, ID) if token else None
    except Unauthenticated:
        return None
