"""Conversion of the configuration into the settings of the process, identity, region and compute."""

import re
from collections.abc import Iterable, Mapping
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

from msgspec.structs import replace

from remuda.compute.settings import ComputeSettings
from remuda.config.fields import check_name
from remuda.config.loader import Misconfigured
from remuda.config.object_limits import check_object_limits
from remuda.config.reach import check_files, check_reach, client_authorities, metrics_tls, public_url
from remuda.config.region_schema import ClusterConfig, ClusterNodeConfig, PhysicalNetworkConfig, RegionConfig
from remuda.config.schema import Configuration, IdentityProviderConfig, MetricsConfig, ServerConfig, SystemAccountConfig
from remuda.http.api import ApiSettings
from remuda.http.certificates import ClientAuthorities
from remuda.http.cors import Cors
from remuda.http.proxies import CertificateProxies, ForwardingProxies
from remuda.http.ratelimit import RateLimit
from remuda.http.server.exposition import MetricsSettings
from remuda.http.server.limits import ConnectionLimits
from remuda.http.server.server import ListenAddress
from remuda.identity.bootstrap import BootstrapSettings, check_bootstrap
from remuda.identity.federation.providers import check_providers
from remuda.identity.kinds.oauth import BearerTrust
from remuda.identity.oauth.clients import load_public_key
from remuda.identity.rbac.acl import Bindings
from remuda.identity.settings import GroupBinding, IdentitySettings, PlatformProvider, RoleBinding, SystemAccount
from remuda.kernel.errors import Invalid, Unavailable
from remuda.kernel.fields import with_common_fields
from remuda.kernel.secrets import Secret
from remuda.kernel.text import nearest
from remuda.providers.simulated.catalogue import SimCatalogue, load_catalogues, without_delays
from remuda.region.kinds.common import GIB, Cpu, Gpu
from remuda.region.kinds.regions import (
    KubernetesNode,
    NetworksConfig,
    ProviderNetworksConfig,
    RegionKubernetes,
    RegionOpenstack,
    RegionOrganization,
    RegionSecurity,
    RegionSimulated,
    RegionSpec,
    VlanConfig,
    VlanSegment,
)
from remuda.region.settings import ConfiguredRegion, RegionSettings

_NO_DELAY = timedelta(0)


def catalogues(section: RegionConfig) -> Mapping[str, SimCatalogue]:
    """Return the configured simulated clouds by name, or raise Misconfigured."""
    if not section.simulated:
        return {}
    try:
        found = load_catalogues(section.catalogue)
    except Invalid as error:
        raise Misconfigured((f"region.catalogue: {error.message}",)) from None
    return {name: without_delays(each) if section.instant else each for name, each in found.items()}


def region_settings(configuration: Configuration, *, url: str) -> RegionSettings:
    """Return region's settings, in a process that clients reach at `url`, or raise Misconfigured."""
    section = configuration.region
    specs = {name: RegionSpec(provider="simulated", simulated=RegionSimulated(name)) for name in catalogues(section)}
    for name, cluster in section.kubernetes.items():
        if name in specs:
            raise _wrong(f"kubernetes.{name}", "has the name of a simulated cloud: give it another one")
        specs[name] = RegionSpec(provider="kubernetes", kubernetes=_cluster(name, cluster))
    _check_names(section, specs)
    for name, physical in section.physical_networks.items():
        if specs[name].provider != "simulated":
            raise _wrong(f"physical_networks.{name}", "names a region without networks: leave it out")
        specs[name] = replace(specs[name], openstack=_physical(f"physical_networks.{name}", physical))
    return with_common_fields(
        RegionSettings,
        section,
        url=f"{url}/region",
        identity_url=configuration.identity.issuer or f"{url}/identity",
        regions=tuple(_region(name, spec, section.private.get(name, ())) for name, spec in specs.items()),
        absence_delay=_NO_DELAY if section.instant else section.absence_delay,
        removal_delay=_NO_DELAY if section.instant else 2 * configuration.server.request_timeout,
    )


def check_region(configuration: Configuration, *, url: str) -> None:
    """Raise Misconfigured if values contradict each other, or a named file is invalid."""
    settings = region_settings(configuration, url=url)
    for region in settings.regions:
        _check_cluster(region)


def _region(name: str, spec: RegionSpec, organizations: tuple[str, ...]) -> ConfiguredRegion:
    if not organizations:
        return ConfiguredRegion(name=name, spec=spec)
    security = RegionSecurity(tuple(RegionOrganization(each) for each in organizations))
    return ConfiguredRegion(name=name, spec=replace(spec, security=security))


def _check_names(section: RegionConfig, names: Iterable[str]) -> None:
    """Reject an invalid region name, and a setting for an unknown region: a misspelt private region would be public."""
    known = list(names)
    for name in known:
        if (problem := check_name(name)) is not None:
            raise _wrong(f"kubernetes.{name}" if name in section.kubernetes else f"catalogue: clouds.{name}", problem)
    for setting in ("private", "physical_networks"):
        for name in getattr(section, setting):
            if name not in known:
                found = nearest(name, known)
                raise _wrong(f"{setting}.{name}", f"is not a region: {_meant(found, known)}")


