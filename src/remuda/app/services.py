"""Services of a process: identity, region and compute, started side by side, and the console in front of them.

They reach each other without the network, through the same clients and with the permissions of the same roles as in
separate processes.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from ipaddress import ip_network
from pathlib import Path
from typing import Any, TypeVar

from remuda.access.principal import Context, Principal
from remuda.auditfile.chain import Chain
from remuda.auditfile.file import AuditFile
from remuda.auditfile.sink import AuditSink, copying
from remuda.clients.delegation import Delegation, ServicePrincipal
from remuda.clients.transport import local
from remuda.clients.watch import LocalWatch
from remuda.compute.app import ComputeApp
from remuda.compute.ports import ComputePorts, RegionClient
from remuda.compute.settings import ComputeSettings
from remuda.config.schema import Configuration, ServerConfig
from remuda.config.settings import api_settings, bootstrap_settings, failure_limit, identity_settings, rate_limit
from remuda.console.app import Console, ConsolePages, ConsolePorts
from remuda.http.asgi import ASGIApp
from remuda.http.proxies import ForwardingProxies
from remuda.http.ratelimit import RateLimiter
from remuda.http.responses import Collection
from remuda.http.server.health import Mounted, ProcessPages
from remuda.identity.api import IdentityApi
from remuda.identity.app import TABLE as IDENTITY
from remuda.identity.app import IdentityApp
from remuda.identity.bootstrap import BootstrapRun, FirstLogin
from remuda.identity.credentials import CredentialsFile, ExampleInstance
from remuda.identity.federation.provider_client import Fetcher
from remuda.identity.login.browser_sessions import BrowserAuthenticator
from remuda.identity.ports import IdentityPorts
from remuda.identity.settings import IdentitySettings
from remuda.operations.reporter import Metrics as OperationMetrics
from remuda.outbound.addresses import AddressPolicy, SystemResolver
from remuda.outbound.dns import TxtResolver
from remuda.outbound.fetch import GuardedFetcher
from remuda.process import ProcessPorts
from remuda.providers.contract.catalogue import CloudFlavor, CloudImage
from remuda.providers.simulated.catalogue import SimCatalogue
from remuda.quota.client import QuotaClient
from remuda.reconcile.reporter import Reporter
from remuda.region.api import RegionApi
from remuda.region.app import TABLE as REGION
from remuda.region.app import RegionApp
from remuda.region.catalogue.rules import size_of
from remuda.region.catalogue.seed import region_id
from remuda.region.kinds.common import GIB
from remuda.region.ports import ProviderSource, RegionConnector, RegionPorts
from remuda.region.settings import ConfiguredRegion, RegionSettings
from remuda.resources.query import NetworkedQuery
from remuda.service import ServiceApp, ServicePorts, in_thread
from remuda.version import describe


@dataclass(frozen=True, slots=True, kw_only=True)
class StartMessages:
    """Callbacks for messages to the operator at the start."""

    first_login: Callable[[FirstLogin], None]
    """Called once for a new store: how to log in."""
    credentials_lost: Callable[[Path], None]
    """Called if `credentials.json` is missing or unreadable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceMetrics:
    """Metrics shared by all services of a process."""

    controllers: Reporter
    operations: OperationMetrics


def audit_file(process: ProcessPorts, path: Path | None) -> AbstractAsyncContextManager[None]:
    """Return a context manager that copies audit records to a file, if one is configured."""
    if path is None:
        return nullcontext()
    file = AuditFile(path, process.data.audit_head, Chain(process.sealer))
    return copying(AuditSink(log=process.store, file=file, clock=process.clock, run_blocking=in_thread))


