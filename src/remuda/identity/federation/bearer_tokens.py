"""Bearer tokens of external issuers: people who log in elsewhere, and come here with what they were given there.

An operator says whose tokens are believed, and how far (`BearerTrust` of a provider of the whole system). Providers of
organizations are never asked: their administrators could be whoever they like. Of several for one issuer the first by
name counts.

What decides is `iss`, letter by letter. It is read before anything is verified, and says only who must have signed the
token: one of ours goes on to our own keys, and one of a trusted issuer is verified by that issuer's keys alone. So
neither can pass for the other. We ourselves are no external issuer, whatever a provider is called.

The issuer is believed about an e-mail address and about its own groups, and about nothing else: where somebody is a
member is written here. Roles of the whole system are bound to an issuer and an address together, so an issuer that
names an administrator of ours has made nobody one.
"""

from collections.abc import Mapping
from datetime import UTC, datetime

from prometheus_client import CollectorRegistry, Counter

from remuda.identity.federation.external_claims import check_times, email_of, verify
from remuda.identity.federation.external_keys import IssuerKeys
from remuda.identity.kinds.oauth import BearerTrust, OAuth2Provider
from remuda.identity.kinds.users import User, user_id
from remuda.identity.ports import Fetch
from remuda.identity.settings import LOCAL_ISSUER, IdentitySettings
from remuda.identity.tokens.bearer import Bearer
from remuda.identity.tokens.jwt import PASSPORT_ISSUER
from remuda.identity.tokens.peeking import BELIEVED, peek
from remuda.kernel.clock import Clock
from remuda.kernel.errors import Unauthenticated
from remuda.resources.crud import find
from remuda.store.contract import Store, named


def is_our_issuer(issuer: str, settings: IdentitySettings) -> bool:
    """Tell whether an issuer is this system itself, by any of its names."""
    return issuer.rstrip("/") in {"", LOCAL_ISSUER, PASSPORT_ISSUER, settings.issuer.rstrip("/")}


class ExternalBearers:
    """Tells who stands behind an external issuer's token (`identity.tokens.bearers.External`)."""

    def __init__(
        self, *, store: Store, clock: Clock, settings: IdentitySettings, fetch: Fetch, metrics: CollectorRegistry
    ) -> None:
        self._store, self._clock, self._settings = store, clock, settings
        self._unroutable = Counter(
            "remuda_bearer_tokens_unroutable",
            "Bearer tokens that nobody can have issued whom we know.",
            ["reason"],
            registry=metrics,
        )
        throttled = Counter(
            "remuda_external_key_refreshes_throttled",
            "Times that an external issuer was not asked for its keys because it was asked a moment ago.",
            registry=metrics,
        )
        self._keys = IssuerKeys(fetch=fetch, clock=clock, throttled=throttled)
        self._stamp: int | None = None
        self._providers: Mapping[str, OAuth2Provider] = {}

    async def __call__(self, token: str) -> Bearer | None:
        """Return who shows this token, or None if it is no trusted external issuer's; raise if it does not hold."""
        peeked = peek(token)
        if peeked is None:
            self._unroutable.labels("format").inc()
            raise Unauthenticated("unrecognized bearer token format")
        if peeked.issuer in {self._settings.issuer, PASSPORT_ISSUER}:
            return None
        provider = (await self._trusted()).get(peeked.issuer)
        if provider is None or (trust := provider.spec.bearer_trust) is None:
            self._unroutable.labels("issuer").inc()
            return None
        said, groups = verify(peeked, await self._keys.find(peeked.issuer, peeked.kid), trust)
        now = self._clock.now()
        check_times(said, now)
        email = email_of(said, trust)
        user, subject = await self._person(email, trust)
        return Bearer(
            subject=subject,
            type="user",
            expires=self._end(said.exp, now),
            user=user,
            issuer=provider.spec.issuer,
            source=provider.name,
            groups=groups,
            rests_on=(OAuth2Provider, named(User, user_id(email))),
        )

    async def _trusted(self) -> Mapping[str, OAuth2Provider]:
        """Return the providers whose tokens are believed, by their issuers."""
        stamp = self._store.stamp((OAuth2Provider,))
        if stamp != self._stamp:
            found = (await self._store.list(OAuth2Provider, index=("platform", "yes"))).items
            trusted: dict[str, OAuth2Provider] = {}
            for each in sorted(found, key=lambda provider: provider.name):
                if not (each.spec.bearer_trust is None or each.is_marked or self._is_ours(each)):
                    trusted.setdefault(each.spec.issuer, each)
            self._providers, self._stamp = trusted, stamp
        return self._providers

    def _is_ours(self, provider: OAuth2Provider) -> bool:
        return is_our_issuer(provider.spec.issuer, self._settings)

    async def _person(self, email: str, trust: BearerTrust) -> tuple[User | None, str]:
        """Return the user who has an address, however it is written, and as whom that one acts."""
        user = await find(self._store, User, user_id(email))
        if user is None and trust.allow_external_identity:
            return None, email
        if user is None or not user.is_active:
            raise Unauthenticated("user identity not found or inactive")
        return user, user.spec.subject

    def _end(self, exp: float, now: datetime) -> datetime:
        """Return when to look at a token again: its issuer may have withdrawn the key before the token ends."""
        return datetime.fromtimestamp(min(exp, (now + BELIEVED).timestamp()), UTC)
