"""Stored providers, clients, passwords, authorization codes, device grants and browser logins."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Annotated, Literal

import msgspec

from remuda.identity.kinds.common import remuda_kind, shared_kind
from remuda.identity.kinds.factors import AuthenticationMethod, LoginProof, proof_of
from remuda.kernel.conditions import Condition
from remuda.kernel.secrets import Secret
from remuda.kernel.tags import Tag
from remuda.resources.conventions import ORGANIZATION
from remuda.store.kinds import Index, keyed
from remuda.store.objects import Resource, StoredStruct

LoginProviderType = Literal["custom", "google", "microsoft", "github"]
"""Dialect of a provider."""


class BearerTrust(StoredStruct, frozen=True):
    """Conditions under which tokens of a provider are accepted."""

    audience: str
    allow_external_identity: bool = False
    skip_email_verification: bool = False
    require_authz_claim: bool = False
    signing_algorithms: tuple[str, ...] = ()
    groups_claim: str = ""


class OAuth2ProviderSpec(StoredStruct, frozen=True):
    """External OpenID provider."""

    issuer: str = ""
    type: LoginProviderType = "custom"
    client_id: str = msgspec.field(default="", name="clientID")
    client_secret: Secret | None = None
    client_secret_name: str = ""
    authorization_uri: str = msgspec.field(default="", name="authorizationURI")
    token_uri: str = msgspec.field(default="", name="tokenURI")
    bearer_trust: BearerTrust | None = None
    tags: tuple[Tag, ...] = ()


class OAuth2Provider(Resource, frozen=True):
    """External OpenID provider of an organization or, without that label, of the whole system."""

    spec: OAuth2ProviderSpec = OAuth2ProviderSpec()


class OAuth2ClientSpec(StoredStruct, frozen=True):
    """Application to which users log in through identity."""

    redirect_uri: str = ""
    redirect_uris: tuple[str, ...] = ()
    """Further redirect URIs; each is compared exactly."""
    home_uri: str = ""
    login_uri: str = ""
    error_uri: str = ""
    is_public: bool = False
    """It has no secret."""
    is_challenge_optional: bool = False
    """Its authorization requests need no code challenge (PKCE). Never of a public client."""
    public_key: str = ""
    """PEM key that verifies the client's assertions."""
    secret_hash: str = ""
    """SHA-256 of the secret, in hex. The secret itself is shown once and not stored."""
    is_first_party: bool = False
    """It is the platform's own, and accepts logins at the providers of organizations."""
    organizations: tuple[str, ...] = ()
    """Organizations whose own providers it accepts logins at."""
    tags: tuple[Tag, ...] = ()


class OAuth2ClientStatus(StoredStruct, frozen=True):
    """Status of a client. The secret is not part of it, since it is created in the same write as the client."""

    secret: str = ""
    """Clear-text secret in existing clusters; always empty here."""
    conditions: Annotated[tuple[Condition, ...], keyed("type")] = ()


class OAuth2Client(Resource, frozen=True):
    """Registered client, named by its client id."""

    spec: OAuth2ClientSpec = OAuth2ClientSpec()
    status: OAuth2ClientStatus = OAuth2ClientStatus()


class PasswordSpec(StoredStruct, frozen=True):
    """Password of a local user."""

    hash: Secret | None = None
    """Argon2 hash of the password, sealed."""
    changed: datetime | None = None
    is_temporary: bool = False
    """It only lets its user choose another one."""
    reset_hash: str = ""
    """SHA-256 of a one-time link that sets the password, in hex."""
    reset_expires: datetime | None = None
    reset_organization: str = ""
    """Organization that the link was made for: the first password accepts its invitation."""


class Password(Resource, frozen=True):
    """Password of a local user, named after the user."""

    spec: PasswordSpec = PasswordSpec()


class AuthorizationCodeSpec(StoredStruct, frozen=True):
    """Login that a client has yet to exchange for tokens."""

    user: str = ""
    client: str = ""
    redirect_uri: str = ""
    scope: str = ""
    nonce: str = ""
    challenge: str = ""
    provider: str = ""
    authenticated: datetime | None = None
    expires: datetime | None = None
    is_used: bool = False
    is_reused: bool = False
    """The code was used a second time while the first exchange was running, which then fails, too."""
    login: str = ""
    """Browser login behind it, if there is one: the resulting session ends with it."""
    methods: tuple[AuthenticationMethod, ...] = ()
    """Methods by which we authenticated the user; none of a provider's."""


class AuthorizationCode(Resource, frozen=True):
    """Authorization code, named after its SHA-256."""

    spec: AuthorizationCodeSpec = AuthorizationCodeSpec()


class DeviceGrantSpec(StoredStruct, frozen=True):
    """Device that waits for the approval of a user."""

    client: str = ""
    scope: str = ""
    user_code_hash: str = ""
    """SHA-256 of the user code, in hex."""
    user: str = ""
    is_denied: bool = False
    provider: str = ""
    authenticated: datetime | None = None
    expires: datetime | None = None
    interval_s: int = 5
    login: str = ""
    """Browser login that approved it: the resulting session ends with it."""
    methods: tuple[AuthenticationMethod, ...] = ()
    """Methods by which we authenticated the user; none of a provider's."""


