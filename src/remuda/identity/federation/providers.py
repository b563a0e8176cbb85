"""Providers that users log in at, and the users that each may authenticate.

A platform provider is configured by the operator and trusted for every user. An organization's own provider is set up
by that organization's administrators, who control its claims, and who can add members without their consent. So it is
trusted only for active members without platform roles whose address is in a domain that the organization has proven,
and its logins are limited to that organization (`ResolvedAccess.restricted_to`, `Principal.member_of_only`).

The domain of a platform administrator never selects an organization's own provider, and other users must confirm before
they are redirected to one: a domain can be proven by mistake, and the provider is not ours.

Configured providers are written to the store at every start (`seed_providers`), and those that an earlier configuration
created are removed. Other stored providers stay, unless the configuration has one of that name.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from functools import partial

import structlog
from msgspec.structs import replace

from remuda.identity.consent import domain_of, owner_of_domain
from remuda.identity.federation.bearer_tokens import ALGORITHMS, is_our_issuer
from remuda.identity.kinds.common import LOCAL_ISSUER, REMUDA_GROUP
from remuda.identity.kinds.oauth import BearerTrust, OAuth2Provider, OAuth2ProviderSpec
from remuda.identity.kinds.tenancy import Organization
from remuda.identity.kinds.users import OrganizationUser, User
from remuda.identity.rbac.roles import role_id
from remuda.identity.settings import IdentitySettings, PlatformProvider
from remuda.identity.tenancy.rules import check_issuer
from remuda.kernel.errors import Invalid, NotFound, OAuthError
from remuda.kernel.fields import with_common_fields
from remuda.kernel.ids import is_id
from remuda.kernel.text import folded
from remuda.resources.conventions import NAME, ORGANIZATION, USER
from remuda.resources.crud import find, seed
from remuda.store.contract import Store
from remuda.store.objects import Metadata


class LoginProviders:
    """Providers that users can log in at."""

    def __init__(self, *, store: Store, settings: IdentitySettings) -> None:
        self._store = store
        bound = (each.subject for each in settings.role_bindings if each.issuer in {LOCAL_ISSUER, settings.issuer})
        self._privileged = frozenset(folded(each.strip()) for each in (*settings.platform_administrators, *bound))
        self._reserved = frozenset(map(domain_of, settings.platform_administrators))

    async def platform(self) -> list[OAuth2Provider]:
        """Return the platform providers that users can log in at."""
        found = (await self._store.list(OAuth2Provider, index=("platform", "yes"))).items
        return [each for each in found if is_usable(each)]

    async def find(self, name: str) -> OAuth2Provider | None:
        """Return the provider with this id, or the first platform provider of this type."""
        if is_id(name):
            found = await self._get(name)
            return found if found is not None and is_usable(found) else None
        return next((each for each in await self.platform() if each.spec.type == name), None)

    async def of_address(self, email: str) -> tuple[OAuth2Provider, Organization] | None:
        """Return the provider of the organization that has the domain of an address, and that organization.

        For the domain of a platform administrator only a platform provider is returned.
        """
        organization = await self._owner(email)
        provider = None if organization is None else await self._get(organization.spec.provider_id)
        if organization is None or provider is None or not is_usable(provider):
            return None
        is_reserved = is_organization_provider(provider) and domain_of(email) in self._reserved
        if is_reserved or not _is_provider_of(provider, organization):
            return None
        return provider, organization

    async def check_user(self, provider: OAuth2Provider, user: User) -> None:
        """Raise OAuthError unless this provider may authenticate this user."""
        organization = provider.metadata.labels.get(ORGANIZATION)
        if organization is None:
            return
        subject = folded(user.spec.subject.strip())
        if subject in self._privileged or not await self._is_member_in_domain(organization, user):
            raise OAuthError(
                "access_denied",
                "this provider belongs to an organization, and only active members of it in its domain can log in with "
                "it: log in with a password, or at another provider",
            )

    async def _is_member_in_domain(self, organization: str, user: User) -> bool:
        owner = await self._owner(user.spec.subject)
        if owner is None or owner.name != organization:
            return False
        labels = {USER: user.name, ORGANIZATION: organization}
        memberships = (await self._store.list(OrganizationUser, labels=labels)).items
        return any(each.spec.state == "active" and not each.is_deleting for each in memberships)

    async def _owner(self, email: str) -> Organization | None:
        return await owner_of_domain(self._store, domain_of(email))

    async def _get(self, name: str) -> OAuth2Provider | None:
        return await find(self._store, OAuth2Provider, name, include_deleting=False) if is_id(name) else None


def is_usable(provider: OAuth2Provider) -> bool:
    """Tell whether users can log in at a provider.

    GitHub does not support OpenID Connect. Without a client id only the provider's bearer tokens are accepted.
    """
    spec = provider.spec
    return spec.type != "github" and bool(spec.issuer and spec.client_id) and not provider.is_deleting


def is_organization_provider(provider: OAuth2Provider) -> bool:
    """Tell whether a provider belongs to an organization and not to the platform."""
    return ORGANIZATION in provider.metadata.labels


def _is_provider_of(provider: OAuth2Provider, organization: Organization) -> bool:
    owner = provider.metadata.labels.get(ORGANIZATION)
    return owner == (None if organization.spec.provider_scope == "global" else organization.name)


CONFIGURED = f"{REMUDA_GROUP}/configured"
"""Annotation of providers that the configuration created and may remove."""

_NAME = re.compile(r"[0-9A-Za-z]([0-9A-Za-z_.-]{0,61}[0-9A-Za-z])?")


def provider_id(name: str) -> str:
    """Return the id of a configured provider, derived as existing installations do."""
    return role_id(name)


def check_providers(settings: IdentitySettings) -> None:
    """Raise Invalid if a configured provider is unusable or unsafe."""
    trusted: dict[str, str] = {}
    for name, provider in settings.providers.items():
        field = f"providers.{name}"
        _check_provider(field, provider, settings)
        if provider.bearer_trust is not None:
            _check_trust(f"{field}.bearer_trust", provider.bearer_trust)
            other = trusted.setdefault(provider.issuer, name)
            if other != name:
                problem = f"trusts the same issuer as {other}"
                raise Invalid(f"{field}.bearer_trust", problem, remedy="remove one of them")


async def seed_providers(store: Store, providers: Mapping[str, PlatformProvider]) -> None:
    """Write the configured providers to the store, and remove those no longer configured."""
    desired = {provider_id(name): _stored(name, provider) for name, provider in providers.items()}
    for each in desired.values():
        await seed(store, each, partial(_as_configured, each))
    for each in (await store.list(OAuth2Provider, index=("platform", "yes"))).items:
        if CONFIGURED in each.metadata.annotations and each.name not in desired and not each.is_deleting:
            await _remove(store, each)


def _check_provider(field: str, provider: PlatformProvider, settings: IdentitySettings) -> None:
    if not _NAME.fullmatch(field.removeprefix("providers.")):
        remedy = "write up to 63 letters, digits, dashes, dots and underscores"
        raise Invalid(field, "is not a valid name", remedy=remedy)
    if is_our_issuer(provider.issuer, settings):
        raise Invalid(f"{field}.issuer", "is our own issuer", remedy="set the issuer of an external provider")
    check_issuer(provider.issuer, f"{field}.issuer")
    if not provider.client_id and provider.bearer_trust is None:
        remedy = "add a client_id, so that users can log in there, or bearer_trust, so that its tokens are accepted"
        raise Invalid(field, "is not usable", remedy=remedy)


def _check_trust(field: str, trust: BearerTrust) -> None:
    if not trust.audience:
        raise Invalid(f"{field}.audience", "is empty", remedy="set the audience that its tokens have in aud")
    if not set(trust.signing_algorithms) <= set(ALGORITHMS):
        remedy = f"choose from {', '.join(ALGORITHMS)}"
        raise Invalid(f"{field}.signing_algorithms", "has an unsupported algorithm", remedy=remedy)
    if trust.groups_claim and "://" not in trust.groups_claim:
        remedy = "use a claim name that is unique to this issuer, such as https://example.com/groups"
        raise Invalid(f"{field}.groups_claim", "is not a URL", remedy=remedy)


def _stored(name: str, provider: PlatformProvider) -> OAuth2Provider:
    return OAuth2Provider(
        metadata=Metadata(name=provider_id(name), labels={NAME: name}, annotations={CONFIGURED: "yes"}),
        spec=with_common_fields(OAuth2ProviderSpec, provider),
    )


def _as_configured(desired: OAuth2Provider, found: OAuth2Provider) -> OAuth2Provider:
    if found.is_deleting:
        structlog.get_logger().warning(
            "a configured provider is still being deleted: remove it from all organizations, then restart",
            provider=found.name,
        )
        return found
    return replace(
        found,
        metadata=replace(
            found.metadata,
            labels={**found.metadata.labels, **desired.metadata.labels},
            annotations={**found.metadata.annotations, **desired.metadata.annotations},
        ),
        spec=replace(desired.spec, tags=found.spec.tags),
    )


async def _remove(store: Store, provider: OAuth2Provider) -> None:
    with suppress(NotFound):  # another process deleted it
        await store.delete(OAuth2Provider, provider.name, uid=provider.uid)
