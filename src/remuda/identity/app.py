"""The identity service: its services over their ports, its API, its controllers and its background tasks.

Other services use identity by the routes of `TABLE` only, in this process or over HTTP.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from remuda.http.api import Api
from remuda.http.ratelimit import RateLimit, RateLimiter
from remuda.http.routes import Table
from remuda.http.watch import WatchPorts
from remuda.identity import audit as auditing
from remuda.identity import operator_tokens as operator
from remuda.identity.audit import Auditing
from remuda.identity.federation.bearer_tokens import ExternalBearers
from remuda.identity.federation.code_flow import Federation
from remuda.identity.federation.providers import Providers, check_providers, seed_providers
from remuda.identity.login import routes as login
from remuda.identity.login.account_pages import AccountPage, PasswordPages
from remuda.identity.login.audit import Records
from remuda.identity.login.browser_sessions import Logins
from remuda.identity.login.browser_state import BrowserCookie, FamiliarCookie, States
from remuda.identity.login.device_page import DevicePage
from remuda.identity.login.facade import Browser
from remuda.identity.login.login_pages import Attempts, Entry, Exit
from remuda.identity.login.pages import Pages
from remuda.identity.login.passwords import Passwords
from remuda.identity.login.redirect import Passing
from remuda.identity.oauth import routes as oauth
from remuda.identity.oauth.clients import Assertions, Clients, seed_clients
from remuda.identity.oauth.codes import Codes, Devices
from remuda.identity.oauth.exchange import Exchange
from remuda.identity.oauth.grants import Grants
from remuda.identity.oauth.registration import Registration
from remuda.identity.oauth.service import OAuth
from remuda.identity.operator_tokens import Operators
from remuda.identity.ports import IdentityPorts
from remuda.identity.quotas import controller as quota_controllers
from remuda.identity.quotas import routes as quotas
from remuda.identity.quotas.controller import Retention
from remuda.identity.quotas.ledger import Ledger, seed_quota_metadata
from remuda.identity.quotas.monitor import Monitor
from remuda.identity.quotas.service import Allocations, Limits
from remuda.identity.rbac import routes as rights
from remuda.identity.rbac.acl import Bindings
from remuda.identity.rbac.authenticator import IdentityAuthenticator
from remuda.identity.rbac.revocation_feed import HEARTBEAT_S
from remuda.identity.rbac.roles import seed_roles
from remuda.identity.rbac.service import Rights
from remuda.identity.settings import IdentitySettings
from remuda.identity.tenancy import controller as tenancy_controllers
from remuda.identity.tenancy import routes as tenancy
from remuda.identity.tenancy.service import Organizations, Projects, Version
from remuda.identity.tenancy.service import Providers as OrganizationProviders
from remuda.identity.tokens import controller as token_controllers
from remuda.identity.tokens.bearer import Bearers, External
from remuda.identity.tokens.keys import SigningKeys
from remuda.identity.tokens.service import Tokens
from remuda.identity.tokens.sessions import Sessions
from remuda.identity.users import controller as people_controllers
from remuda.identity.users import routes as people
from remuda.identity.users.groups import Groups
from remuda.identity.users.memberships import Joining
from remuda.identity.users.sagas import PeoplePorts, bound
from remuda.identity.users.service import Accounts, Changes, Users
from remuda.identity.users.service import Grants as MembershipGrants
from remuda.kernel.clock import Clock
from remuda.kernel.randomness import Randomness
from remuda.operations.recovery import Recovery
from remuda.operations.service import Operations
from remuda.reconcile.controller import Controller
from remuda.service import api_ports, operations_of, unsynced_controllers
from remuda.store.background import BackgroundTasks
from remuda.store.contract import Store
from remuda.version import release

TABLE = Table(
    "identity",
    title="Identity",
    description="Organizations, projects and users, their permissions, and their quotas.",
    routes=[
        *tenancy.ROUTES,
        *people.ROUTES,
        *rights.ROUTES,
        *oauth.ROUTES,
        *login.ROUTES,
        *quotas.ROUTES,
        *auditing.ROUTES,
        *operator.ROUTES,
    ],
)
"""The whole API, which is mounted with `IdentityServices`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityServices:
    """The services of identity, one of each class."""

    organizations: Organizations
    projects: Projects
    providers: OrganizationProviders
    version: Version
    users: Users
    accounts: Accounts
    groups: Groups
    rights: Rights
    oauth: OAuth
    registration: Registration
    browser: Browser
    limits: Limits
    allocations: Allocations
    auditing: Auditing
    operators: Operators


