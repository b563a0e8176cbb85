"""OAuth2 providers: those of the whole system, which everybody may know of, and those of an organization.

A provider's secret goes in and never comes out. A provider that its organization's domain names is kept by that: asked
to go, it is marked, and goes when the organization names another, or goes itself.
"""

from dataclasses import dataclass

from remuda.access.checks import allow_in_organization
from remuda.access.principal import Context, Verb
from remuda.http.responses import Collection
from remuda.identity.kinds.oauth import OAUTH2_PROVIDER, OAuth2Provider
from remuda.identity.kinds.tenancy import Organization
from remuda.identity.permissions import permission
from remuda.identity.tenancy import provider_rules as rules
from remuda.identity.tenancy.schema import ProviderRead, ProviderWrite
from remuda.kernel.clock import Clock
from remuda.kernel.errors import AlreadyExists
from remuda.resources import conventions as labels
from remuda.resources.crud import check_state, get_in, request_deletion, until_written, witnessed
from remuda.resources.metadata import check_tags
from remuda.store.contract import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Providers:
    """What can be asked of providers."""

    store: Store
    clock: Clock

    def list_platform(self) -> Collection[OAuth2Provider, list[ProviderRead]]:
        """Return those of the whole system at which we are a client: the others are nowhere to log in."""
        return Collection(store=self.store, kind=OAuth2Provider, view=rules.PROVIDER_VIEW, index=("platform", "login"))

    async def list_in(self, context: Context, organization: str) -> Collection[OAuth2Provider, list[ProviderRead]]:
        await self._home(context, "read", organization)
        where = {labels.ORGANIZATION: organization}
        return Collection(store=self.store, kind=OAuth2Provider, view=rules.PROVIDER_VIEW, labels=where)

    async def create(self, context: Context, organization: str, wanted: ProviderWrite) -> OAuth2Provider:
        """Make a provider. It is named after the request, so sending that again does not make another."""
        home = await self._home(context, "create", organization)
        _check(wanted)
        provider = rules.new_provider(context.operation, home, wanted, context.principal)
        try:
            return await self.store.create(provider, log=witnessed(context, OAUTH2_PROVIDER.plural, provider))
        except AlreadyExists:  # the same request, whose answer was lost
            return await self.store.get(OAuth2Provider, provider.name)

    async def update(self, context: Context, organization: str, provider: str, wanted: ProviderWrite) -> None:
        """Replace what a client may change of a provider."""

        async def change() -> None:
            found = await self._provider(context, "update", organization, provider)
            check_state(context, found, rules.writable_provider(found))
            _check(wanted)
            changed = rules.changed_provider(found, wanted, context.principal, self.clock.now())
            await self.store.update(changed, log=witnessed(context, OAUTH2_PROVIDER.plural, found))

        await until_written(change)

    async def delete(self, context: Context, organization: str, provider: str) -> None:
        """Ask for a provider to go, as soon as no domain names it."""

        async def delete() -> None:
            found = await self._provider(context, "delete", organization, provider)
            log = witnessed(context, OAUTH2_PROVIDER.plural, found)
            await request_deletion(self.store, context, found, rules.writable_provider(found), log)

        await until_written(delete)

    async def _home(self, context: Context, verb: Verb, organization: str) -> Organization:
        allow_in_organization(context.principal, permission("oauth2providers", verb), organization)
        return await self.store.get(Organization, organization)

    async def _provider(self, context: Context, verb: Verb, organization: str, provider: str) -> OAuth2Provider:
        allow_in_organization(context.principal, permission("oauth2providers", verb), organization)
        return await get_in(self.store, OAuth2Provider, provider, organization)


def _check(wanted: ProviderWrite) -> None:
    check_tags(wanted.metadata.tags)
    rules.check_issuer(wanted.spec.issuer)
