"""Which provider somebody logs in at, and whom that provider can vouch for.

A provider of the whole system is the operator's choice, and its word counts for everybody. An organization's provider
was set up by that organization's administrators, who can have it say whatever they like: believed without limit, it
would make every administrator of some organization whoever they want to be. They can also name a domain that is not
theirs, and make anybody a member. So such a provider is believed only about people in its organization's domain who are
active members of that organization and have no role of the whole system; and who logs in there is nobody outside that
organization (`ResolvedAccess.restricted_to`, `Principal.member_of_only`). Where else they are members does not count,
because whoever made them one did not ask them. Everybody else logs in with a password, or at a provider of the system.

A domain is the organization's that has it, and not everybody's who wishes for it (`tenancy.domains`). Nobody has proven
that it is theirs. So a domain in which a platform administrator is never leads to an organization's own provider, and
elsewhere people are asked before they are sent to one (`login.entry`): whoever claims the domain of a mail service must
not have its users type their passwords where the claimant likes.

The providers of the whole system that the configuration names, as they come into the store.

`seed_providers` runs at every start. It writes what is configured where the store has it otherwise, and removes what an
earlier configuration had made and this one does not name. A provider that somebody else put there stays as it is,
unless the configuration has one of that name: then it is the configuration's from that start on.

Each provider is one write of its own, and whatever breaks off in between is done by the next start.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from functools import partial

import structlog
from msgspec.structs import replace

from remuda.identity.federation.bearer_tokens import ALGORITHMS, is_our_issuer
from remuda.identity.kinds.common import OURS
from remuda.identity.kinds.oauth import BearerTrust, OAuth2Provider, OAuth2ProviderSpec
from remuda.identity.kinds.tenancy import Organization
from remuda.identity.kinds.users import OrganizationUser, User
from remuda.identity.rbac.roles import role_id
from remuda.identity.settings import LOCAL_ISSUER, IdentitySettings, PlatformProvider
from remuda.identity.tenancy.domains import organization_of_domain
from remuda.identity.tenancy.rules import check_issuer
from remuda.kernel.errors import Invalid, NotFound, OAuthError
from remuda.kernel.ids import is_id
from remuda.kernel.text import folded
from remuda.resources.conventions import NAME, ORGANIZATION, USER
from remuda.resources.crud import find, seed
from remuda.store.contract import Store
from remuda.store.objects import Metadata


class Providers:
    """Finds them, and judges what they say."""

    def __init__(self, *, store: Store, settings: IdentitySettings) -> None:
        self._store = store
        bound = (each.subject for each in settings.role_bindings if each.issuer in {LOCAL_ISSUER, settings.issuer})
        self._powerful = frozenset(folded(each.strip()) for each in (*settings.platform_administrators, *bound))
        self._reserved = frozenset(map(domain_of, settings.platform_administrators))

    async def platform(self) -> list[OAuth2Provider]:
        """Return the providers of the whole system at which people can log in."""
        found = (await self._store.list(OAuth2Provider, index=("platform", "yes"))).items
        return [each for each in found if is_usable(each)]

    async def named(self, name: str) -> OAuth2Provider | None:
        """Return the provider with this id, or the first of the whole system of this type."""
        if is_id(name):
            found = await self._get(name)
            return found if found is not None and is_usable(found) else None
        return next((each for each in await self.platform() if each.spec.type == name), None)

    async def of_address(self, email: str) -> tuple[OAuth2Provider, Organization] | None:
        """Return the provider of the organization that has the domain of an address, and that organization.

        In the domain of a platform administrator that is a provider of the whole system, or none.
        """
        organization = await self._owner(email)
        provider = None if organization is None else await self._get(organization.spec.provider_id)
        if organization is None or provider is None or not is_usable(provider):
            return None
        if not _belongs(provider, organization) or (is_own(provider) and domain_of(email) in self._reserved):
            return None
        return provider, organization

    async def check_vouching(self, provider: OAuth2Provider, user: User) -> None:
        """Raise OAuthError unless this provider's word about this user counts."""
        organization = provider.metadata.labels.get(ORGANIZATION)
        if organization is None:
            return
        subject = folded(user.spec.subject.strip())
        if subject in self._powerful or not await self._is_theirs(organization, user):
            raise OAuthError(
                "access_denied",
                "this provider is an organization's own, and can log in only that organization's members who are in "
                "its domain: log in with a password, or at another provider",
            )

    async def _is_theirs(self, organization: str, user: User) -> bool:
        owner = await self._owner(user.spec.subject)
        if owner is None or owner.name != organization:
            return False
        labels = {USER: user.name, ORGANIZATION: organization}
        memberships = (await self._store.list(OrganizationUser, labels=labels)).items
        return any(each.spec.state == "active" and not each.is_deleting for each in memberships)

    async def _owner(self, email: str) -> Organization | None:
        domain = domain_of(email)
        return await organization_of_domain(self._store, domain) if domain else None

    async def _get(self, name: str) -> OAuth2Provider | None:
        return await find(self._store, OAuth2Provider, name, include_deleting=False) if is_id(name) else None


