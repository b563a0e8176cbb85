"""Identity service: its route table, services, operations, controllers and background tasks."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from remuda.http.audit import FindOwner
from remuda.http.ratelimit import RateLimit, RateLimiter
from remuda.http.routes import Table
from remuda.identity import audit as auditing
from remuda.identity import operator_passwords
from remuda.identity import operator_tokens as operator
from remuda.identity.audit import AuditLog
from remuda.identity.factors.passkeys import RelyingParty
from remuda.identity.factors.service import Authenticators
from remuda.identity.federation.bearer_tokens import ExternalBearers
from remuda.identity.federation.code_flow import Federation
from remuda.identity.federation.providers import LoginProviders, check_providers, seed_providers
from remuda.identity.login import routes as login
from remuda.identity.login.account_pages import AccountPage, PasswordPages
from remuda.identity.login.attempts import Attempts
from remuda.identity.login.audit import LoginAudit
from remuda.identity.login.browser_sessions import BrowserLogins
from remuda.identity.login.browser_state import BrowserCookie, BrowserRequestReader, KnownBrowserCookie, States
from remuda.identity.login.device_page import DevicePage
from remuda.identity.login.factor_pages import FactorPages, FactorReset
from remuda.identity.login.factor_requirement import FactorRequirement
from remuda.identity.login.factor_templates import FactorTemplates
from remuda.identity.login.failed_logins import FailedLogins
from remuda.identity.login.invitation_pages import InvitationPages
from remuda.identity.login.invitations import Invitations
from remuda.identity.login.login_pages import LoginPages, LogoutPages
from remuda.identity.login.login_steps import LoginSteps
from remuda.identity.login.pages import Pages
from remuda.identity.login.passwords import Passwords
from remuda.identity.login.redirect import LoginRedirects
from remuda.identity.login.second_factor import SecondFactorStep
from remuda.identity.oauth import routes as oauth
from remuda.identity.oauth.clients import Assertions, Clients, seed_clients
from remuda.identity.oauth.codes import AuthorizationCodes, DeviceGrants
from remuda.identity.oauth.exchange import TokenExchange
from remuda.identity.oauth.genuine import GenuineCredentials
from remuda.identity.oauth.grants import TokenGrants
from remuda.identity.oauth.registration import ClientRegistration
from remuda.identity.oauth.service import OAuth
from remuda.identity.operator_passwords import OperatorPasswords
from remuda.identity.operator_requests import OperatorRequests
from remuda.identity.operator_tokens import OperatorTokens
from remuda.identity.owners import owners_in_identity
from remuda.identity.ports import IdentityPorts
from remuda.identity.quotas import controller as quota_controllers
from remuda.identity.quotas import routes as quotas
from remuda.identity.quotas.controller import UsageRetention
from remuda.identity.quotas.ledger import Ledger, seed_quota_metadata
from remuda.identity.quotas.monitor import Monitor
from remuda.identity.quotas.service import Allocations, QuotaLimits
from remuda.identity.rbac import routes as rbac
from remuda.identity.rbac.acl import Bindings
from remuda.identity.rbac.authenticator import IdentityAuthenticator
from remuda.identity.rbac.revocation_feed import HEARTBEAT_S
from remuda.identity.rbac.roles import seed_roles
from remuda.identity.rbac.service import Permissions
from remuda.identity.references import OrganizationReferences
from remuda.identity.settings import IdentitySettings
from remuda.identity.suspensions import routes as suspensions
from remuda.identity.suspensions.service import Suspensions
from remuda.identity.tenancy import controller as tenancy_controllers
from remuda.identity.tenancy import routes as tenancy
from remuda.identity.tenancy.domain_proofs import domain_proofs
from remuda.identity.tenancy.domains import Domains
from remuda.identity.tenancy.service import OrganizationProviders, Organizations, Projects
from remuda.identity.tokens import controller as token_controllers
from remuda.identity.tokens.bearer import Bearers, External
from remuda.identity.tokens.keys import SigningKeys
from remuda.identity.tokens.service import Tokens
from remuda.identity.tokens.sessions import Sessions
from remuda.identity.users import controller as user_controllers
from remuda.identity.users import routes as user_routes
from remuda.identity.users.groups import Groups
from remuda.identity.users.memberships import Memberships
from remuda.identity.users.sagas import SAGAS, UserPorts
from remuda.identity.users.service import Accounts, MemberOperations, Users
from remuda.identity.users.service import RoleGrants as MembershipGrants
from remuda.kernel.clock import Clock
from remuda.kernel.fields import with_common_fields
from remuda.kernel.randomness import Randomness
from remuda.operations.saga import AnyBoundSaga, BoundSaga
from remuda.operations.service import Operations
from remuda.reconcile.controller import Controller
from remuda.resources import service_info
from remuda.resources.service_info import ServiceInfo
from remuda.service import ServiceApp
from remuda.store.background import BackgroundTask
from remuda.store.contract import Store
from remuda.version import release

TABLE = Table(
    "identity",
    title="Identity",
    description="Organizations, projects and users, their permissions, and their quotas.",
    routes=[
        *service_info.ROUTES,
        *tenancy.ROUTES,
        *user_routes.ROUTES,
        *rbac.ROUTES,
        *oauth.ROUTES,
        *login.ROUTES,
        *quotas.ROUTES,
        *auditing.ROUTES,
        *suspensions.ROUTES,
        *operator.ROUTES,
        *operator_passwords.ROUTES,
    ],
)
"""The routes of all resource packages, which an `Api` mounts with `IdentityServices`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityServices:
    """The service of each class that routes call."""

    organizations: Organizations
    domains: Domains
    projects: Projects
    providers: OrganizationProviders
    info: ServiceInfo
    users: Users
    accounts: Accounts
    groups: Groups
    permissions: Permissions
    oauth: OAuth
    registration: ClientRegistration
    login: LoginPages
    logout: LogoutPages
    invitations: InvitationPages
    account: AccountPage
    devices: DevicePage
    passwords: PasswordPages
    login_steps: LoginSteps
    factors: FactorPages
    factor_reset: FactorReset
    limits: QuotaLimits
    allocations: Allocations
    audit: AuditLog
    suspensions: Suspensions
    operator_tokens: OperatorTokens
    operator_passwords: OperatorPasswords


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenServices:
    """The services of tokens. A process has one of each, since they share their caches."""

    keys: SigningKeys
    tokens: Tokens
    sessions: Sessions
    bearers: Bearers