def _meant(found: str | None, known: list[str]) -> str:
    if found:
        return f"did you mean {found}?"
    return f"there are {', '.join(known)}" if known else "configure it, or leave this out"


def _physical(location: str, section: PhysicalNetworkConfig) -> RegionOpenstack:
    """Return a physical network as regions store it: in the OpenStack section, whatever the provider is."""
    for number, each in enumerate(section.vlans):
        if each.last < each.first:
            raise _wrong(f"{location}.vlans[{number}]", "ends before it begins: write the lower VLAN as first")
    ordered = sorted(section.vlans, key=lambda each: each.first)
    if any(after.first <= before.last for before, after in pairwise(ordered)):
        raise _wrong(f"{location}.vlans", "has a VLAN twice: write ranges that do not overlap")
    segments = tuple(VlanSegment(start_id=each.first, end_id=each.last) for each in ordered)
    provider = ProviderNetworksConfig(
        physical_network=section.name, vlan=VlanConfig(segments=segments) if segments else None
    )
    return RegionOpenstack(endpoint="", network=NetworksConfig(provider_networks=provider))


def _cluster(name: str, cluster: ClusterConfig) -> RegionKubernetes:
    location, path = f"kubernetes.{name}.kube_config_file", cluster.kube_config_file
    return RegionKubernetes(
        kube_config=Secret(_read(location, path)),
        nodes=tuple(_node(each) for each in cluster.nodes),
        domain_name=cluster.domain_name,
    )


def _node(node: ClusterNodeConfig) -> KubernetesNode:
    return KubernetesNode(
        id=node.id,
        name=node.name,
        cpu=Cpu(count=node.cpus, family=node.cpu_family),
        memory=node.memory_gib * GIB,
        disk=node.disk_gib * GIB,
        gpu=None if node.gpu is None else with_common_fields(Gpu, node.gpu, memory=node.gpu.memory_gib * GIB),
    )


def _check_cluster(region: ConfiguredRegion) -> None:
    found = region.spec.kubernetes
    if found is None or found.kube_config is None:
        return
    from remuda.providers.kubernetes.provider import source_of  # noqa: PLC0415  slow to import and rarely needed

    try:
        source_of(found.kube_config)()
    except Unavailable:
        location = f"kubernetes.{region.name}.kube_config_file"
        raise _wrong(
            location, "names an invalid kubeconfig: it needs a current context and inline credentials"
        ) from None