def login_room(
    ports: IdentityPorts,
    *,
    clients: Clients,
    codes: Codes,
    devices: Devices,
    sessions: Sessions,
    tokens: Tokens,
    passwords: Passwords,
) -> Browser:
    """Return the room, put together from its ports and what other rooms have."""
    store, clock, settings = ports.store, ports.clock, ports.settings
    cookie, pages = BrowserCookie(settings.issuer), Pages(settings.issuer)
    familiar = FamiliarCookie(settings.issuer, sealer=ports.sealer, clock=clock, randomness=ports.randomness)
    states = States(sealer=ports.sealer, clock=clock)
    attempts = Attempts(clock=clock, per_minute=settings.logins_per_minute)
    records = Records(store=store, log=ports.log)
    logins = Logins(store=store, clock=clock, randomness=ports.randomness, sessions=sessions)
    entry = Entry(
        store=store,
        randomness=ports.randomness,
        settings=settings,
        cookie=cookie,
        familiar=familiar,
        states=states,
        pages=pages,
        logins=logins,
        passing=Passing(clock=clock, settings=settings, pages=pages, logins=logins, codes=codes, clients=clients),
        passwords=passwords,
        attempts=attempts,
        providers=Providers(store=store, settings=settings),
        federation=Federation(fetch=ports.fetch, clock=clock, randomness=ports.randomness, settings=settings),
        clients=clients,
        tokens=tokens,
        records=records,
    )
    return Browser(
        cookie=cookie,
        familiar=familiar,
        entry=entry,
        account=AccountPage(
            store=store,
            settings=settings,
            bindings=Bindings(settings),
            states=states,
            pages=pages,
            logins=logins,
            sessions=sessions,
            clients=clients,
            passwords=passwords,
            records=records,
            entry=entry,
        ),
        exit=Exit(
            settings=settings,
            cookie=cookie,
            states=states,
            pages=pages,
            logins=logins,
            clients=clients,
            tokens=tokens,
            records=records,
        ),
        devices=DevicePage(
            states=states,
            pages=pages,
            logins=logins,
            attempts=attempts,
            devices=devices,
            clients=clients,
            records=records,
            entry=entry,
        ),
        passwords=PasswordPages(
            store=store,
            settings=settings,
            pages=pages,
            logins=logins,
            passwords=passwords,
            attempts=attempts,
            records=records,
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRoom:
    """Everything about tokens, of which there is one in a process: its parts share what they remember."""

    keys: SigningKeys
    tokens: Tokens
    sessions: Sessions
    bearers: Bearers


def token_room(
    *,
    store: Store,
    clock: Clock,
    randomness: Randomness,
    settings: IdentitySettings,
    external: External | None = None,
) -> TokenRoom:
    """Return the room; `external` knows the tokens of other issuers."""
    keys = SigningKeys(store=store, clock=clock, randomness=randomness, settings=settings)
    tokens = Tokens(store=store, clock=clock, randomness=randomness, settings=settings, keys=keys)
    sessions = Sessions(store=store, clock=clock, randomness=randomness, settings=settings, tokens=tokens)
    bearers = Bearers(store=store, tokens=tokens, sessions=sessions, external=external)
    return TokenRoom(keys=keys, tokens=tokens, sessions=sessions, bearers=bearers)


_DEVICES_PER_LOGIN = 3
"""A device may be begun more often than a password be tried: a program that waits begins again."""


def oauth_room(
    *,
    store: Store,
    clock: Clock,
    randomness: Randomness,
    settings: IdentitySettings,
    room: TokenRoom,
    rights: Rights,
) -> OAuth:
    """Return the room, over that of the tokens. Codes, devices and clients are those that logins must share."""
    tokens, sessions, bearers = room.tokens, room.sessions, room.bearers
    assertions = Assertions(store=store, clock=clock, settings=settings)
    clients = Clients(store=store, assertions=assertions)
    codes = Codes(store=store, clock=clock, randomness=randomness, settings=settings, sessions=sessions)
    devices = Devices(store=store, clock=clock, randomness=randomness, settings=settings)
    return OAuth(
        settings=settings,
        tokens=tokens,
        sessions=sessions,
        bearers=bearers,
        rights=rights,
        clients=clients,
        devices=devices,
        beginnings=RateLimiter(
            RateLimit(quota=_DEVICES_PER_LOGIN * settings.logins_per_minute, window_s=60, name="devices"), clock
        ),
        grants=Grants(
            store=store,
            clock=clock,
            settings=settings,
            tokens=tokens,
            sessions=sessions,
            clients=clients,
            codes=codes,
            devices=devices,
        ),
        exchange=Exchange(
            store=store,
            clock=clock,
            randomness=randomness,
            settings=settings,
            tokens=tokens,
            bearers=bearers,
            rights=rights,
        ),
        registration=Registration(store=store, clock=clock, randomness=randomness),
    )


def user_services(
    ports: PeoplePorts, *, operations: Operations, grants: MembershipGrants, settings: IdentitySettings
) -> tuple[Users, Accounts, Groups]:
    """Return the services that share their changes; `operations` has the sagas that are `bound` to the same ports."""
    store, clock = ports.store, ports.clock
    changes = Changes(store=store, operations=operations, grants=grants)
    return (
        Users(store=store, changes=changes, tray=ports.tray),
        Accounts(store=store, clock=clock, changes=changes, tokens=ports.tokens, tray=ports.tray),
        Groups(store=store, clock=clock, settings=settings, grants=grants),
    )


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
        users, accounts, groups = user_services(persons, operations=self.operations, grants=rights, settings=settings)
        self.services = IdentityServices(
            organizations=Organizations(store=store, clock=clock),
            projects=Projects(store=store, clock=clock),
            providers=OrganizationProviders(store=store, clock=clock),
            version=Version(release()),
            users=users,
            accounts=accounts,
            groups=groups,
            rights=rights,
            oauth=oauth,
            registration=oauth.registration,
            browser=login_room(
                ports,
                clients=oauth.clients,
                codes=oauth.grants.codes,
                devices=oauth.devices,
                sessions=self.tokens.sessions,
                tokens=self.tokens.tokens,
                passwords=self.passwords,
            ),
            limits=Limits(store=store, ledger=self.ledger),
            allocations=Allocations(store=store, clock=clock, ledger=self.ledger),
            auditing=Auditing(log=ports.log, sealer=ports.sealer),
            operators=Operators(
                store=store, log=ports.log, clock=clock, sealer=ports.sealer, tokens=self.tokens.tokens
            ),
        )
        self.authenticator = IdentityAuthenticator(store=store, bearers=self.tokens.bearers, rights=rights, clock=clock)
        self.watches = WatchPorts(clock=clock, closing=ports.closing, heartbeat_s=HEARTBEAT_S)
        self.api = Api(
            TABLE, self.services, api_ports(ports, self.authenticator, self.watches, url=ports.settings.issuer)
        )
        self.drivers = self._drivers()
        self._monitor = Monitor(store, self.ledger, clock=clock, leader=ports.leader, metrics=ports.metrics)
        self._retention = Retention(store, clock=clock, leader=ports.leader, usage_kept=settings.usage_kept)
        self._recovery = Recovery(self.operations, is_alone=ports.is_only_process)
        self._duties = BackgroundTasks(clock)

    async def start(self) -> None:
        """Write what is built in, take up what was left, and begin."""
        await seed_roles(self.ports.store)
        await seed_quota_metadata(self.ports.store)
        await seed_clients(self.ports.store)
        await seed_providers(self.ports.store, self.ports.settings.providers)
        await self.services.rights.check()
        self._duties.start("recovery", self._recovery.run)
        self._duties.start("forgetting", self._recovery.run_retention)
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
        return unsynced_controllers(self.drivers)

    def _drivers(self) -> Sequence[Controller]:
        ports, tokens = self.ports, self.tokens
        reconciling = ports.reconcile_ports
        return (
            *tenancy_controllers.drivers(reconciling, self.ledger.heads, settings=ports.controllers),
            *people_controllers.drivers(reconciling, tokens.tokens, settings=ports.controllers),
            *quota_controllers.drivers(reconciling, self.ledger, settings=ports.controllers),
            *token_controllers.drivers(reconciling, tokens.sessions, tokens.keys, settings=ports.controllers),
        )
