"""Catalogue of a simulated cloud: flavors, images, networks, hosts, public addresses and durations.

One TOML file describes several clouds, which offer the same flavors and images, each on hosts and public addresses of
its own. A table is read into a dataclass; an error names the field and the remedy.
"""

import dataclasses
import ipaddress
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Protocol, TypeVar, get_args, get_origin, get_type_hints

from remuda.kernel.errors import Invalid
from remuda.kernel.fields import with_common_fields
from remuda.kernel.text import nearest
from remuda.providers.contract.catalogue import CloudCatalogue as CatalogueCapability
from remuda.providers.contract.catalogue import (
    CloudExternalNetwork,
    CloudExternalNetworks,
    CloudFlavor,
    CloudGpu,
    CloudImage,
    CloudImageGpu,
    CloudImages,
    CloudOperatingSystem,
)
from remuda.providers.contract.common import Architecture, Vendor, Virtualization
from remuda.providers.contract.filestorage import CloudFileStorages, CloudStorageClass
from remuda.providers.contract.loadbalancers import CloudLoadBalancers
from remuda.providers.contract.networks import CloudNetworks, CloudSecurityGroups, CloudTenancies
from remuda.providers.contract.servers import CloudConsoles, CloudPorts, CloudServers, CloudSnapshots
from remuda.providers.simulated.faults import FAULTS, NO_LATENCY, Latency

DEFAULT_CONSOLE_URL = "https://console.sim.invalid"
"""Base URL of consoles where none is configured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimDurations:
    """Durations in a cloud, in seconds."""

    queue_s: float = 3.0
    """Time that a bare metal server waits for its machine."""
    boot_s: float = 2.0
    boot_jitter: float = 0.0
    """Share by which a boot may be faster or slower."""
    stop_s: float = 0.5
    rebuild_s: float = 2.0
    remove_s: float = 0.3
    """Time until a removed server disappears."""
    snapshot_s: float = 3.0
    balancer_s: float = 1.0
    console_s: float = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Hosts:
    """Hosts of a flavor's servers."""

    count: int
    size: int = 1
    """Number of servers of the flavor that fit on each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimCatalogue:
    """Catalogue of one cloud."""

    name: str
    flavors: tuple[CloudFlavor, ...]
    hosts: Mapping[str, Hosts]
    """By the id of the flavor."""
    images: tuple[CloudImage, ...]
    kernels: Mapping[str, str] = field(default_factory=dict)
    """Linux release of an image, by the image's id."""
    external_networks: tuple[CloudExternalNetwork, ...] = ()
    public_addresses: tuple[str, ...] = ()
    """Prefixes."""
    storage_classes: tuple[CloudStorageClass, ...] = ()
    console_url: str = DEFAULT_CONSOLE_URL
    """Base URL at which consoles are shown."""
    times: SimDurations = SimDurations()
    latency: Latency = NO_LATENCY
    faults: Mapping[str, float] = field(default_factory=dict)
    """Rates between 0 and 1, by the name of the fault."""

    def flavor(self, flavor: str) -> CloudFlavor | None:
        return next((each for each in self.flavors if each.id == flavor), None)

    def image(self, image: str) -> CloudImage | None:
        return next((each for each in self.images if each.id == image), None)


_NO_DURATION = SimDurations(queue_s=0, boot_s=0, stop_s=0, rebuild_s=0, remove_s=0, snapshot_s=0, balancer_s=0)


def without_delays(catalogue: SimCatalogue, *, size: int | None = None) -> SimCatalogue:
    """Return the same cloud without durations and latency; with `size`, so many servers fit on each host."""
    hosts = catalogue.hosts
    if size is not None:
        hosts = {flavor: Hosts(count=each.count, size=size) for flavor, each in hosts.items()}
    return replace(catalogue, times=_NO_DURATION, latency=NO_LATENCY, hosts=hosts)


T = TypeVar("T")

_FORMS: Mapping[Any, tuple[type | tuple[type, ...], str, str]] = {
    str: (str, "a text", "put it in quotes"),
    bool: (bool, "a boolean", "write true or false, without quotes"),
    int: (int, "a whole number", "write one such as 10, without quotes"),
    float: ((int, float), "a number", "write one such as 0.5, without quotes"),
    tuple: (list, "a list", "put its values in [ and ], separated by commas"),
    Mapping: (dict, "a table", 'write one such as { name = "value" }'),
}


