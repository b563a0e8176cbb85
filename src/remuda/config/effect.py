"""What the parts of the process are told, made from the configuration."""

import dataclasses
from pathlib import Path
from typing import Any

from remuda.config.load import Misconfigured
from remuda.config.schema import Account, Configuration, Identity, Provider, Server, Trust
from remuda.config.settings import check_region
from remuda.http.api import ApiSettings
from remuda.http.authentication import TrustedProxies
from remuda.http.cors import Cors
from remuda.http.ratelimit import RateLimit
from remuda.http.server.connection import Patience
from remuda.http.server.server import Address
from remuda.identity.bootstrap import BootstrapSettings, check_bootstrap
from remuda.identity.federation.providers import check_providers
from remuda.identity.kinds.oauth import BearerTrust
from remuda.identity.oauth.clients import load_public_key
from remuda.identity.rbac.acl import Bindings
from remuda.identity.settings import GroupBinding, IdentitySettings, PlatformProvider, RoleBinding, SystemAccount
from remuda.kernel.errors import Invalid
from remuda.kernel.secrets import Secret


def public_url(server: Server, address: Address) -> str:
    """Return the URL that clients reach the process by, which answers at this address."""
    return server.public_url or f"http://{address.reachable}"


def patience(server: Server) -> Patience:
    """Return how much the server takes from clients."""
    return Patience(
        head_s=server.head_timeout.total_seconds(),
        read_stall_s=server.read_timeout.total_seconds(),
        idle_s=server.idle_timeout.total_seconds(),
        connections=server.connections,
    )


def api_settings(server: Server) -> ApiSettings:
    """Return how every API is served."""
    return ApiSettings(
        body_limit=server.body_limit,
        body_timeout_s=server.body_timeout.total_seconds(),
        time_limit_s=server.request_timeout.total_seconds(),
        cors=Cors(server.cors_origins),
        proxies=TrustedProxies(server.trusted_proxies),
    )


def rate_limit(server: Server) -> RateLimit:
    """Return how often each caller may ask."""
    return RateLimit(quota=server.rate_limit)


def identity_settings(configuration: Configuration, *, url: str) -> IdentitySettings:
    """Return what identity is told, in a process that clients reach at `url`. The first user is an administrator."""
    told = configuration.identity
    administrators = dict.fromkeys([*told.platform_administrators, told.bootstrap.administrator])
    return IdentitySettings(
        **_same(told),
        issuer=told.issuer or f"{url}/identity",
        platform_administrators=tuple(administrators),
        role_bindings=tuple(
            RoleBinding(subject=each.subject, roles=each.roles, issuer=each.issuer) for each in told.role_bindings
        ),
        group_bindings=tuple(
            GroupBinding(issuer=each.issuer, group=each.group, roles=each.roles) for each in told.group_bindings
        ),
        system_accounts={name: _account(name, each) for name, each in told.system_accounts.items()},
        providers={name: _provider(name, each) for name, each in told.providers.items()},
    )


def bootstrap_settings(configuration: Configuration) -> BootstrapSettings:
    """Return what the first start makes."""
    told = configuration.identity.bootstrap
    return BootstrapSettings(
        administrator=told.administrator,
        password=told.password,
        organization=told.organization,
        project=told.project,
    )


def check(configuration: Configuration) -> None:
    """Raise Misconfigured if a value is no good beside another one, such as two bindings that contradict each other."""
    server = configuration.server
    url = public_url(server, server.listen)
    check_region(configuration, url=url)
    try:
        told = identity_settings(configuration, url=url)
        Bindings(told)
        for name, account in told.system_accounts.items():
            _check_key(name, account.public_key)
        check_providers(told)
        check_bootstrap(bootstrap_settings(configuration))
    except Invalid as error:
        section = "identity.bootstrap" if error.field == "password" else "identity"
        raise Misconfigured((f"{section}.{error.sentence.removeprefix('identity.')}",)) from None


_OTHERWISE = {"issuer", "platform_administrators", "role_bindings", "group_bindings", "system_accounts", "providers"}


def _same(told: Identity) -> dict[str, Any]:
    """Return what is called and written the same on both sides."""
    names = {each.name for each in dataclasses.fields(IdentitySettings)} - _OTHERWISE
    return {name: getattr(told, name) for name in names}


def _account(name: str, account: Account) -> SystemAccount:
    if account.public_key_file is None:
        return SystemAccount(role=account.role, public_key=account.public_key)
    place = f"system_accounts.{name}"
    if account.public_key:
        raise Invalid(f"identity.{place}", "has both a public_key and a public_key_file", remedy="leave one out")
    key = _read(f"{place}.public_key_file", account.public_key_file, remedy="name a PEM file")
    return SystemAccount(role=account.role, public_key=key)


def _check_key(name: str, pem: str) -> None:
    if not pem:
        return
    try:
        load_public_key(pem)
    except Invalid:
        remedy = "give the PEM of an EC, Ed25519 or 2048-bit RSA key"
        raise Invalid(f"system_accounts.{name}.public_key", "is no key that we can use", remedy=remedy) from None


def _provider(name: str, provider: Provider) -> PlatformProvider:
    return PlatformProvider(
        issuer=provider.issuer,
        type=provider.type,  # type: ignore[arg-type]  # which was checked when it was read
        client_id=provider.client_id,
        client_secret=_client_secret(f"providers.{name}", provider),
        bearer_trust=None if provider.bearer_trust is None else _trust(provider.bearer_trust),
    )


def _client_secret(place: str, provider: Provider) -> Secret | None:
    if provider.client_secret_file is None:
        return provider.client_secret
    if provider.client_secret is not None:
        raise Invalid(f"identity.{place}", "has both a client_secret and a client_secret_file", remedy="leave one out")
    read = _read(f"{place}.client_secret_file", provider.client_secret_file, remedy="name a file with the secret alone")
    return Secret(read.strip())


def _trust(trust: Trust) -> BearerTrust:
    return BearerTrust(**{each.name: getattr(trust, each.name) for each in dataclasses.fields(trust)})


def _read(place: str, path: Path, *, remedy: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        cause = getattr(error, "strerror", None) or "it is no text"
        raise Invalid(f"identity.{place}", f"cannot be read from {path} ({cause})", remedy=remedy) from None
