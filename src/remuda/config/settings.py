"""What region is told, made from the configuration: which regions there are, and what is behind them."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

from msgspec.structs import replace

from remuda.config.fields import is_name
from remuda.config.load import Misconfigured
from remuda.config.schema import Configuration
from remuda.config.schema_region import Cluster, ClusterNode, NodeGpu, PhysicalNetwork, Region
from remuda.kernel.errors import Invalid, Unavailable
from remuda.kernel.secrets import Secret
from remuda.kernel.text import nearest
from remuda.providers.simulated.catalogue import Catalogue, instant, load_catalogues
from remuda.region.kinds.common import GIB, Cpu, Gpu
from remuda.region.kinds.regions import (
    KubernetesNode,
    Networks,
    ProviderNetworks,
    RegionKubernetes,
    RegionOpenstack,
    RegionOrganization,
    RegionSecurity,
    RegionSimulated,
    RegionSpec,
    Vlan,
    VlanSegment,
)
from remuda.region.settings import ConfiguredRegion, RegionSettings

_SAME = (
    "create_attempts",
    "poll_idle",
    "poll_busy",
    "first_looks_per_s",
    "judged_per_s",
    "addresses_low_percent",
    "image_size_gib",
    "image_targets",
)
_AT_ONCE = timedelta(0)


def catalogues(told: Region) -> Mapping[str, Catalogue]:
    """Return the simulated clouds that are to be there, by name, or raise Misconfigured."""
    if not told.simulated:
        return {}
    try:
        found = load_catalogues(told.catalogue)
    except Invalid as error:
        raise Misconfigured((f"region.catalogue: {error.sentence}",)) from None
    return {name: instant(each) if told.instant else each for name, each in found.items()}


def region_settings(configuration: Configuration, *, url: str) -> RegionSettings:
    """Return what region is told, in a process that clients reach at `url`, or raise Misconfigured."""
    told = configuration.region
    specs = {name: RegionSpec(provider="simulated", simulated=RegionSimulated(name)) for name in catalogues(told)}
    for name, cluster in told.kubernetes.items():
        if name in specs:
            raise _wrong(f"kubernetes.{name}", "has the name of a simulated cloud: give it another one")
        specs[name] = RegionSpec(provider="kubernetes", kubernetes=_cluster(name, cluster))
    _check_names(told, specs)
    for name, physical in told.physical_networks.items():
        if specs[name].provider != "simulated":
            raise _wrong(f"physical_networks.{name}", "is of a region that has no networks: leave it out")
        specs[name] = replace(specs[name], openstack=_physical(f"physical_networks.{name}", physical))
    return RegionSettings(
        url=f"{url}/region",
        identity_url=configuration.identity.issuer or f"{url}/identity",
        regions=tuple(_region(name, spec, told.private.get(name, ())) for name, spec in specs.items()),
        look_again=_AT_ONCE if told.instant else told.look_again,
        **{name: getattr(told, name) for name in _SAME},
    )


def check_region(configuration: Configuration, *, url: str) -> None:
    """Raise Misconfigured if a value is no good beside another one, or a file that is named."""
    settings = region_settings(configuration, url=url)
    for region in settings.regions:
        _check_cluster(region)


def _region(name: str, spec: RegionSpec, organizations: tuple[str, ...]) -> ConfiguredRegion:
    if not organizations:
        return ConfiguredRegion(name=name, spec=spec)
    security = RegionSecurity(tuple(RegionOrganization(each) for each in organizations))
    return ConfiguredRegion(name=name, spec=replace(spec, security=security))


def _check_names(told: Region, names: Iterable[str]) -> None:
    """Refuse a region that cannot be called so, and one that something is said of and that is not there.

    A private one that is misspelt would be everybody's.
    """
    known = list(names)
    for name in known:
        if (refusal := is_name(name)) is not None:
            raise _wrong(f"kubernetes.{name}" if name in told.kubernetes else f"catalogue: clouds.{name}", refusal)
    for setting in ("private", "physical_networks"):
        for name in getattr(told, setting):
            if name not in known:
                found = nearest(name, known)
                raise _wrong(f"{setting}.{name}", f"is no region: {_meant(found, known)}")


def _meant(found: str | None, known: list[str]) -> str:
    if found:
        return f"did you mean {found}?"
    return f"there are {', '.join(known)}" if known else "configure it, or leave this out"


def _physical(place: str, told: PhysicalNetwork) -> RegionOpenstack:
    """Return a physical network as regions have it: every provider's is stored as OpenStack's is."""
    for number, each in enumerate(told.vlans):
        if each.last < each.first:
            raise _wrong(f"{place}.vlans[{number}]", "ends before it begins: write the lower VLAN as first")
    ordered = sorted(told.vlans, key=lambda each: each.first)
    if any(after.first <= before.last for before, after in pairwise(ordered)):
        raise _wrong(f"{place}.vlans", "has a VLAN twice: write ranges that have nothing in common")
    segments = tuple(VlanSegment(start_id=each.first, end_id=each.last) for each in ordered)
    provider = ProviderNetworks(physical_network=told.name, vlan=Vlan(segments=segments) if segments else None)
    return RegionOpenstack(endpoint="", network=Networks(provider_networks=provider))


def _cluster(name: str, cluster: Cluster) -> RegionKubernetes:
    place, path = f"kubernetes.{name}.kube_config_file", cluster.kube_config_file
    return RegionKubernetes(
        kube_config=Secret(_read(place, path)),
        nodes=tuple(_node(each) for each in cluster.nodes),
        domain_name=cluster.domain_name,
    )


def _node(node: ClusterNode) -> KubernetesNode:
    return KubernetesNode(
        id=node.id,
        name=node.name,
        cpu=Cpu(count=node.cpus, family=node.cpu_family),
        memory=node.memory_gib * GIB,
        disk=node.disk_gib * GIB,
        gpu=None if node.gpu is None else _gpu(node.gpu),
    )


def _gpu(gpu: NodeGpu) -> Gpu:
    return Gpu(
        vendor=gpu.vendor,  # type: ignore[arg-type]  # which was checked when it was read
        model=gpu.model,
        physical_count=gpu.physical_count,
        logical_count=gpu.logical_count,
        memory=gpu.memory_gib * GIB,
    )


def _check_cluster(region: ConfiguredRegion) -> None:
    found = region.spec.kubernetes
    if found is None or found.kube_config is None:
        return
    from remuda.providers.kubernetes.kubeconfig import source_of  # noqa: PLC0415  heavy, and most have no such region

    try:
        source_of(found.kube_config)()
    except Unavailable:
        place = f"kubernetes.{region.name}.kube_config_file"
        raise _wrong(
            place, "names a kubeconfig that cannot be used: let it have a current context and everything in it"
        ) from None


def _read(place: str, path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        cause = getattr(error, "strerror", None) or "it is no text"
        raise _wrong(place, f"cannot be read from {path} ({cause}): name a file with a kubeconfig") from None


def _wrong(place: str, problem: str) -> Misconfigured:
    end = "" if problem.endswith("?") else "."
    return Misconfigured((f"region.{place} {problem}{end}",))