def read_table(table: type[T], raw: Any, location: str) -> T:
    """Read a TOML table into a dataclass, or raise Invalid. `location` is the table's name in the file."""
    _check_form(Mapping, raw, location)
    annotations = get_type_hints(table)
    for name in raw:
        if name not in annotations:
            found = nearest(name, annotations)
            remedy = f"write {found}" if found else f"there are {', '.join(annotations)}"
            raise Invalid(_at(location, name), "is unknown", remedy=remedy)
    values = {name: _value(annotations[name], each, _at(location, name)) for name, each in raw.items()}
    for each in dataclasses.fields(table):  # type: ignore[arg-type]  # callers pass dataclasses only
        has_default = each.default is not dataclasses.MISSING or each.default_factory is not dataclasses.MISSING
        if each.name not in values and not has_default:
            raise Invalid(_at(location, each.name), "is missing", remedy=f"write {_needed(annotations[each.name])}")
    return table(**values)


def _value(annotation: Any, raw: Any, location: str) -> Any:
    if get_origin(annotation) is UnionType:
        (annotation,) = [each for each in get_args(annotation) if each is not NoneType]
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        if raw not in arguments:
            raise Invalid(location, "is not an allowed value", remedy=f"use one of {', '.join(arguments)}")
        return raw
    if dataclasses.is_dataclass(annotation):
        return read_table(annotation, raw, location)  # type: ignore[arg-type]  # a class, not an instance
    _check_form(origin or annotation, raw, location)
    if origin is tuple:
        return tuple(_value(arguments[0], each, f"{location}[{at}]") for at, each in enumerate(raw))
    if origin is Mapping:
        return {name: _value(arguments[1], each, f"{location}.{name}") for name, each in raw.items()}
    if isinstance(raw, int | float) and not isinstance(raw, bool) and raw < 0:
        raise Invalid(location, "is negative", remedy="write 0 or more")
    return float(raw) if annotation is float else raw


def _check_form(form: Any, raw: Any, location: str) -> None:
    needed, expected, remedy = _FORMS[form]
    if not isinstance(raw, needed) or (isinstance(raw, bool) and needed is not bool):
        raise Invalid(location or "The file", f"is not {expected}", remedy=remedy)


def _needed(annotation: Any) -> str:
    form = get_origin(annotation) or annotation
    return _FORMS.get(str if form is Literal else form, _FORMS[Mapping])[1]


def _at(location: str, name: str) -> str:
    return f"{location}.{name}" if location else name


_CAPABILITIES = (
    *(CatalogueCapability, CloudExternalNetworks, CloudImages, CloudTenancies, CloudNetworks, CloudSecurityGroups),
    *(CloudPorts, CloudServers, CloudConsoles, CloudSnapshots, CloudLoadBalancers, CloudFileStorages),
)

METHODS: tuple[str, ...] = tuple(
    method for capability in _CAPABILITIES for method in vars(capability) if not method.startswith("_")
)
"""All methods of the contract: those that a latency or a fault can name."""


