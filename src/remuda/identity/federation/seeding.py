"""The providers of the whole system that the configuration names, as they come into the store.

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

from remuda.identity.federation.bearer_tokens import is_our_issuer
from remuda.identity.federation.external_claims import ALGORITHMS
from remuda.identity.kinds.common import OURS
from remuda.identity.kinds.oauth import BearerTrust, OAuth2Provider, OAuth2ProviderSpec
from remuda.identity.rbac.roles import role_id
from remuda.identity.settings import IdentitySettings, PlatformProvider
from remuda.identity.tenancy.provider_rules import check_issuer
from remuda.kernel.errors import Invalid, NotFound
from remuda.resources.conventions import NAME
from remuda.resources.crud import seed
from remuda.store.contract import Store
from remuda.store.objects import Metadata

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
        if CONFIGURED in each.metadata.annotations and each.name not in wanted and not each.is_marked:
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
    if found.is_marked:
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