def _read(location: str, path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        cause = getattr(error, "strerror", None) or "it is not text"
        raise _wrong(location, f"cannot be read from {path} ({cause}): name a file with a kubeconfig") from None


def _wrong(location: str, problem: str) -> Misconfigured:
    end = "" if problem.endswith("?") else "."
    return Misconfigured((f"region.{location} {problem}{end}",))


def connection_limits(server: ServerConfig) -> ConnectionLimits:
    return ConnectionLimits(
        head_s=server.head_timeout.total_seconds(),
        read_stall_s=server.read_timeout.total_seconds(),
        idle_s=server.idle_timeout.total_seconds(),
        connections=server.connections,
        forwarding=ForwardingProxies(server.forwarding_proxies),
    )


def api_settings(server: ServerConfig, authorities: ClientAuthorities | None = None) -> ApiSettings:
    """Return the settings of the APIs. The authorities of client certificates are read from their file by default."""
    return ApiSettings(
        body_limit=server.body_limit,
        body_timeout_s=server.body_timeout.total_seconds(),
        time_limit_s=server.request_timeout.total_seconds(),
        cors=Cors(server.cors_origins),
        forwarding=ForwardingProxies(server.forwarding_proxies),
        certificates=CertificateProxies(server.certificate_proxies, authorities or client_authorities(server)),
    )


def rate_limit(server: ServerConfig) -> RateLimit:
    return RateLimit(quota=server.rate_limit)


def failure_limit(server: ServerConfig) -> RateLimit:
    return RateLimit(quota=server.failure_limit, name="failures")


_SHORTEST_TOKEN = 16
_TOKEN = re.compile(r"[0-9A-Za-z._~+/-]+=*")


def metrics_settings(section: MetricsConfig, server: ServerConfig) -> MetricsSettings | None:
    """Return the settings of the metrics, None if they are not served, or raise Misconfigured."""
    token = None if section.token_file is None else _metrics_token(section.token_file)
    tls = metrics_tls(section, server)
    if section.tls_certificate_file is not None and tls is not None:
        check_files(tls.files)
    if section.listen is None:
        return MetricsSettings(takes_free_port=True, token=token, tls=tls)
    if not section.listen:
        return None
    address = ListenAddress.parse(section.listen)
    if token is None and not address.is_loopback:
        remedy = "choose one such as 127.0.0.1:9464, or set metrics.token_file"
        raise Misconfigured((f"metrics.listen can be reached by other machines without a token: {remedy}.",))
    return MetricsSettings(listen=address, token=token, tls=tls)


def _metrics_token(path: Path) -> Secret:
    try:
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        cause = getattr(error, "strerror", None) or "it is not text"
        problem = f"metrics.token_file cannot be read from {path} ({cause}): name a file with the token alone."
        raise Misconfigured((problem,)) from None
    if len(token) < _SHORTEST_TOKEN or not _TOKEN.fullmatch(token):
        problem = f"metrics.token_file has no bearer token in {path}: write one of at least {_SHORTEST_TOKEN}"
        raise Misconfigured(
            (f"{problem} letters, digits, dots, dashes and underscores, such as of openssl rand -hex 32.",)
        )
    return Secret(token)


def identity_settings(configuration: Configuration, *, url: str) -> IdentitySettings:
    """Return identity's settings, in a process that clients reach at `url`. The first user is an administrator."""
    section = configuration.identity
    issuer = section.issuer or f"{url}/identity"
    administrators = dict.fromkeys([*section.platform_administrators, section.bootstrap.administrator])
    return with_common_fields(
        IdentitySettings,
        section,
        issuer=issuer,
        home=f"{url}/" if issuer.startswith(f"{url}/") else "",  # the console needs the cookie of the login
        platform_administrators=tuple(administrators),
        role_bindings=tuple(with_common_fields(RoleBinding, each) for each in section.role_bindings),
        group_bindings=tuple(with_common_fields(GroupBinding, each) for each in section.group_bindings),
        system_accounts={name: _account(name, each) for name, each in section.system_accounts.items()},
        providers={name: _provider(name, each) for name, each in section.providers.items()},
    )


def bootstrap_settings(configuration: Configuration) -> BootstrapSettings:
    return with_common_fields(BootstrapSettings, configuration.identity.bootstrap)


def check(configuration: Configuration) -> None:
    """Raise Misconfigured if values contradict each other, such as two role bindings."""
    server = configuration.server
    check_object_limits(server)
    url = public_url(server, server.listen)
    check_region(configuration, url=url)
    check_reach(server)
    accepts_certificates = client_authorities(server) is not None
    metrics_settings(configuration.metrics, server)
    try:
        settings = identity_settings(configuration, url=url)
        Bindings(settings)
        for name, account in settings.system_accounts.items():
            _check_account(name, account, accepts_certificates=accepts_certificates)
        check_providers(settings)
        check_bootstrap(bootstrap_settings(configuration))
    except Invalid as error:
        section = "identity.bootstrap" if error.field == "password" else "identity"
        raise Misconfigured((f"{section}.{error.message.removeprefix('identity.')}",)) from None


def _account(name: str, account: SystemAccountConfig) -> SystemAccount:
    if account.public_key_file is None:
        return SystemAccount(role=account.role, public_key=account.public_key)
    location = f"system_accounts.{name}"
    if account.public_key:
        raise Invalid(f"identity.{location}", "has both a public_key and a public_key_file", remedy="leave one out")
    key = _read_file(f"{location}.public_key_file", account.public_key_file, remedy="name a PEM file")
    return SystemAccount(role=account.role, public_key=key)


def _check_account(name: str, account: SystemAccount, *, accepts_certificates: bool) -> None:
    if not account.public_key:
        if not accepts_certificates:
            remedy = "give it a public_key, or set server.client_ca_file for client certificates"
            raise Invalid(f"system_accounts.{name}", "cannot authenticate", remedy=remedy)
        return
    try:
        load_public_key(account.public_key)
    except Invalid:
        remedy = "give the PEM of an EC, Ed25519 or 2048-bit RSA key"
        raise Invalid(f"system_accounts.{name}.public_key", "is not a supported key", remedy=remedy) from None


def _provider(name: str, provider: IdentityProviderConfig) -> PlatformProvider:
    trust = provider.bearer_trust
    return with_common_fields(
        PlatformProvider,
        provider,
        client_secret=_client_secret(f"providers.{name}", provider),
        bearer_trust=None if trust is None else with_common_fields(BearerTrust, trust),
    )


def _client_secret(location: str, provider: IdentityProviderConfig) -> Secret | None:
    if provider.client_secret_file is None:
        return provider.client_secret
    if provider.client_secret is not None:
        raise Invalid(
            f"identity.{location}", "has both a client_secret and a client_secret_file", remedy="leave one out"
        )
    read = _read_file(
        f"{location}.client_secret_file", provider.client_secret_file, remedy="name a file with the secret alone"
    )
    return Secret(read.strip())


def _read_file(location: str, path: Path, *, remedy: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        cause = getattr(error, "strerror", None) or "it is not text"
        raise Invalid(f"identity.{location}", f"cannot be read from {path} ({cause})", remedy=remedy) from None


def compute_settings(configuration: Configuration, *, url: str) -> ComputeSettings:
    """Return compute's settings, in a process that clients reach at `url`."""
    issuer = configuration.identity.issuer or f"{url}/identity"
    return with_common_fields(ComputeSettings, configuration.compute, url=f"{url}/compute", identity_url=issuer)
