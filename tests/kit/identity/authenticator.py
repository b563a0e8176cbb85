"""Identity's own authenticator with everything behind it, and credentials of every sort to show it."""

from collections.abc import Callable, Coroutine
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from msgspec.structs import replace

from remuda.access.principal import Principal
from remuda.http.authentication import PrincipalClaim, RequestCredentials
from remuda.identity.app import token_services
from remuda.identity.kinds.tokens import Session
from remuda.identity.kinds.users import ServiceAccount, User
from remuda.identity.rbac.authenticator import IdentityAuthenticator
from remuda.identity.settings import IdentitySettings
from remuda.identity.tokens.bearer import External
from remuda.store.sqlite.store import SqliteStore
from tests.kit.certificates import authority
from tests.kit.identity.permissions import PermissionEnvironment, run_environment
from tests.kit.identity.service_credentials import system_accounts
from tests.kit.simulation.runner import World

YEAR = timedelta(days=365)


class AuthenticatorEnvironment(PermissionEnvironment):
    """A store, and an authenticator over it."""

    def __init__(
        self, world: World, store: SqliteStore, settings: IdentitySettings, external: External | None = None
    ) -> None:
        super().__init__(world, store, settings)
        self.clock = world.clock
        self.tokens = token_services(
            store=store, clock=world.clock, randomness=world.randomness, settings=settings, external=external
        )
        self.authenticator = IdentityAuthenticator(
            store=store, bearers=self.tokens.bearers, permissions=self.permissions, clock=world.clock
        )

    async def let_in(self, token: str | None = None, **more: Any) -> Principal:
        """Show credentials."""
        return await self.authenticator.authenticate(RequestCredentials(token=token, **more))

    async def log_in(self, user: User) -> tuple[str, Session]:
        """Return the token of a new session."""
        session = await self.tokens.sessions.begin(user=user, client="console")
        return (await self.tokens.tokens.issue_for_session(user, session)).token.reveal(), session

    async def new_token(self, account: ServiceAccount) -> str:
        """Give a service account a token, in place of any other."""
        found = await self.store.get(ServiceAccount, account.name)
        organization = found.metadata.labels["unikorn-cloud.org/organization"]
        issued = await self.tokens.tokens.issue_for_account(found.name, organization)
        spec = replace(found.spec, access_token=issued.hash, token_id=issued.id, expiry=issued.expires)
        await self.store.update(replace(found, spec=spec))
        return issued.token.reveal()

    async def service_token(self, name: str) -> str:
        return (await self.tokens.tokens.issue_for_service(name)).token.reveal()

    def certificate(self, name: str, *, begins: timedelta = -YEAR, ends: timedelta = YEAR) -> str:
        now = self.whole_second()
        return certificate_of((name,), now + begins, now + ends)

    def whole_second(self) -> datetime:
        """Return the present time as certificates and tokens have it."""
        return self.clock.now().replace(microsecond=0)


@cache
def certificate_of(names: tuple[str, ...], begins: datetime, ends: datetime) -> str:
    """Return a certificate with these common names, as PEM."""
    return authority().issue(*names, begins=begins, ends=ends).pem


def claim(actor: str = "", **more: Any) -> PrincipalClaim:
    return PrincipalClaim(actor=actor, **more)


def run_authenticator(
    scenario: Callable[[AuthenticatorEnvironment], Coroutine[Any, Any, None]],
    *,
    seed: int = 5,
    external: External | None = None,
    **settings: Any,
) -> None:
    """Run a scenario in simulated time; `settings` are those of identity that it wants otherwise."""

    def make(world: World, store: SqliteStore, chosen: IdentitySettings) -> AuthenticatorEnvironment:
        return AuthenticatorEnvironment(world, store, chosen, external)

    run_environment(make, scenario, seed=seed, **{"system_accounts": system_accounts(), **settings})
