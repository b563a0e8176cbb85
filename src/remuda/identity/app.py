"""Identity put together: the rooms over their ports, the API before them, and what goes on by itself behind them."""

from collections.abc import Iterable, Sequence

from remuda.http.api import Api
from remuda.http.watch import WatchPorts
from remuda.identity.api import TABLE
from remuda.identity.auditing.service import Auditing
from remuda.identity.federation.bearer_tokens import ExternalBearers
from remuda.identity.federation.seeding import check_providers, seed_providers
from remuda.identity.login.passwords import Passwords
from remuda.identity.login.room import login_room
from remuda.identity.oauth.clients import seed_clients
from remuda.identity.oauth.room import oauth_room
from remuda.identity.operator.service import Operators
from remuda.identity.ports import IdentityPorts
from remuda.identity.quotas import controller as quota_controllers
from remuda.identity.quotas.catalogue import seed_quota_metadata
from remuda.identity.quotas.facade import Quotas
from remuda.identity.quotas.ledger import Ledger
from remuda.identity.quotas.monitor import Monitor
from remuda.identity.quotas.retention import Retention
from remuda.identity.rbac.authenticator import IdentityAuthenticator
from remuda.identity.rbac.revocation_feed import HEARTBEAT_S
from remuda.identity.rbac.roles import seed_roles
from remuda.identity.rbac.service import Rights
from remuda.identity.service import Identity
from remuda.identity.tenancy import controller as tenancy_controllers
from remuda.identity.tenancy.facade import Tenancy
from remuda.identity.tokens import controller as token_controllers
from remuda.identity.tokens.room import token_room
from remuda.identity.users import controller as people_controllers
from remuda.identity.users.memberships import Joining
from remuda.identity.users.room import people_room
from remuda.identity.users.sagas import PeoplePorts, bound
from remuda.operations.recovery import Recovery
from remuda.reconcile.controller import Driver
from remuda.service import api_ports, not_begun, operations_of
from remuda.store.background import Duties
from remuda.version import release


class IdentityApp:
    """The whole service."""

    def __init__(self, ports: IdentityPorts) -> None:
        self.ports = ports
        self.table = TABLE
        store, clock, randomness, settings = ports.store, ports.clock, ports.randomness, ports.settings
        check_providers(settings)
        external = ExternalBearers(
            store=store, clock=clock, settings=settings, fetch=ports.fetch, metrics=ports.metrics
        )
        self.tokens = token_room(store=store, clock=clock, randomness=randomness, settings=settings, external=external)
        rights = Rights(store=store, settings=settings)
        self.passwords = Passwords(
            store=store, clock=clock, randomness=randomness, aside=ports.aside, sessions=self.tokens.sessions
        )
        self.ledger = Ledger(store, clock, randomness, intent_life=settings.intent_life)
        persons = PeoplePorts(store=store, clock=clock, tokens=self.tokens.tokens, joining=Joining(store))
        self.operations = operations_of(ports, bound(persons))
        oauth = oauth_room(
            store=store, clock=clock, randomness=randomness, settings=settings, room=self.tokens, rights=rights
        )
        self.service = Identity(
            tenancy=Tenancy(store=store, clock=clock, version=release()),
            people=people_room(persons, operations=self.operations, grants=rights, settings=settings),
            rights=rights,
            oauth=oauth,
            browser=login_room(
                ports,
                clients=oauth.clients,
                codes=oauth.grants.codes,
                devices=oauth.devices,
                sessions=self.tokens.sessions,
                tokens=self.tokens.tokens,
                passwords=self.passwords,
            ),
            quotas=Quotas(store=store, clock=clock, ledger=self.ledger),
            auditing=Auditing(log=ports.log, sealer=ports.sealer),
            operators=Operators(
                store=store, log=ports.log, clock=clock, sealer=ports.sealer, tokens=self.tokens.tokens
            ),
        )
        self.authenticator = IdentityAuthenticator(store=store, bearers=self.tokens.bearers, rights=rights, clock=clock)
        self.watches = WatchPorts(clock=clock, closing=ports.closing, heartbeat_s=HEARTBEAT_S)
        self.api = Api(
            TABLE, self.service, api_ports(ports, self.authenticator, self.watches, url=ports.settings.issuer)
        )
        self.drivers = self._drivers()
        self._monitor = Monitor(store, self.ledger, clock=clock, leader=ports.leader, metrics=ports.metrics)
        self._retention = Retention(store, clock=clock, leader=ports.leader, usage_kept=settings.usage_kept)
        self._recovery = Recovery(self.operations, is_alone=ports.is_alone)
        self._duties = Duties(clock)

    async def start(self) -> None:
        """Write what is built in, take up what was left, and begin."""
        await seed_roles(self.ports.store)
        await seed_quota_metadata(self.ports.store)
        await seed_clients(self.ports.store)
        await seed_providers(self.ports.store, self.ports.settings.providers)
        await self.service.rights.check()
        self._duties.start("recovery", self._recovery.keep)
        self._duties.start("forgetting", self._recovery.keep_forgetting)
        self._duties.start("quota monitor", self._monitor.keep)
        self._duties.start("usage retention", self._retention.keep)
        for driver in self.drivers:
            await driver.start()

    async def stop(self) -> None:
        """End everything that goes on by itself."""
        self.ports.closing.set()
        for driver in self.drivers:
            await driver.stop()
        await self._duties.stop()
        await self.operations.stop()

    def check(self) -> Iterable[tuple[str, str]]:
        """Return what speaks against sending requests here."""
        return not_begun(self.drivers)

    def _drivers(self) -> Sequence[Driver]:
        ports, tokens = self.ports, self.tokens
        reconciling = ports.reconciling
        return (
            *tenancy_controllers.drivers(reconciling, self.ledger.heads, settings=ports.control),
            *people_controllers.drivers(reconciling, tokens.tokens, settings=ports.control),
            *quota_controllers.drivers(reconciling, self.ledger, settings=ports.control),
            *token_controllers.drivers(reconciling, tokens.sessions, tokens.keys, settings=ports.control),
        )