def is_usable(provider: OAuth2Provider) -> bool:
    """Tell whether people can log in at a provider.

    GitHub, for one, has no OpenID Connect for them; and where we are no client, only the provider's tokens count.
    """
    spec = provider.spec
    return spec.type != "github" and bool(spec.issuer and spec.client_id) and not provider.is_deleting


def is_own(provider: OAuth2Provider) -> bool:
    """Tell whether a provider is an organization's own, and not one of the whole system."""
    return ORGANIZATION in provider.metadata.labels


def domain_of(email: str) -> str:
    """Return the domain of an address, in lower case; nothing if it is no address."""
    local, _, domain = folded(email.strip()).rpartition("@")
    return domain if local and domain else ""


def _belongs(provider: OAuth2Provider, organization: Organization) -> bool:
    owner = provider.metadata.labels.get(ORGANIZATION)
    return owner == (None if organization.spec.provider_scope == "global" else organization.name)


CONFIGURED = f"{OURS}/configured"
"""Annotation: the configuration has made it, and the configuration removes it."""

_NAME = re.compile(r"[0-9A-Za-z]([0-9A-Za-z_.-]{0,61}[0-9A-Za-z])?")


def provider_id(name: str) -> str:
    """Return the id of a configured provider: existing installations derive it as they do that of a role."""
    return role_id(name)


def check_providers(settings: IdentitySettings) -> None:
    """Raise Invalid if a provider of the configuration is of no use, or asks for what must not be."""
    trusted: dict[str, str] = {}
    for name, provider in settings.providers.items():
        place = f"providers.{name}"
        _check_provider(place, provider, settings)
        if provider.bearer_trust is not None:
            _check_trust(f"{place}.bearer_trust", provider.bearer_trust)
            other = trusted.setdefault(provider.issuer, name)
            if other != name:
                problem = f"trusts the same issuer as {other} does"
                raise Invalid(f"{place}.bearer_trust", problem, remedy="leave one of them out")


async def seed_providers(store: Store, providers: Mapping[str, PlatformProvider]) -> None:
    """Make the providers in the store what the configuration says."""
    wanted = {provider_id(name): _stored(name, provider) for name, provider in providers.items()}
    for each in wanted.values():
        await seed(store, each, partial(_as_configured, each))
    for each in (await store.list(OAuth2Provider, index=("platform", "yes"))).items:
        if CONFIGURED in each.metadata.annotations and each.name not in wanted and not each.is_deleting:
            await _remove(store, each)


def _check_provider(place: str, provider: PlatformProvider, settings: IdentitySettings) -> None:
    if not _NAME.fullmatch(place.removeprefix("providers.")):
        remedy = "write up to 63 letters, digits, dashes, dots and underscores"
        raise Invalid(place, "has no name that people can be shown", remedy=remedy)
    if is_our_issuer(provider.issuer, settings):
        raise Invalid(f"{place}.issuer", "is our own", remedy="name the issuer of somebody else")
    check_issuer(provider.issuer, f"{place}.issuer")
    if not provider.client_id and provider.bearer_trust is None:
        remedy = "add a client_id, so that people can log in there, or bearer_trust, so that its tokens are believed"
        raise Invalid(place, "is of no use", remedy=remedy)


def _check_trust(place: str, trust: BearerTrust) -> None:
    if not trust.audience:
        raise Invalid(f"{place}.audience", "is empty", remedy="write what its tokens have to name in aud")
    if not set(trust.signing_algorithms) <= set(ALGORITHMS):
        remedy = f"choose from {', '.join(ALGORITHMS)}"
        raise Invalid(f"{place}.signing_algorithms", "has one that we do not take", remedy=remedy)
    if trust.groups_claim and "://" not in trust.groups_claim:
        remedy = "name a claim that only this issuer can mean, such as https://example.com/groups"
        raise Invalid(f"{place}.groups_claim", "is no URL", remedy=remedy)


def _stored(name: str, provider: PlatformProvider) -> OAuth2Provider:
    return OAuth2Provider(
        metadata=Metadata(name=provider_id(name), labels={NAME: name}, annotations={CONFIGURED: "yes"}),
        spec=OAuth2ProviderSpec(
            issuer=provider.issuer,
            type=provider.type,
            client_id=provider.client_id,
            client_secret=provider.client_secret,
            bearer_trust=provider.bearer_trust,
        ),
    )


def _as_configured(wanted: OAuth2Provider, found: OAuth2Provider) -> OAuth2Provider:
    if found.is_deleting:
        structlog.get_logger().warning(
            "a provider that is configured again has yet to go: let no organization name it, then start again",
            provider=found.name,
        )
        return found
    return replace(
        found,
        metadata=replace(
            found.metadata,
            labels={**found.metadata.labels, **wanted.metadata.labels},
            annotations={**found.metadata.annotations, **wanted.metadata.annotations},
        ),
        spec=replace(wanted.spec, tags=found.spec.tags),
    )


async def _remove(store: Store, provider: OAuth2Provider) -> None:
    with suppress(NotFound):  # another process was faster
        await store.delete(OAuth2Provider, provider.name, uid=provider.uid)