@asynccontextmanager
async def run_identity(
    process: ProcessPorts,
    configuration: Configuration,
    messages: StartMessages,
    metrics: ServiceMetrics,
    *,
    url: str,
    endpoints: Mapping[str, str],
    example: ExampleInstance | None,
) -> AsyncIterator[IdentityApp]:
    """Run identity for the block. `endpoints`, URLs by service, and `example` go to `credentials.json`."""
    settings = identity_settings(configuration, url=url)
    common = _common_ports(process, configuration.server, metrics)
    identity = IdentityApp(
        IdentityPorts(**common, fetch=_fetcher(settings), find_txt=TxtResolver(settings.dns_servers), settings=settings)
    )
    first = BootstrapRun(
        store=process.store,
        clock=process.clock,
        randomness=process.randomness,
        run_blocking=identity.ports.run_blocking,
        tokens=identity.tokens.tokens,
        passwords=identity.passwords,
        settings=bootstrap_settings(configuration),
        credentials=CredentialsFile(process.data.credentials),
        endpoint=endpoints["identity"],
        others=endpoints,
        example_instance=example,
    )
    try:
        await identity.tokens.keys.all()  # fails early if they were sealed with other keys
        await identity.start()
        await first.run(messages.first_login)
        if await first.has_lost_credentials():
            messages.credentials_lost(process.data.credentials)
        yield identity
    finally:
        await identity.stop()


def _fetcher(settings: IdentitySettings) -> Fetcher:
    reach = AddressPolicy(tuple(map(ip_network, settings.provider_targets)))
    return Fetcher(GuardedFetcher(resolve=SystemResolver(), reach=reach))


def _common_ports(process: ProcessPorts, server: ServerConfig, metrics: ServiceMetrics) -> dict[str, Any]:
    return {
        "store": process.store,
        "log": process.store,
        "clock": process.clock,
        "randomness": process.randomness,
        "sealer": process.sealer,
        "metrics": process.metrics,
        "operation_metrics": metrics.operations,
        "closing": process.closing,
        "watch_slots": process.watch_slots,
        "request_slots": process.request_slots,
        "page_slots": process.page_slots,
        "record_budget": process.record_budget,
        "buffer_shares": process.buffer_shares,
        "reporter": metrics.controllers,
        "rate": rate_limit(server),
        "failure_rate": failure_limit(server),
        "api": api_settings(server, process.client_authorities),
    }


AppT = TypeVar("AppT", bound=ServiceApp[Any, Any])


@asynccontextmanager
async def _running(app: AppT) -> AsyncIterator[AppT]:
    """Start a service, and stop it after the block."""
    try:
        await app.start()
        yield app
    finally:
        await app.stop()


def identity_client(identity: IdentityApp, name: str) -> QuotaClient:
    delegation = _delegation(identity, name)
    watch = _watch(identity.ports, delegation)
    return QuotaClient(identity=local(IdentityApi, IDENTITY, identity.services, watch=watch), delegation=delegation)


def region_client(identity: IdentityApp, region: RegionApp, name: str) -> RegionClient:
    delegation = _delegation(identity, name)
    watch = _watch(region.ports, delegation)
    return RegionClient(local(RegionApi, REGION, region.services, watch=watch), delegation)


def _delegation(identity: IdentityApp, name: str) -> Delegation:
    return Delegation(service=_service(identity, name), randomness=identity.ports.randomness)


def _watch(ports: ServicePorts, delegation: Delegation) -> LocalWatch:
    return LocalWatch(reader=delegation.service, clock=ports.clock, randomness=ports.randomness, watched=ports.watched)


_REGION, _COMPUTE = "unikorn-region", "unikorn-compute"
_ROLES = {_REGION: "region-service", _COMPUTE: "compute-service"}


def _service(identity: IdentityApp, name: str) -> ServicePrincipal:
    """Return a function that returns a service's principal with its current permissions.

    It calls within this process, so it needs no credentials, and no system account that others could use.
    """
    known: Principal | None = None
    checked = -1
    """The change counter of the store when the permissions were read: while it is the same, nothing has changed."""

    async def service() -> Principal:
        nonlocal known, checked
        counter = identity.ports.store.change_counter()
        if known is None or counter != checked:
            access = (await identity.services.permissions.of_role(_ROLES[name])).access
            if known is None or known.access is not access:
                known = Principal(subject=name, type="system", access=access)
            checked = counter
        return known

    return service


