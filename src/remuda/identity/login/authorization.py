"""The authorization request: what a client asks, what is wrong with it, and how it is answered.

Whoever cannot be shown to be a registered client at its registered address gets a page and is never sent anywhere; this
is the only thing that stands between us and an open redirect (`redirects` says which addresses are registered ones).
Everything after that is told to the client at its address, with the `state` it sent and our `iss` (RFC 9207).

PKCE is demanded of clients that cannot keep a secret, and only S256: with `plain`, whoever sees the request has it all.

ID tokens that clients show us again, to say whom they mean (`id_token_hint`).
"""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated

import msgspec

from remuda.http.pages import with_query
from remuda.http.routes import Parameters
from remuda.identity.kinds.oauth import OAuth2Client
from remuda.identity.oauth.clients import allows_redirect
from remuda.identity.tokens.jwt import ID, IdClaims
from remuda.identity.tokens.service import Tokens
from remuda.kernel.errors import Malformed, OAuthError, Unauthenticated

_Short = Annotated[str, msgspec.Meta(max_length=512)]
_Long = Annotated[str, msgspec.Meta(max_length=2048)]
_Hint = Annotated[str, msgspec.Meta(max_length=8192)]

_CHALLENGE = re.compile(r"[A-Za-z0-9._~-]{43,128}")
_WHOLE = re.compile(r"[0-9]{1,9}")
_PROMPTS = frozenset({"none", "login", "consent", "select_account"})


class AuthorizationRequest(Parameters, frozen=True, omit_defaults=True):
    """The parameters of RFC 6749, RFC 7636 and OpenID Connect. All are text, so that a client is told what is wrong."""

    client_id: _Short = ""
    redirect_uri: _Long = ""
    response_type: _Short = ""
    response_mode: _Short = ""
    scope: _Long = ""
    state: _Long = ""
    nonce: _Short = ""
    code_challenge: _Short = ""
    code_challenge_method: _Short = ""
    max_age: _Short = ""
    prompt: _Short = ""
    login_hint: _Short = ""
    acr_values: _Short = ""
    display: _Short = ""
    ui_locales: _Short = ""
    id_token_hint: _Hint = ""
    request: _Hint = ""
    request_uri: _Long = ""
    registration: _Long = ""


def check_address(request: AuthorizationRequest, client: OAuth2Client | None) -> OAuth2Client:
    """Return the client that asks, if the request is from one and says an address of its own."""
    for name, value in (("client_id", request.client_id), ("redirect_uri", request.redirect_uri)):
        if not value:
            raise Malformed(f"The application did not say its {name}: tell whoever runs it.")
    if client is None:
        raise Malformed("No application is registered under this client_id: tell whoever runs the application.")
    if not allows_redirect(client, request.redirect_uri):
        raise Malformed(
            "The application wants you sent to an address that is not registered for it, so you stay here: "
            "tell whoever runs it that redirect_uri has to be a registered one, letter by letter."
        )
    return client


def check_request(request: AuthorizationRequest, client: OAuth2Client) -> None:
    """Raise OAuthError, in the order that clients rely on, if it is not a request that we can answer."""
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
    _check_challenge(request, is_public=client.spec.is_public)
    _check_asking(request)


def _check_challenge(request: AuthorizationRequest, *, is_public: bool) -> None:
    challenge, method = request.code_challenge, request.code_challenge_method
    if method not in {"", "plain", "S256"}:
        raise OAuthError("invalid_request", "code_challenge_method is not supported: use S256")
    if challenge and not _CHALLENGE.fullmatch(challenge):
        raise OAuthError("invalid_request", "code_challenge is malformed: send 43 to 128 of the unreserved characters")
    if method and not challenge:
        raise OAuthError("invalid_request", "code_challenge is missing: send it with its code_challenge_method")
    if is_public and (not challenge or method != "S256"):
        raise OAuthError("invalid_request", "this client has no secret: send a code_challenge with the method S256")


def _check_asking(request: AuthorizationRequest) -> None:
    asked = prompts(request)
    if asked - _PROMPTS:
        raise OAuthError("invalid_request", f"prompt is not supported: use {', '.join(sorted(_PROMPTS))}")
    if "none" in asked and len(asked) > 1:
        raise OAuthError("invalid_request", "prompt has none and something besides: send none alone")
    if request.max_age and not _WHOLE.fullmatch(request.max_age):
        raise OAuthError("invalid_request", "max_age is malformed: send a number of seconds")


def prompts(request: AuthorizationRequest) -> frozenset[str]:
    return frozenset(request.prompt.split())


def upstream_wishes(request: AuthorizationRequest | None, email: str) -> Mapping[str, str]:
    """Return what of a client's request a provider is told, for whoever has this address, if it is known."""
    if request is None:
        return {"login_hint": email}
    return {
        "login_hint": email or request.login_hint,
        "max_age": request.max_age,
        "acr_values": request.acr_values,
        "prompt": " ".join(sorted(prompts(request) - {"none"})),
    }


def is_fresh(request: AuthorizationRequest, authenticated: datetime | None, now: datetime) -> bool:
    """Tell whether a login of that time is good enough; with a `max_age` of 0 none is."""
    if prompts(request) & {"login", "select_account"}:
        return False
    if not request.max_age:
        return True
    return authenticated is not None and (now - authenticated).total_seconds() < int(request.max_age)


def answer_location(request: AuthorizationRequest, issuer: str, answer: Mapping[str, str]) -> str:
    """Return where the browser is sent with an answer."""
    told = {**answer, **({"state": request.state} if request.state else {}), "iss": issuer}
    return with_query(request.redirect_uri, told)


def error_location(request: AuthorizationRequest, issuer: str, refusal: OAuthError) -> str:
    """Return where the browser is sent with a refusal."""
    return answer_location(request, issuer, {"error": refusal.error, "error_description": refusal.message})


async def hinted(tokens: Tokens, token: str) -> IdClaims | None:
    """Return what an ID token of ours says, whenever it was made; None if it is not ours, and so says nothing."""
    try:
        return await tokens.read(token, ID) if token else None
    except Unauthenticated:
        return None
