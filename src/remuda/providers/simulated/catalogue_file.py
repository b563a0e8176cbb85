"""The file of a catalogue: its tables, and the rules between them."""

import ipaddress
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Protocol

from remuda.kernel.errors import Invalid
from remuda.kernel.text import nearest
from remuda.providers.contract.catalogue import (
    Architecture,
    ExternalNetwork,
    Flavor,
    Gpu,
    Image,
    ImageGpu,
    OperatingSystem,
    Vendor,
    Virtualization,
)
from remuda.providers.contract.filestorage import StorageClass
from remuda.providers.simulated.catalogue import NOWHERE, Catalogue, Hosts, Times
from remuda.providers.simulated.faults import FAULTS
from remuda.providers.simulated.latency import INSTANT, Latency
from remuda.providers.simulated.reading import read_table
from remuda.providers.simulated.verbs import VERBS

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

    def made(self) -> Gpu:
        return Gpu(
            vendor=self.vendor,
            model=self.model,
            memory_bytes=self.memory_gib * _GIB,
            physical_count=self.physical_count,
            logical_count=self.logical_count,
        )


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

    def made(self) -> Flavor:
        return Flavor(
            id=self.id,
            name=self.name,
            cpus=self.cpus,
            memory_bytes=self.memory_gib * _GIB,
            disk_bytes=self.disk_gib * _GIB,
            architecture=self.architecture,
            cpu_family=self.cpu_family,
            is_baremetal=self.is_baremetal,
            is_pinned_only=self.is_pinned_only,
            gpu=None if self.gpu is None else self.gpu.made(),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Image:
    id: str
    name: str
    size_gib: int
    os: OperatingSystem
    kernel: str = "6.8.0-48-generic"
    architecture: Architecture = "x86_64"
    virtualization: Virtualization = "virtualized"
    software_versions: Mapping[str, str] = field(default_factory=dict)
    gpu: ImageGpu | None = None

    def made(self) -> Image:
        return Image(
            id=self.id,
            name=self.name,
            size_gib=self.size_gib,
            os=self.os,
            architecture=self.architecture,
            virtualization=self.virtualization,
            software_versions=self.software_versions,
            gpu=self.gpu,
            state="ready",
            created=_CREATED,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cloud:
    hosts: Mapping[str, Hosts]
    public_addresses: tuple[str, ...] = ()
    console_url: str = NOWHERE


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    flavors: tuple[_Flavor, ...]
    images: tuple[_Image, ...]
    clouds: Mapping[str, _Cloud]
    external_networks: tuple[ExternalNetwork, ...] = ()
    storage_classes: tuple[StorageClass, ...] = ()
    times: Times = field(default_factory=Times)
    latency: Latency = INSTANT
    faults: Mapping[str, float] = field(default_factory=dict)


def load_catalogues(path: Path | None = None) -> Mapping[str, Catalogue]:
    """Return the clouds of a file by name, or of the one that comes with Remuda; raise Invalid if it does not fit."""
    if path is None:
        return parse_catalogues((files(__package__) / "catalogue.toml").read_text(encoding="utf-8"))
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        cause = error.strerror or type(error).__name__
        remedy = "name a file that is there and can be read"
        raise Invalid(f"The catalogue {path}", f"cannot be read ({cause})", remedy=remedy) from None
    except UnicodeDecodeError:
        raise Invalid(f"The catalogue {path}", "is not UTF-8 text", remedy="write it as TOML") from None
    return parse_catalogues(text)


def parse_catalogues(text: str) -> Mapping[str, Catalogue]:
    """Return the clouds that a text in TOML describes, by name, or raise Invalid."""
    try:
        raw = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise Invalid("The catalogue", f"is not TOML ({error})", remedy="correct it there") from None
    file = read_table(_File, raw, "")
    _check(file)
    return {name: _made(file, name, cloud) for name, cloud in file.clouds.items()}


def _made(file: _File, name: str, cloud: _Cloud) -> Catalogue:
    flavors = tuple(each.made() for each in file.flavors if each.name in cloud.hosts)
    return Catalogue(
        name=name,
        flavors=flavors,
        hosts={each.id: cloud.hosts[each.name] for each in flavors},
        images=tuple(each.made() for each in file.images),
        kernels={each.id: each.kernel for each in file.images},
        external_networks=file.external_networks,
        public_addresses=cloud.public_addresses,
        storage_classes=file.storage_classes,
        console_url=cloud.console_url,
        times=file.times,
        latency=file.latency,
        faults=file.faults,
    )


def _check(file: _File) -> None:
    _check_ids("flavors", file.flavors)
    _check_ids("images", file.images)
    _check_ids("external_networks", file.external_networks)
    _check_ids("storage_classes", file.storage_classes)
    for verb in file.latency.verbs:
        _check_known(f"latency.verbs.{verb}", verb, VERBS)
    for fault, rate in file.faults.items():
        name, _, verb = fault.partition(".")
        _check_known(f"faults.{fault}", name, FAULTS)
        if verb:
            _check_known(f"faults.{fault}", verb, VERBS)
        if rate > 1:
            raise Invalid(f"faults.{fault}", "is more than 1", remedy="write a share such as 0.01")
    if not file.clouds:
        raise Invalid("clouds", "is empty", remedy="describe at least one")
    for name, cloud in file.clouds.items():
        for flavor in cloud.hosts:
            _check_known(f"clouds.{name}.hosts.{flavor}", flavor, [each.name for each in file.flavors])
        for at, prefix in enumerate(cloud.public_addresses):
            _check_prefix(f"clouds.{name}.public_addresses[{at}]", prefix)


def _check_ids(place: str, rows: Iterable[_Named]) -> None:
    names: set[str] = set()
    for at, row in enumerate(rows):
        if _UUID.fullmatch(row.id) is None:
            raise Invalid(f"{place}[{at}].id", "is not a UUID", remedy="write one in lower case, with its four dashes")
        if row.id in names or row.name in names:
            raise Invalid(f"{place}[{at}]", "has the id or the name of an earlier one", remedy="give it its own")
        names |= {row.id, row.name}


def _check_known(place: str, name: str, known: Iterable[str]) -> None:
    names = list(known)
    if name not in names:
        found = nearest(name, names)
        raise Invalid(place, "is not known", remedy=f"write {found}" if found else f"there are {', '.join(names)}")


def _check_prefix(place: str, prefix: str) -> None:
    try:
        width = ipaddress.IPv4Network(prefix).prefixlen
    except ValueError:
        raise Invalid(place, "is not an IPv4 prefix", remedy='write one such as "198.51.100.0/24"') from None
    if width < _WIDEST:
        raise Invalid(place, "has too many addresses", remedy=f"write one of /{_WIDEST} or longer")
