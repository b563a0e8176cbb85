"""Composition root: the kinds and APIs that exist, and how they become one process.

Services start in the order of their dependencies and stop in the reverse order: the providers, identity, region,
compute.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from remuda.app.console_sessions import ConsoleSessions
from remuda.app.key_watch import watching_keys
from remuda.app.providers import CONSOLES, CONSOLES_PREFIX, Screens, open_providers, screens_api
from remuda.app.services import (
    ServiceMetrics,
    StartMessages,
    audit_file,
    console_in_front,
    example_instance,
    run_compute,
    run_identity,
    run_region,
)
from remuda.compute.app import TABLE as COMPUTE
from remuda.compute.kinds import KINDS as COMPUTE_KINDS
from remuda.config.reach import client_authorities, has_clear_text, public_url, tls_settings
from remuda.config.schema import Configuration
from remuda.config.settings import (
    catalogues,
    compute_settings,
    connection_limits,
    metrics_settings,
    rate_limit,
    region_settings,
)
from remuda.http.cors import Cors
from remuda.http.merged_document import Published
from remuda.http.proxies import ForwardingProxies
from remuda.http.server.health import PROCESS, Mounted
from remuda.http.server.log import LogSettings
from remuda.identity.app import TABLE as IDENTITY
from remuda.identity.kinds import KINDS as IDENTITY_KINDS
from remuda.identity.login.redirect import ACCOUNT
from remuda.identity.rbac.actors import Actors
from remuda.operations.kinds import OPERATION
from remuda.operations.reporter import Metrics as OperationMetrics
from remuda.operations.saga import Sagas
from remuda.process import ProcessPorts, ProcessServices, Services, Settings
from remuda.reconcile.kinds import DELETION_GUARD, LEASE
from remuda.reconcile.reporter import PrometheusReporter
from remuda.region.app import TABLE as REGION
from remuda.region.kinds import KINDS as REGION_KINDS
from remuda.store.kinds import ObjectLimits, Registry

__all__ = [
    "COMPUTE_PREFIX",
    "IDENTITY_PREFIX",
    "REGION_PREFIX",
    "Published",
    "StartMessages",
    "registry",
    "services",
    "settings",
    "tables",
]

IDENTITY_PREFIX = "/identity"
REGION_PREFIX = "/region"
COMPUTE_PREFIX = "/compute"


def registry(limits: ObjectLimits | None = None) -> Registry:
    """Return the kinds of all services. Commands that repair a store need no limits of their numbers of objects."""
    return Registry([*IDENTITY_KINDS, *REGION_KINDS, *COMPUTE_KINDS, OPERATION, LEASE, DELETION_GUARD], limits=limits)


def tables() -> Mapping[str, Published]:
    """Return the route tables of the process and of all services, by name."""
    return {
        PROCESS.service: Published("", PROCESS),
        IDENTITY.service: Published(IDENTITY_PREFIX, IDENTITY),
        REGION.service: Published(REGION_PREFIX, REGION),
        COMPUTE.service: Published(COMPUTE_PREFIX, COMPUTE),
    }


def settings(configuration: Configuration, log: LogSettings) -> Settings:
    server = configuration.server
    limits, cors = connection_limits(server), Cors(server.cors_origins)
    return Settings(
        data=server.data,
        listen=server.listen,
        tls=tls_settings(server),
        is_insecure=has_clear_text(server),
        is_https=server.public_url.startswith("https:"),
        client_authorities=client_authorities(server),
        client_ca_file=server.client_ca_file,
        client_crl_file=server.client_crl_file,
        connection_limits=limits,
        watches=server.watches,
        history_limit=server.history_limit,
        record_limit=server.record_limit,
        cors=cors,
        rate=rate_limit(server),
        forwarding=ForwardingProxies(server.forwarding_proxies),
        metrics=metrics_settings(configuration.metrics, server),
        log=log,
    )


def services(configuration: Configuration, messages: StartMessages) -> Services:

    @asynccontextmanager
    async def begin(process: ProcessPorts) -> AsyncIterator[ProcessServices]:
        server = configuration.server
        url = public_url(server, process.address)
        of_region, offered = region_settings(configuration, url=url), catalogues(configuration.region)
        metrics = ServiceMetrics(
            controllers=PrometheusReporter(process.metrics), operations=OperationMetrics(Sagas([]), process.metrics)
        )
        async with (
            audit_file(process, configuration.audit.file),
            open_providers(process, of_region, offered, url=url) as providers,
            watching_keys(process),
            run_identity(
                process,
                configuration,
                messages,
                metrics,
                url=url,
                endpoints={name: url + each.prefix for name, each in tables().items() if each.prefix},
                example=example_instance(of_region.regions, offered),
            ) as identity,
            run_region(
                process,
                server,
                of_region,
                metrics,
                identity=identity,
                providers=providers.source,
                connector=providers.connector,
            ) as region,
            run_compute(
                process, server, compute_settings(configuration, url=url), metrics, identity=identity, region=region
            ) as compute,
        ):
            actors = Actors(store=process.store, permissions=identity.services.permissions)
            sessions = ConsoleSessions(store=process.store, actors=actors)
            screens = Screens(consoles=providers.consoles, is_permitted=sessions.is_permitted)
            mounted = [
                Mounted(IDENTITY_PREFIX, IDENTITY, identity.api, {ACCOUNT: "Your account"}),
                Mounted(REGION_PREFIX, REGION, region.api),
                Mounted(COMPUTE_PREFIX, COMPUTE, compute.api),
                Mounted(CONSOLES_PREFIX, CONSOLES, screens_api(region, screens, url=url)),
            ]
            account = IDENTITY_PREFIX + ACCOUNT
            yield ProcessServices(
                mounted=mounted,
                checks=[identity.check, region.check, compute.check],
                front=console_in_front(
                    process, server, identity=identity, compute=compute, mounted=mounted, account=account
                ),
            )

    return begin
