"""Which provider somebody logs in at, and whom that provider can vouch for.

A provider of the whole system is the operator's choice, and its word counts for everybody. An organization's provider
was set up by that organization's administrators, who can have it say whatever they like: believed without limit, it
would make every administrator of some organization whoever they want to be. They can also name a domain that is not
theirs, and make anybody a member. So such a provider is believed only about people in its organization's domain who are
active members of that organization and have no role of the whole system; and who logs in there is nobody outside that
organization (`Standing.only_in`, `Principal.vouched_by`). Where else they are members does not count, because whoever
made them one did not ask them. Everybody else logs in with a password, or at a provider of the system.

A domain is the organization's that has it, and not everybody's who wishes for it (`tenancy.domains`). Nobody has proven
that it is theirs. So a domain in which a platform administrator is never leads to an organization's own provider, and
elsewhere people are asked before they are sent to one (`login.entry`): whoever claims the domain of a mail service must
not have its users type their passwords where the claimant likes.
"""

from remuda.identity.kinds.oauth import OAuth2Provider
from remuda.identity.kinds.tenancy import Organization
from remuda.identity.kinds.users import OrganizationUser, User
from remuda.identity.settings import LOCAL_ISSUER, IdentitySettings
from remuda.identity.tenancy.domains import organization_of_domain
from remuda.kernel.errors import OAuthRefusal
from remuda.kernel.ids import is_id
from remuda.kernel.text import folded
from remuda.resources.conventions import ORGANIZATION, USER
from remuda.resources.crud import find
from remuda.store.contract import Store


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
        """Raise OAuthRefusal unless this provider's word about this user counts."""
        organization = provider.metadata.labels.get(ORGANIZATION)
        if organization is None:
            return
        subject = folded(user.spec.subject.strip())
        if subject in self._powerful or not await self._is_theirs(organization, user):
            raise OAuthRefusal(
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
        return any(each.spec.state == "active" and not each.is_marked for each in memberships)

    async def _owner(self, email: str) -> Organization | None:
        domain = domain_of(email)
        return await organization_of_domain(self._store, domain) if domain else None

    async def _get(self, name: str) -> OAuth2Provider | None:
        return await find(self._store, OAuth2Provider, name, marked=False) if is_id(name) else None


def is_usable(provider: OAuth2Provider) -> bool:
    """Tell whether people can log in at a provider.

    GitHub, for one, has no OpenID Connect for them; and where we are no client, only the provider's tokens count.
    """
    spec = provider.spec
    return spec.type != "github" and bool(spec.issuer and spec.client_id) and not provider.is_marked


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