def token_services(
    *, store: Store, clock: Clock, randomness: Randomness, settings: IdentitySettings, external: External | None = None
) -> TokenServices:
    """Return the services of tokens; `external` authenticates tokens of other issuers."""
    keys = SigningKeys(store=store, clock=clock, randomness=randomness, settings=settings)
    tokens = Tokens(store=store, clock=clock, randomness=randomness, settings=settings, keys=keys)
    sessions = Sessions(store=store, clock=clock, randomness=randomness, settings=settings, tokens=tokens)
    bearers = Bearers(store=store, tokens=tokens, sessions=sessions, external=external)
    return TokenServices(keys=keys, tokens=tokens, sessions=sessions, bearers=bearers)


_DEVICES_PER_LOGIN = 3
"""Device authorizations that an address may start for each login it may try: a waiting program starts again."""


def oauth_service(
    *,
    store: Store,
    clock: Clock,
    randomness: Randomness,
    settings: IdentitySettings,
    services: TokenServices,
    permissions: Permissions,
) -> OAuth:
    """Return the OAuth service. Its codes, devices and clients are also those of the login pages."""
    tokens, sessions, bearers = services.tokens, services.sessions, services.bearers
    assertions = Assertions(store=store, clock=clock, settings=settings)
    clients = Clients(store=store, assertions=assertions)
    codes = AuthorizationCodes(store=store, clock=clock, randomness=randomness, settings=settings, sessions=sessions)
    devices = DeviceGrants(store=store, clock=clock, randomness=randomness, settings=settings)
    return OAuth(
        settings=settings,
        tokens=tokens,
        sessions=sessions,
        bearers=bearers,
        permissions=permissions,
        clients=clients,
        devices=devices,
        device_limit=RateLimiter(
            RateLimit(quota=_DEVICES_PER_LOGIN * settings.logins_per_minute, window_s=60, name="devices"), clock
        ),
        grants=TokenGrants(
            store=store,
            clock=clock,
            settings=settings,
            tokens=tokens,
            sessions=sessions,
            clients=clients,
            codes=codes,
            devices=devices,
        ),
        exchange=TokenExchange(
            store=store,
            clock=clock,
            randomness=randomness,
            settings=settings,
            tokens=tokens,
            bearers=bearers,
            permissions=permissions,
        ),
        genuine=GenuineCredentials(
            store=store, clock=clock, settings=settings, tokens=tokens, sessions=sessions, clients=clients
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginServices:
    """The services of the pages for browsers."""

    login: LoginPages
    logout: LogoutPages
    invitations: InvitationPages
    account: AccountPage
    devices: DevicePage
    passwords: PasswordPages
    login_steps: LoginSteps
    factors: FactorPages
    factor_reset: FactorReset


def login_services(ports: IdentityPorts, *, tokens: TokenServices, oauth: OAuth, passwords: Passwords) -> LoginServices:
    store, clock, settings = ports.store, ports.clock, ports.settings
    randomness, sealer = ports.randomness, ports.sealer
    clients, sessions = oauth.clients, tokens.sessions
    cookie, pages = BrowserCookie(settings.issuer), Pages(settings.issuer)
    known_browsers = KnownBrowserCookie(settings.issuer, sealer=sealer, clock=clock, randomness=randomness)
    logins = BrowserLogins(store=store, clock=clock, randomness=randomness, sessions=sessions)
    shared: dict[str, Any] = {
        "store": store,
        "settings": settings,
        "requests": BrowserRequestReader(cookie=cookie, known_browser_cookie=known_browsers),
        "states": States(store=store, sealer=sealer, clock=clock),
        "pages": pages,
        "logins": logins,
        "clients": clients,
        "passwords": passwords,
        "attempts": Attempts(clock=clock, per_minute=settings.logins_per_minute),
        "failures": FailedLogins(log=ports.log, clock=clock, before_delay=settings.login_failures_before_delay),
        "records": LoginAudit(store=store, log=ports.log),
    }
    requirement = FactorRequirement(store=store, clock=clock, permissions=oauth.permissions)
    authenticators = Authenticators(
        store=store, clock=clock, randomness=randomness, relying_party=RelyingParty(settings.issuer)
    )
    templates = FactorTemplates(pages=pages, host=urlsplit(settings.issuer).netloc)
    step = SecondFactorStep(
        store=store,
        states=shared["states"],
        authenticators=authenticators,
        requirement=requirement,
        templates=templates,
    )
    redirects = LoginRedirects(
        store=store,
        clock=clock,
        settings=settings,
        pages=pages,
        logins=logins,
        codes=oauth.grants.codes,
        clients=clients,
        requirement=requirement,
    )
    invitations = Invitations(store=store, states=shared["states"], pages=pages)
    login = LoginPages(
        **shared,
        second_factor=step,
        randomness=randomness,
        cookie=cookie,
        known_browser_cookie=known_browsers,
        redirects=redirects,
        providers=LoginProviders(store=store, settings=settings),
        federation=Federation(fetch=ports.fetch, clock=clock, randomness=randomness, settings=settings),
        invitations=invitations,
        tokens=tokens.tokens,
    )
    return LoginServices(
        login=login,
        logout=LogoutPages(**shared, cookie=cookie, tokens=tokens.tokens),
        invitations=InvitationPages(**shared, invitations=invitations, redirects=redirects, login=login),
        account=AccountPage(
            **shared,
            bindings=Bindings(settings),
            sessions=sessions,
            authenticators=authenticators,
            invitations=invitations,
            login=login,
        ),
        factors=FactorPages(**shared, clock=clock, authenticators=authenticators, login=login),
        factor_reset=FactorReset(store=store, authenticators=authenticators, sessions=sessions),
        devices=DevicePage(**shared, devices=oauth.devices, login=login),
        passwords=PasswordPages(**shared, known_browser_cookie=known_browsers, authenticators=authenticators),
        login_steps=LoginSteps(**shared, login=login),
    )


def user_services(
    ports: UserPorts, *, operations: Operations, grants: MembershipGrants, settings: IdentitySettings
) -> tuple[Users, Accounts, Groups]:
    """Return the services that share their changes; `operations` has the sagas that are `bound` to the same ports."""
    store, clock, references = ports.store, ports.clock, ports.memberships.references
    changes = MemberOperations(store=store, operations=operations, grants=grants)
    return (
        Users(store=store, changes=changes, results=ports.results, references=references),
        Accounts(
            store=store,
            clock=clock,
            changes=changes,
            tokens=ports.tokens,
            results=ports.results,
            references=references,
        ),
        Groups(store=store, clock=clock, settings=settings, grants=grants, references=references),
    )


class IdentityApp(ServiceApp[IdentityPorts, IdentityServices]):
    """The identity service: services, operations, controllers and background tasks over `IdentityPorts`."""

    table = TABLE
    heartbeat_s = HEARTBEAT_S

    def __init__(self, ports: IdentityPorts) -> None:
        store, clock, randomness, settings = ports.store, ports.clock, ports.randomness, ports.settings
        check_providers(settings)
        self.tokens = token_services(
            store=store,
            clock=clock,
            randomness=randomness,
            settings=settings,
            external=ExternalBearers(
                store=store, clock=clock, settings=settings, fetch=ports.fetch, metrics=ports.metrics
            ),
        )
        self.passwords = Passwords(
            store=store,
            clock=clock,
            randomness=randomness,
            run_blocking=ports.run_blocking,
            sessions=self.tokens.sessions,
        )
        self.ledger = Ledger(store, clock, randomness, intent_lifetime=settings.intent_lifetime)
        self._permissions = Permissions(store=store, settings=settings)
        self._user_ports = UserPorts(
            store=store, clock=clock, tokens=self.tokens.tokens, memberships=Memberships(OrganizationReferences(store))
        )
        self.authenticator = IdentityAuthenticator(
            store=store, bearers=self.tokens.bearers, permissions=self._permissions, clock=clock
        )
        super().__init__(ports, self.authenticator, url=settings.issuer)
        self.monitor = Monitor(store, self.ledger, clock=clock, leader=ports.leader, metrics=ports.metrics)
        self._retention = UsageRetention(store, clock=clock, leader=ports.leader, retention=settings.usage_retention)

    def sagas(self) -> Sequence[AnyBoundSaga]:
        return [BoundSaga(saga, self._user_ports) for saga in SAGAS]

    def build_services(self) -> IdentityServices:
        ports, tokens, permissions = self.ports, self.tokens, self._permissions
        store, clock, settings = ports.store, ports.clock, ports.settings
        oauth = oauth_service(
            store=store,
            clock=clock,
            randomness=ports.randomness,
            settings=settings,
            services=tokens,
            permissions=permissions,
        )
        requests = OperatorRequests(store=store, log=ports.log, clock=clock, sealer=ports.sealer)
        login = login_services(ports, tokens=tokens, oauth=oauth, passwords=self.passwords)
        users, accounts, groups = user_services(
            self._user_ports, operations=self.operations, grants=permissions, settings=settings
        )
        return with_common_fields(
            IdentityServices,
            login,
            organizations=Organizations(store=store, clock=clock),
            domains=Domains(store=store, clock=clock, issuer=settings.issuer),
            projects=Projects(store=store, clock=clock, references=self._user_ports.memberships.references),
            providers=OrganizationProviders(store=store, clock=clock),
            info=ServiceInfo(name="unikorn-identity", release=release(), url=settings.issuer, issuer=settings.issuer),
            users=users,
            accounts=accounts,
            groups=groups,
            permissions=permissions,
            oauth=oauth,
            registration=ClientRegistration(store=store, clock=clock, randomness=ports.randomness),
            limits=QuotaLimits(store=store, ledger=self.ledger),
            allocations=Allocations(store=store, clock=clock, ledger=self.ledger),
            audit=AuditLog(log=ports.log, sealer=ports.sealer),
            suspensions=Suspensions(store=store, clock=clock, logins=login.account.logins),
            operator_tokens=OperatorTokens(requests=requests, tokens=tokens.tokens),
            operator_passwords=OperatorPasswords(requests=requests, passwords=self.passwords, settings=settings),
        )

    def owners(self) -> Mapping[str, FindOwner]:
        return owners_in_identity(self.ports.store)

    def controllers(self) -> Sequence[Controller]:
        ports, settings, tokens = self.ports.reconcile_ports, self.ports.controllers, self.tokens
        return (
            *tenancy_controllers.controllers(ports, self.ledger.writer, settings=settings),
            domain_proofs(ports, self.ports.find_txt, issuer=self.ports.settings.issuer, settings=settings),
            *user_controllers.controllers(ports, tokens.tokens, settings=settings),
            *quota_controllers.controllers(ports, self.ledger, settings=settings),
            *token_controllers.controllers(ports, tokens.sessions, tokens.keys, settings=settings),
        )

    def background(self) -> Iterator[tuple[str, BackgroundTask]]:
        yield "quota monitor", self.monitor.run
        yield "usage retention", self._retention.run

    async def seed(self) -> None:
        """Store the built-in roles, quota kinds and clients and the configured providers, then check role bindings."""
        store = self.ports.store
        await seed_roles(store)
        await seed_quota_metadata(store)
        await seed_clients(store)
        await seed_providers(store, self.ports.settings.providers)
        await self._permissions.check()
