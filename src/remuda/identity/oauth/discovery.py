"""What we tell about ourselves: only what is true.

The reference lists things that it does not do (the response type `id_token`, the scope `profile`, its name as whatever
the request's Host header says); here every address comes from the configured issuer.
"""

from remuda.identity.oauth.assertion import ALGORITHMS
from remuda.identity.oauth.exchange import TOKEN_EXCHANGE
from remuda.identity.oauth.grants import AUTHORIZATION_CODE, CLIENT_CREDENTIALS, DEVICE_CODE, REFRESH_TOKEN
from remuda.identity.oauth.schema import OpenIdConfiguration
from remuda.identity.settings import IdentitySettings
from remuda.resources.service_info import SCOPES


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