class DeviceGrant(Resource, frozen=True):
    """Device grant, named after the SHA-256 of its device code."""

    spec: DeviceGrantSpec = DeviceGrantSpec()


class UsedAssertionSpec(StoredStruct, frozen=True):
    """Used client assertion."""

    expires: datetime | None = None
    """Expiry of the assertion, after which this record is not needed."""


class UsedAssertion(Resource, frozen=True):
    """Client assertion that must not be accepted again, named after its issuer and `jti`."""

    spec: UsedAssertionSpec = UsedAssertionSpec()


def _of_platform(provider: OAuth2Provider) -> Iterator[str]:
    if ORGANIZATION not in provider.metadata.labels:
        yield "yes"
        if provider.spec.client_id:
            yield "login"


OAUTH2_PROVIDER = shared_kind(
    OAuth2Provider,
    "oauth2providers",
    counted_in=ORGANIZATION,
    indexes=(Index(name="platform", values=_of_platform),),
    columns={"Issuer": ".spec.issuer", "Client ID": ".spec.clientID"},
)
"""Providers, found by the label of their organization; global ones by the index `platform`, as `login` if identity is a
client there, and all of them as `yes`."""

OAUTH2_CLIENT = shared_kind(
    OAuth2Client,
    "oauth2clients",
    uncounted="created by platform administrators",
    indexes=(Index(name="id", values=lambda client: [client.name]),),
    columns={"Redirect URI": ".spec.redirectUri"},
)
"""Clients, found by their id also by an index, which needs no request to the API server on Kubernetes."""

PASSWORD = remuda_kind(
    Password,
    "passwords",
    uncounted="one for each user",
    indexes=(Index(name="link", values=lambda each: [each.spec.reset_hash] if each.spec.reset_hash else []),),
)
"""Passwords, found by the link that sets them."""

AUTHORIZATION_CODE = remuda_kind(
    AuthorizationCode,
    "authorizationcodes",
    uncounted="removed when it has expired",
    indexes=(Index(name="code", values=lambda code: [code.name]),),
)
"""Authorization codes, which live for a minute, found by their hash."""

DEVICE_GRANT = remuda_kind(
    DeviceGrant,
    "devicegrants",
    uncounted="removed when it has expired",
    indexes=(
        Index(name="user-code", values=lambda grant: [grant.spec.user_code_hash]),
        Index(name="device-code", values=lambda grant: [grant.name]),
    ),
)
"""Device grants, found by their user code."""

USED_ASSERTION = remuda_kind(UsedAssertion, "usedassertions", uncounted="removed when it has expired")
"""Used assertions, until they expire."""


class UsedStateSpec(StoredStruct, frozen=True):
    """Used state of a login."""

    expires: datetime | None = None
    """Expiry of the state, after which this record is not needed."""


class UsedState(Resource, frozen=True):
    """State of a login that was used: it is not accepted again. Named after its SHA-256."""

    spec: UsedStateSpec = UsedStateSpec()


USED_STATE = remuda_kind(UsedState, "usedstates", uncounted="removed when it has expired")
"""Used states of logins, until they expire."""


class BrowserLoginSpec(StoredStruct, frozen=True):
    """Login of a browser, valid for every client."""

    user: str = ""
    cookie_hash: str = ""
    """SHA-256 of the browser's cookie, in hex."""
    provider: str = ""
    """Id of the provider at which the user logged in; empty for a local password."""
    authenticated: datetime | None = None
    """Time of the last authentication of the user."""
    expires: datetime | None = None
    ended: datetime | None = None
    """Time of the logout. It is deleted when every session of it has ended, too."""
    used: datetime | None = None
    """Time of its last use, to within a part of the idle limit; None if that is its authentication."""
    methods: tuple[AuthenticationMethod, ...] = ()
    """Methods by which we authenticated the user; none of a provider's."""
    is_declined: bool = False
    """The user was told that an organization requires a second factor, and went on without one."""

    @property
    def proof(self) -> LoginProof:
        return proof_of(self.methods, self.provider)

    def is_good(self, now: datetime) -> bool:
        return self.ended is None and self.expires is not None and now < self.expires

    def end_time(self, idle_limit: timedelta) -> datetime | None:
        """Return when it ends by itself: at its idle limit or its expiry, whichever is first."""
        used = self.used or self.authenticated
        return self.expires if self.expires is None or used is None else min(self.expires, used + idle_limit)


class BrowserLogin(Resource, frozen=True):
    """Login of one browser. A label names the user."""

    spec: BrowserLoginSpec = BrowserLoginSpec()


BROWSER_LOGIN = remuda_kind(
    BrowserLogin,
    "browserlogins",
    uncounted="removed when it has expired",
    indexes=(Index(name="cookie", values=lambda login: [login.spec.cookie_hash]),),
    columns={"User": ".spec.user"},
)
"""Browser logins, found by the cookie, and by the label of their user."""
