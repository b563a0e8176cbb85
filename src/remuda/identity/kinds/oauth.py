"""What logging in needs to remember: providers, clients, passwords, and grants that wait for their other half.

Who is logged in, in which browser.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Literal

import msgspec

from remuda.identity.kinds.common import OURS, SHARED, VERSION
from remuda.kernel.conditions import Condition
from remuda.kernel.secrets import Secret
from remuda.kernel.tags import Tag
from remuda.resources.conventions import ORGANIZATION
from remuda.store.kinds import Index, Kind, keyed
from remuda.store.objects import Resource, StoredStruct

ProviderType = Literal["custom", "google", "microsoft", "github"]
"""Whose way of doing things a provider follows."""


class BearerTrust(StoredStruct, frozen=True):
    """Under which conditions a provider's own tokens are believed here."""

    audience: str
    allow_external_identity: bool = False
    skip_email_verification: bool = False
    require_authz_claim: bool = False
    signing_algorithms: tuple[str, ...] = ()
    groups_claim: str = ""


class OAuth2ProviderSpec(StoredStruct, frozen=True):
    """Somebody else who knows people."""

    issuer: str = ""
    type: ProviderType = "custom"
    client_id: str = msgspec.field(default="", name="clientID")
    client_secret: Secret | None = None
    client_secret_name: str = ""
    authorization_uri: str = msgspec.field(default="", name="authorizationURI")
    token_uri: str = msgspec.field(default="", name="tokenURI")
    bearer_trust: BearerTrust | None = None
    tags: tuple[Tag, ...] = ()


class OAuth2Provider(Resource, frozen=True):
    """An external OpenID provider, of one organization or, without that label, of the whole system."""

    spec: OAuth2ProviderSpec = OAuth2ProviderSpec()


class OAuth2ClientSpec(StoredStruct, frozen=True):
    """A program that people log in to through us."""

    redirect_uri: str = ""
    redirect_uris: tuple[str, ...] = ()
    """More of them; every one is compared as a whole, letter by letter."""
    home_uri: str = ""
    login_uri: str = ""
    error_uri: str = ""
    is_public: bool = False
    """It cannot keep a secret: it has none, and PKCE is demanded of it."""
    public_key: str = ""
    """PEM: it proves who it is by an assertion that the matching key signed."""
    secret_hash: str = ""
    """The SHA-256 of its secret, in hex: the secret itself is shown once and not kept."""
    tags: tuple[Tag, ...] = ()


class OAuth2ClientStatus(StoredStruct, frozen=True):
    """How a client stands. Its secret is no status: it is made in the write that makes the client."""

    secret: str = ""
    """Where existing clusters have the secret in the clear; ours is a hash in the spec, and this stays empty."""
    conditions: Annotated[tuple[Condition, ...], keyed("type")] = ()


class OAuth2Client(Resource, frozen=True):
    """A registered client, named by its client id."""

    spec: OAuth2ClientSpec = OAuth2ClientSpec()
    status: OAuth2ClientStatus = OAuth2ClientStatus()


class PasswordSpec(StoredStruct, frozen=True):
    """How a local account proves who it is."""

    hash: Secret | None = None
    """What argon2 made of the password; sealed besides."""
    changed: datetime | None = None
    reset_hash: str = ""
    """The SHA-256 of a link by which the password can be set once, in hex."""
    reset_expires: datetime | None = None


class Password(Resource, frozen=True):
    """A local account's password, named after its user."""

    spec: PasswordSpec = PasswordSpec()


class AuthorizationCodeSpec(StoredStruct, frozen=True):
    """A login that a client has yet to exchange for tokens."""

    user: str = ""
    client: str = ""
    redirect_uri: str = ""
    scope: str = ""
    nonce: str = ""
    challenge: str = ""
    challenge_method: Literal["", "plain", "S256"] = ""
    provider: str = ""
    authenticated: datetime | None = None
    expires: datetime | None = None
    is_used: bool = False
    is_reused: bool = False
    """Somebody came with it a second time, while the first exchange was under way: that one then fails, too."""
    login: str = ""
    """The browser login behind it, if there is one: the session that comes of it names it too, and ends with it."""


