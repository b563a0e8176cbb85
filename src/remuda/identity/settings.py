"""Settings of identity."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from remuda.identity.kinds.common import LOCAL_ISSUER
from remuda.identity.kinds.factors import SecondFactorPolicy
from remuda.identity.kinds.oauth import BearerTrust, LoginProviderType
from remuda.kernel.secrets import Secret


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleBinding:
    """Global roles of a user. Permissions from memberships then do not apply."""

    subject: str
    """E-mail address in lower case; `*` matches all users of an external issuer, and then grants reads only."""
    roles: tuple[str, ...]
    issuer: str = LOCAL_ISSUER


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupBinding:
    """Global roles of the members of a group of an external issuer."""

    issuer: str
    group: str
    roles: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemAccount:
    """Service, authenticated by an assertion signed with its key or, if it has none, by a certificate of its name."""

    role: str
    """Name of its global role."""
    public_key: str = ""
    """PEM key; without one the service needs a certificate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformProvider:
    """Global external provider: users log in there, or use its tokens, as configured."""

    issuer: str
    """URL, exactly as in its tokens."""
    type: LoginProviderType = "custom"
    client_id: str = ""
    """Our client id there; without one users cannot log in there."""
    client_secret: Secret | None = None
    bearer_trust: BearerTrust | None = None
    """Conditions under which its tokens are accepted; without it they are not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentitySettings:
    """Settings of identity."""

    issuer: str = "http://127.0.0.1:8080/identity"
    """URL of identity for clients, and issuer of its tokens."""
    home: str = ""
    """URL of the page after a login that was for no application; by default the account page."""
    access_token_lifetime: timedelta = timedelta(hours=1)
    refresh_token_lifetime: timedelta = timedelta(days=90)
    """From the login, however often a session is refreshed."""
    session_idle_limit: timedelta = timedelta(days=30)
    """Time after its last refresh at which a session ends, but not before its access token expires."""
    browser_idle_limit: timedelta = timedelta(hours=4)
    """Time after its last use at which a login in a browser ends."""
    service_account_token_lifetime: timedelta = timedelta(days=90)
    code_lifetime: timedelta = timedelta(minutes=1)
    device_code_lifetime: timedelta = timedelta(minutes=10)
    passport_lifetime: timedelta = timedelta(seconds=60)
    signing_key_lifetime: timedelta = timedelta(days=90)
    platform_administrators: tuple[str, ...] = ()
    """E-mail addresses of users with the global role platform-administrator."""
    platform_second_factor: SecondFactorPolicy = "optional"
    """Logins of users with bound roles that need a second factor to have the permissions of these roles."""
    role_bindings: tuple[RoleBinding, ...] = ()
    group_bindings: tuple[GroupBinding, ...] = ()
    system_accounts: Mapping[str, SystemAccount] = field(default_factory=dict)
    """Services outside this process, by name."""
    providers: Mapping[str, PlatformProvider] = field(default_factory=dict)
    """Global external providers, by name."""
    intent_lifetime: timedelta = timedelta(minutes=10)
    """Time in which a reservation must be confirmed."""
    usage_retention: timedelta = timedelta(days=400)
    """Time for which released allocations are kept."""
    provider_targets: tuple[str, ...] = ()
    """Networks beside the public Internet in which external providers may be."""
    dns_servers: tuple[str, ...] = ()
    """Name servers at which the records of domains are looked up; without any, those of the machine."""
    logins_per_minute: int = 10
    """Password attempts of an address."""
    login_failures_before_delay: int = 5
    """Failed logins to an account after which every further one delays the next."""