def run_region(
    process: ProcessPorts,
    server: ServerConfig,
    settings: RegionSettings,
    metrics: ServiceMetrics,
    *,
    identity: IdentityApp,
    providers: ProviderSource,
    connector: RegionConnector,
) -> AbstractAsyncContextManager[RegionApp]:
    ports = RegionPorts(
        **_common_ports(process, server, metrics),
        authenticator=identity.authenticator,
        identity=identity_client(identity, _REGION),
        providers=providers,
        connector=connector,
        settings=settings,
    )
    return _running(RegionApp(ports))


def run_compute(
    process: ProcessPorts,
    server: ServerConfig,
    settings: ComputeSettings,
    metrics: ServiceMetrics,
    *,
    identity: IdentityApp,
    region: RegionApp,
) -> AbstractAsyncContextManager[ComputeApp]:
    ports = ComputePorts(
        **_common_ports(process, server, metrics),
        authenticator=identity.authenticator,
        identity=identity_client(identity, _COMPUTE),
        region=region_client(identity, region, _COMPUTE),
        settings=settings,
    )
    return _running(ComputeApp(ports))


def console_in_front(
    process: ProcessPorts,
    server: ServerConfig,
    *,
    identity: IdentityApp,
    compute: ComputeApp,
    mounted: Sequence[Mounted],
    account: str,
) -> Callable[[ProcessPages], ASGIApp]:
    """Return a function that puts the console before the pages of a process. `account` is the login page."""
    login, permissions = identity.services.login, identity.services.permissions
    viewers = BrowserAuthenticator(
        store=process.store, cookie=login.cookie, logins=login.logins, permissions=permissions
    )

    async def instances(principal: Principal) -> Collection[Any, Any]:
        return await compute.services.instances.list(Context(principal=principal, operation=""), NetworkedQuery())

    ports = ConsolePorts(
        pages=ConsolePages(description=describe(), mounted=mounted, account=account),
        viewer=viewers.find,
        instances=instances,
        watch=compute.watches,
        limiter=RateLimiter(rate_limit(server), process.clock),
        forwarding=ForwardingProxies(server.forwarding_proxies),
    )
    return lambda pages: Console(ports, pages)


_DISTRO = "ubuntu"


def example_instance(
    regions: Iterable[ConfiguredRegion], catalogues: Mapping[str, SimCatalogue]
) -> ExampleInstance | None:
    """Return a small instance of the first public simulated region that has one, for scripts."""
    for region in sorted(regions, key=lambda each: each.name):
        found = catalogues.get(region.name)
        if found is None or region.spec.organizations:
            continue
        for flavor in sorted(filter(_is_for_all, found.flavors), key=size_of):
            image = max((each for each in found.images if _fits(each, flavor)), key=_rank, default=None)
            if image is not None:
                return ExampleInstance(region_id=region_id(region.name), flavor_id=flavor.id, image_id=image.id)
    return None


def _is_for_all(flavor: CloudFlavor) -> bool:
    return flavor.architecture == "x86_64" and not (flavor.is_pinned_only or flavor.is_baremetal)


def _fits(image: CloudImage, flavor: CloudFlavor) -> bool:
    is_for_it = image.architecture == flavor.architecture and image.virtualization != "baremetal"
    is_for_it &= not image.software_versions
    return is_for_it and image.state == "ready" and image.gpu is None and image.size_gib * GIB <= flavor.disk_bytes


def _rank(image: CloudImage) -> tuple[bool, str, str]:
    """Rank the most common distribution highest, and within it the newest version."""
    return image.os.distro == _DISTRO, image.os.version, image.id