_GIB = 2**30
_CREATED = datetime.fromtimestamp(1742000000, UTC)
_WIDEST = 16
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class _Named(Protocol):
    @property
    def id(self) -> str: ...

    @property
    def name(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gpu:
    vendor: Vendor
    model: str
    memory_gib: int
    physical_count: int = 1
    logical_count: int = 1

    def to_contract(self) -> CloudGpu:
        return with_common_fields(CloudGpu, self, memory_bytes=self.memory_gib * _GIB)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Flavor:
    id: str
    name: str
    cpus: int
    memory_gib: int
    disk_gib: int
    architecture: Architecture = "x86_64"
    cpu_family: str = ""
    is_baremetal: bool = False
    is_pinned_only: bool = False
    gpu: _Gpu | None = None

    def to_contract(self) -> CloudFlavor:
        return with_common_fields(
            CloudFlavor,
            self,
            memory_bytes=self.memory_gib * _GIB,
            disk_bytes=self.disk_gib * _GIB,
            gpu=None if self.gpu is None else self.gpu.to_contract(),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Image:
    id: str
    name: str
    size_gib: int
    os: CloudOperatingSystem
    kernel: str = "6.8.0-48-generic"
    architecture: Architecture = "x86_64"
    virtualization: Virtualization = "virtualized"
    software_versions: Mapping[str, str] = field(default_factory=dict)
    gpu: CloudImageGpu | None = None

    def to_contract(self) -> CloudImage:
        return with_common_fields(CloudImage, self, state="ready", created=_CREATED)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cloud:
    hosts: Mapping[str, Hosts]
    public_addresses: tuple[str, ...] = ()
    console_url: str = DEFAULT_CONSOLE_URL


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    flavors: tuple[_Flavor, ...]
    images: tuple[_Image, ...]
    clouds: Mapping[str, _Cloud]
    external_networks: tuple[CloudExternalNetwork, ...] = ()
    storage_classes: tuple[CloudStorageClass, ...] = ()
    times: SimDurations = field(default_factory=SimDurations)
    latency: Latency = NO_LATENCY
    faults: Mapping[str, float] = field(default_factory=dict)


def load_catalogues(path: Path | None = None) -> Mapping[str, SimCatalogue]:
    """Read the clouds of a file by name, or of the built-in one; raise Invalid if it is not valid."""
    if path is None:
        return parse_catalogues((files(__package__) / "catalogue.toml").read_text(encoding="utf-8"))
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        cause = error.strerror or type(error).__name__
        remedy = "name an existing, readable file"
        raise Invalid(f"The catalogue {path}", f"cannot be read ({cause})", remedy=remedy) from None
    except UnicodeDecodeError:
        raise Invalid(f"The catalogue {path}", "is not UTF-8 text", remedy="write it as TOML") from None
    return parse_catalogues(text)


_MAX_LINE = 8192  # the time for a key with many dots grows with the square of its length


def parse_catalogues(text: str) -> Mapping[str, SimCatalogue]:
    """Return the clouds that a TOML text describes, by name, or raise Invalid."""
    if any(len(line) > _MAX_LINE for line in text.splitlines()):
        problem = f"has a line of more than {_MAX_LINE} characters"
        raise Invalid("The catalogue", problem, remedy="write it on several lines")
    try:
        raw = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise Invalid("The catalogue", f"is not TOML ({error})", remedy="correct the file") from None
    file = read_table(_File, raw, "")
    _check(file)
    return {name: _catalogue(file, name, cloud) for name, cloud in file.clouds.items()}


def _catalogue(file: _File, name: str, cloud: _Cloud) -> SimCatalogue:
    flavors = tuple(each.to_contract() for each in file.flavors if each.name in cloud.hosts)
    return with_common_fields(
        SimCatalogue,
        file,
        name=name,
        flavors=flavors,
        hosts={each.id: cloud.hosts[each.name] for each in flavors},
        images=tuple(each.to_contract() for each in file.images),
        kernels={each.id: each.kernel for each in file.images},
        public_addresses=cloud.public_addresses,
        console_url=cloud.console_url,
    )


def _check(file: _File) -> None:
    _check_ids("flavors", file.flavors)
    _check_ids("images", file.images)
    _check_ids("external_networks", file.external_networks)
    _check_ids("storage_classes", file.storage_classes)
    for method in file.latency.methods:
        _check_known(f"latency.methods.{method}", method, METHODS)
    for fault, rate in file.faults.items():
        name, _, method = fault.partition(".")
        _check_known(f"faults.{fault}", name, FAULTS)
        if method:
            _check_known(f"faults.{fault}", method, METHODS)
        if rate > 1:
            raise Invalid(f"faults.{fault}", "is more than 1", remedy="write a share such as 0.01")
    if not file.clouds:
        raise Invalid("clouds", "is empty", remedy="describe at least one cloud")
    for name, cloud in file.clouds.items():
        for flavor in cloud.hosts:
            _check_known(f"clouds.{name}.hosts.{flavor}", flavor, [each.name for each in file.flavors])
        for at, prefix in enumerate(cloud.public_addresses):
            _check_prefix(f"clouds.{name}.public_addresses[{at}]", prefix)


def _check_ids(location: str, rows: Iterable[_Named]) -> None:
    names: set[str] = set()
    for at, row in enumerate(rows):
        if _UUID.fullmatch(row.id) is None:
            raise Invalid(
                f"{location}[{at}].id", "is not a UUID", remedy="write one in lower case, with its four dashes"
            )
        if row.id in names or row.name in names:
            raise Invalid(f"{location}[{at}]", "has the id or the name of an earlier entry", remedy="use a unique one")
        names |= {row.id, row.name}


def _check_known(location: str, name: str, known: Iterable[str]) -> None:
    names = list(known)
    if name not in names:
        found = nearest(name, names)
        raise Invalid(location, "is unknown", remedy=f"write {found}" if found else f"there are {', '.join(names)}")


def _check_prefix(location: str, prefix: str) -> None:
    try:
        width = ipaddress.IPv4Network(prefix).prefixlen
    except ValueError:
        raise Invalid(location, "is not an IPv4 prefix", remedy='write one such as "198.51.100.0/24"') from None
    if width < _WIDEST:
        raise Invalid(location, "has too many addresses", remedy=f"write one of /{_WIDEST} or longer")
