"""Organization, project and provider APIs for tests, with their callers and request bodies."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from remuda.access.principal import AccessList, OrganizationAccess, Principal
from remuda.identity.kinds.common import UserState
from remuda.identity.kinds.oauth import OAuth2Provider, OAuth2ProviderSpec
from remuda.identity.kinds.tenancy import ORGANIZATION as ORGANIZATION_KIND
from remuda.identity.kinds.tenancy import Organization
from remuda.identity.kinds.users import (
    Group,
    OrganizationUser,
    OrganizationUserSpec,
    User,
    UserSpec,
    membership_id,
    user_id,
)
from remuda.identity.references import OrganizationReferences
from remuda.identity.tenancy.domains import Domains, prove
from remuda.identity.tenancy.routes import ROUTES
from remuda.identity.tenancy.service import OrganizationProviders, Organizations, Projects
from remuda.kernel.clock import Clock
from remuda.kernel.secrets import Secret
from remuda.resources import service_info
from remuda.resources.conventions import NAME, ORGANIZATION, USER
from remuda.resources.service_info import ServiceInfo
from remuda.store.contract import Store
from remuda.store.objects import Metadata
from tests.kit.asgi.contract import Reply
from tests.kit.identity.resource_api import IdentityApi, everywhere, member, permission_set, run_identity_api

ORGANIZATIONS = "/api/v1/organizations"
ISSUER = "https://remuda.test/identity"
ABSENT = "c0000000-0000-4000-8000-0000000000ff"
PLATFORM_PROVIDER = "d0000000-0000-4000-8000-000000000001"
ALL = "identity:organizations CRUD, identity:projects CRUD, identity:projects/references CD"
PLATFORM = everywhere("platform@example.com", f"{ALL}, identity:oauth2providers CRUD, identity:users CRUD")
"""The one that may do everything everywhere."""

NOWHERE = " — no global-scope permissions are granted to this principal"
STRANGE_ORGANIZATION = " — organization is not in this principal's accessible set"
STRANGE_PROJECT = " — project is not in this principal's accessible set"


@dataclass(frozen=True)
class Tenancy:
    """The services of organizations, projects and OAuth2 providers."""

    organizations: Organizations
    domains: Domains
    projects: Projects
    providers: OrganizationProviders
    info: ServiceInfo


TenancyApi = IdentityApi[Tenancy]


def tenancy_of(store: Store, clock: Clock, release: str = "1.2.3") -> Tenancy:
    """Return the services over a store."""
    return Tenancy(
        Organizations(store=store, clock=clock),
        Domains(store=store, clock=clock, issuer=ISSUER),
        Projects(store=store, clock=clock, references=OrganizationReferences(store)),
        OrganizationProviders(store=store, clock=clock),
        ServiceInfo(name="unikorn-identity", release=release, url="", issuer=""),
    )


def run_tenancy(scenario: Callable[[TenancyApi], Coroutine[Any, Any, None]]) -> None:
    """Run a scenario over the tenancy APIs."""
    run_identity_api(lambda world, store: tenancy_of(store, world.clock), [*ROUTES, *service_info.ROUTES], scenario)


def administrator(organization: str, subject: str = "admin@example.com") -> Principal:
    """Return one with the permissions of the role administrator here."""
    text = "identity:organizations RU, identity:projects CRUD, identity:oauth2providers CRUD"
    return member(subject, organization, text)


def stranger(subject: str = "stranger@example.com") -> Principal:
    """Return one who belongs nowhere."""
    return Principal(subject=subject, type="user")


def service_account(organization: str, text: str = "") -> Principal:
    """Return a service account of an organization."""
    access = AccessList(organizations={organization: OrganizationAccess(permissions=permission_set(text))})
    return Principal(subject="account", type="service", access=access, organizations=(organization,))


def system(text: str) -> Principal:
    """Return a service with permissions everywhere."""
    return Principal(subject="unikorn-region", type="system", access=AccessList(everywhere=permission_set(text)))


def organization(name: str = "acme", **spec: Any) -> dict[str, Any]:
    """Return what makes an organization."""
    return {"metadata": {"name": name}, "spec": {"organizationType": "adhoc"} | spec}


def with_domain(domain: str = "acme.example", **spec: Any) -> dict[str, Any]:
    """Return what makes an organization that logs in at the platform's provider."""
    wanted = {
        "organizationType": "domain",
        "domain": domain,
        "providerScope": "global",
        "providerID": PLATFORM_PROVIDER,
    }
    return {"metadata": {"name": "acme"}, "spec": wanted | spec}


