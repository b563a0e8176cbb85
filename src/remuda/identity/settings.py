"""What an operator can choose about identity."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from remuda.identity.kinds.oauth import BearerTrust, ProviderType
from remuda.kernel.secrets import Secret

LOCAL_ISSUER = "uni"
"""What configuration calls our own issuer, as existing configurations do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleBinding:
    """Roles that one user has everywhere. It then has nothing besides: memberships do not count."""

    subject: str
    """An e-mail address in lower case; `*` is everybody of an issuer that is not ours, and then only reads count."""
    roles: tuple[str, ...]
    """Names of roles."""
    issuer: str = LOCAL_ISSUER


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupBinding:
    """Roles that everybody in a group of an external issuer has everywhere."""

    issuer: str
    group: str
    roles: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemAccount:
    """A service. It proves who it is by a client certificate with its name, or by what its key signed."""

    role: str
    """The name of the role it has everywhere."""
    public_key: str = ""
    """PEM; without one the service needs a certificate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformProvider:
    """Somebody else who knows people: everybody can log in there, or come with its tokens, as the operator chooses."""

    issuer: str
    """Its URL, letter by letter as its tokens have it."""
    type: ProviderType = "custom"
    client_id: str = ""
    """What it knows us by; without one nobody logs in there."""
    client_secret: Secret | None = None
    bearer_trust: BearerTrust | None = None
    """How far its own tokens are believed; without it they are not."""


_SERVICES: Mapping[str, SystemAccount] = {
    "unikorn-region": SystemAccount(role="region-service"),
    "unikorn-kubernetes": SystemAccount(role="kubernetes-service"),
    "unikorn-compute": SystemAccount(role="compute-service"),
    "uni-storage": SystemAccount(role="storage-service"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentitySettings:
    """Everything."""

    issuer: str = "http://127.0.0.1:8080/identity"
    """Our own URL as clients reach it: every endpoint is below it, and tokens say that they are from here."""
    access_token_lifetime: timedelta = timedelta(hours=1)
    refresh_token_lifetime: timedelta = timedelta(days=90)
    """From the login, however often a session is refreshed."""
    service_account_token_lifetime: timedelta = timedelta(days=90)
    code_lifetime: timedelta = timedelta(minutes=1)
    device_code_lifetime: timedelta = timedelta(minutes=10)
    passport_lifetime: timedelta = timedelta(seconds=60)
    signing_key_lifetime: timedelta = timedelta(days=90)
    """After this a new key signs."""
    platform_administrators: tuple[str, ...] = ()
    """Users, by e-mail address, who have the role platform-administrator everywhere."""
    role_bindings: tuple[RoleBinding, ...] = ()
    group_bindings: tuple[GroupBinding, ...] = ()
    system_accounts: Mapping[str, SystemAccount] = field(default_factory=lambda: dict(_SERVICES))
    """Services, by their names."""
    providers: Mapping[str, PlatformProvider] = field(default_factory=dict)
    """External providers of the whole system, by their names."""
    intent_lifetime: timedelta = timedelta(minutes=10)
    """By then an allocation is confirmed, or it is taken back."""
    usage_retention: timedelta = timedelta(days=400)
    """How long it can be read what was used when."""
    logins_per_minute: int = 10
    """How often one address may try a password; one account, ten times as often."""