class AuthorizationCode(Resource, frozen=True):
    """An authorization code, named after the SHA-256 of what was handed out."""

    spec: AuthorizationCodeSpec = AuthorizationCodeSpec()


class DeviceGrantSpec(StoredStruct, frozen=True):
    """A device that waits for its user to say yes elsewhere."""

    client: str = ""
    scope: str = ""
    user_code_hash: str = ""
    """What the user types, hashed with SHA-256, in hex."""
    user: str = ""
    """Who said yes."""
    is_denied: bool = False
    provider: str = ""
    authenticated: datetime | None = None
    expires: datetime | None = None
    interval_s: int = 5


class DeviceGrant(Resource, frozen=True):
    """A device grant, named after the SHA-256 of its device code."""

    spec: DeviceGrantSpec = DeviceGrantSpec()


class UsedAssertionSpec(StoredStruct, frozen=True):
    """An assertion by which a client has proved who it is."""

    expires: datetime | None = None
    """When it proves nothing any more, so that this can be forgotten."""


class UsedAssertion(Resource, frozen=True):
    """One that must not be believed again, named after its sender and its `jti`."""

    spec: UsedAssertionSpec = UsedAssertionSpec()


def _of_platform(provider: OAuth2Provider) -> Iterator[str]:
    if ORGANIZATION not in provider.metadata.labels:
        yield "yes"
        if provider.spec.client_id:
            yield "login"


OAUTH2_PROVIDER = Kind(
    type=OAuth2Provider,
    group=SHARED,
    version=VERSION,
    plural="oauth2providers",
    indexes=(Index(name="platform", values=_of_platform),),
    columns={"Issuer": ".spec.issuer", "Client ID": ".spec.clientID"},
)
"""Providers, found by the label of their organization; those of the whole system by the index `platform`, as `login`
if we are a client there, and all of them as `yes`."""

OAUTH2_CLIENT = Kind(
    type=OAuth2Client,
    group=SHARED,
    version=VERSION,
    plural="oauth2clients",
    columns={"Redirect URI": ".spec.redirectUri"},
)
"""Clients."""

PASSWORD = Kind(
    type=Password,
    group=OURS,
    version=VERSION,
    plural="passwords",
    indexes=(Index(name="link", values=lambda each: [each.spec.reset_hash] if each.spec.reset_hash else []),),
)
"""Passwords, found by the link that sets them."""

AUTHORIZATION_CODE = Kind(type=AuthorizationCode, group=OURS, version=VERSION, plural="authorizationcodes")
"""Codes, for the minute that they live."""

DEVICE_GRANT = Kind(
    type=DeviceGrant,
    group=OURS,
    version=VERSION,
    plural="devicegrants",
    indexes=(Index(name="user-code", values=lambda grant: [grant.spec.user_code_hash]),),
)
"""Device grants, found by what the user types."""

USED_ASSERTION = Kind(type=UsedAssertion, group=OURS, version=VERSION, plural="usedassertions")
"""Used assertions, for the minutes that they could be used again."""


class BrowserLoginSpec(StoredStruct, frozen=True):
    """A login that a browser can use again, for every client, without asking its user."""

    user: str = ""
    cookie_hash: str = ""
    """The SHA-256 of the cookie that the browser has for it, in hex."""
    provider: str = ""
    """The id of the provider at which the user logged in; empty for a password of ours."""
    authenticated: datetime | None = None
    """When the user last proved who they are."""
    expires: datetime | None = None
    ended: datetime | None = None
    """Since when it is over, by logging out; it is deleted when every session that came of it has ended, too."""

    def is_good(self, now: datetime) -> bool:
        """Tell whether it is neither ended nor over."""
        return self.ended is None and self.expires is not None and now < self.expires


class BrowserLogin(Resource, frozen=True):
    """A login in one browser. A label says of which user."""

    spec: BrowserLoginSpec = BrowserLoginSpec()


BROWSER_LOGIN = Kind(
    type=BrowserLogin,
    group=OURS,
    version=VERSION,
    plural="browserlogins",
    indexes=(Index(name="cookie", values=lambda login: [login.spec.cookie_hash]),),
    columns={"User": ".spec.user"},
)
"""Logins in browsers, found by the cookie, and by the label of their user."""