def project(*groups: str, name: str = "prod") -> dict[str, Any]:
    """Return what makes a project."""
    return {"metadata": {"name": name}, "spec": {"groupIDs": list(groups)}}


def provider(**spec: Any) -> dict[str, Any]:
    """Return what makes a provider."""
    wanted = {"issuer": "https://login.acme.example/", "clientID": "us", "clientSecret": "canary-secret"}
    return {"metadata": {"name": "login"}, "spec": wanted | spec}


async def made(tenancy: TenancyApi, path: str, body: dict[str, Any], who: Principal = PLATFORM) -> str:
    """Make something and return its id."""
    reply = await tenancy.ask(who).post(path, body)
    assert reply.status in {201, 202}, reply
    found: str = reply.json["metadata"]["id"]
    return found


async def make_organization(tenancy: TenancyApi, name: str = "acme") -> str:
    """Make an organization and return its id."""
    return await made(tenancy, ORGANIZATIONS, organization(name))


async def make_platform_provider(store: Store) -> None:
    """Store a provider of the whole system, as an operator does."""
    spec = OAuth2ProviderSpec(
        issuer="https://accounts.example.com", type="google", client_id="all", client_secret=Secret("canary-platform")
    )
    await store.create(OAuth2Provider(metadata=Metadata(name=PLATFORM_PROVIDER, labels={NAME: "everybody"}), spec=spec))


async def prove_domain(tenancy: TenancyApi, name: str) -> None:
    """Prove the domain that an organization claims, as the controller does when it finds the record."""
    home = await tenancy.store.get(Organization, name)
    assert await prove(tenancy.store, home, home.spec.domain, "dns", now=tenancy.world.clock.now())


async def make_user(store: Store, subject: str, state: UserState = "active") -> None:
    """Store a user."""
    await store.create(User(metadata=Metadata(name=user_id(subject)), spec=UserSpec(subject=subject, state=state)))


async def join(store: Store, subject: str, organization: str, state: UserState = "active") -> None:
    """Store a membership; its organization need not be there."""
    user = user_id(subject)
    labels = {ORGANIZATION: organization, USER: user}
    metadata = Metadata(name=membership_id(organization, user), labels=labels)
    await store.create(OrganizationUser(metadata=metadata, spec=OrganizationUserSpec(state=state)))


async def make_group(store: Store, organization: str, name: str) -> str:
    """Store a group."""
    home = await store.get(Organization, organization)
    labels = {ORGANIZATION: organization, NAME: "users"}
    metadata = Metadata(name=name, labels=labels, owner_references=(ORGANIZATION_KIND.owner(home),))
    await store.create(Group(metadata=metadata))
    return name


def ids(reply: Reply) -> list[str]:
    """Return the ids of a list."""
    assert reply.status == 200, reply
    return [item["metadata"]["id"] for item in reply.json]


def rejection(reply: Reply) -> tuple[int, str]:
    """Return how a request was refused."""
    assert reply.status >= 400, reply
    return reply.status, reply.json["error_description"]


def forbidden(verb: str, endpoint: str, why: str = " is not permitted") -> tuple[int, str]:
    """Return how a right that is missing is told."""
    return 403, f"operation is not allowed by rbac: operation '{verb}' on endpoint 'identity:{endpoint}'{why}"
