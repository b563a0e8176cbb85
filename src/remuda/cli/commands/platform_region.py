"""Commands ``remuda region`` of platform administrators: add, check, update, disable, enable and remove."""

import re
import textwrap
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from msgspec.structs import replace

from remuda.cli.clouds_file import CloudEntry, read_cloud
from remuda.cli.crud import delete_resource, find_id, show_resource, update_resource
from remuda.cli.lookup import DEFAULT_SCOPE, NamedResource, ScopedSession, ScopeOptions
from remuda.cli.options import NO_METADATA, NO_WAIT, MetadataOptions, Output, WaitOptions, Yes
from remuda.cli.output import Format, as_table, dump, echo, write
from remuda.cli.resources import PLATFORM_REGION, REGION
from remuda.kernel.errors import Invalid, RemudaError, Unusable
from remuda.region.regions.schema import (
    OpenstackWire,
    PlatformRegionRead,
    PlatformRegionSpec,
    PlatformRegionWrite,
    RegionCheckRead,
    RegionType,
    SimulatedWire,
    VlanRangeWire,
)

_VLANS = re.compile(r"([0-9]{1,4})(?:-([0-9]{1,4}))?")
_OPTION = re.compile(r"(--property) (\S)")
_NO_BREAK = "\N{NO-BREAK SPACE}"
_WIDTH = 80
_GREATEST_VLAN = 4094

CloudOption = Annotated[str | None, Parameter(help="Take endpoint and account from this entry of clouds.yaml.")]
CloudsFile = Annotated[
    Path | None,
    Parameter(help="Read this file instead of the clouds.yaml of the usual search path."),
]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class OfferOptions:
    """Options for what a region offers, and to whom."""

    visible_to: Annotated[
        tuple[str, ...] | None,
        Parameter(help="Let only this organization see it, by id. Repeat it for more.", negative=()),
    ] = None
    flavor: Annotated[
        tuple[str, ...] | None,
        Parameter(help="Offer this flavor of the cloud only, by id. Repeat it for more.", negative=()),
    ] = None
    external_network: Annotated[
        tuple[str, ...] | None,
        Parameter(help="Offer this external network only, by id. Repeat it for more.", negative=()),
    ] = None
    physical_network: Annotated[
        str | None, Parameter(help="Create networks as VLANs of this physical network of the cloud.")
    ] = None
    vlans: Annotated[
        tuple[str, ...] | None,
        Parameter(help="Use these VLANs, such as 100-199. Repeat it for more.", negative=()),
    ] = None

    def openstack(self, found: OpenstackWire) -> OpenstackWire:
        """Return the section of a cloud with the options that are given."""
        if self.flavor is not None:
            found = replace(found, flavor_ids=self.flavor)
        if self.external_network is not None:
            found = replace(found, external_network_ids=self.external_network)
        if self.physical_network is not None:
            found = replace(found, physical_network=self.physical_network)
        if self.vlans is not None:
            found = replace(found, vlans=tuple(map(_vlans, self.vlans)))
        return found

    def reject(self, region_type: RegionType) -> None:
        """Raise Invalid if an option is given that only regions of OpenStack have."""
        given = {
            "--flavor": self.flavor,
            "--external-network": self.external_network,
            "--physical-network": self.physical_network,
            "--vlans": self.vlans,
        }
        _reject(given, region_type, "regions of OpenStack")


NO_OFFER = OfferOptions()


async def add(
    type: RegionType,  # noqa: A002  the argument's name
    name: str,
    /,
    *,
    cloud: CloudOption = None,
    clouds_file: CloudsFile = None,
    like: str | None = None,
    offer: OfferOptions = NO_OFFER,
    metadata: MetadataOptions = NO_METADATA,
    output: Output = "table",
    scope: ScopeOptions = DEFAULT_SCOPE,
) -> None:
    """Add a region, and print what it offers and what its cloud lacks.

    Example::

        remuda region add openstack berlin --cloud berlin-manager

    :param type: Type of the cloud: openstack or simulated.
    :param name: Name of the region.
    :param like: Simulate a cloud like this one of the catalogue.
    """
    if type == "openstack":
        if cloud is None:
            raise Invalid("--cloud", "is missing", remedy="name the entry of clouds.yaml with the manager's account")
        _reject({"--like": like}, type, "regions of simulated clouds")
        section = offer.openstack(_section(read_cloud(cloud, clouds_file), None))
        spec = PlatformRegionSpec(type=type, organization_ids=offer.visible_to or (), openstack=section)
    else:
        if like is None:
            raise Invalid("--like", "is missing", remedy="name a cloud of the catalogue, such as sim-north")
        _reject({"--cloud": cloud, "--clouds-file": clouds_file}, type, "regions of OpenStack")
        offer.reject(type)
        simulated = SimulatedWire(catalogue=like)
        spec = PlatformRegionSpec(type=type, organization_ids=offer.visible_to or (), simulated=simulated)
    async with scope.open() as api, _naming_entries():
        if any(each.metadata.name == name for each in await _added(api)):
            message = f"The region {name} exists already: choose another name, or change it with remuda region update."
            raise Unusable(message)
        body = PlatformRegionWrite(metadata=metadata.metadata(name), spec=spec)
        created = await api.session.send(
            "POST", PLATFORM_REGION.service, PLATFORM_REGION.path, body, response_type=PlatformRegionRead
        )
        if output == "table":
            echo(f"The region {name} was added.\n")
        await _show_check(api, created.metadata.id, name, output)


async def check(region: str, /, *, output: Output = "table", scope: ScopeOptions = DEFAULT_SCOPE) -> None:
    """Ask the cloud of a region what it offers, and what it lacks.

    Example::

        remuda region check berlin

    :param region: Name or id of the region.
    """
    async with scope.open() as api:
        await _show_check(api, await _added_id(api, region), region, output)


async def update(
    region: str,
    /,
    *,
    cloud: CloudOption = None,
    clouds_file: CloudsFile = None,
    offer: OfferOptions = NO_OFFER,
    metadata: MetadataOptions = NO_METADATA,
    output: Output = "table",
    scope: ScopeOptions = DEFAULT_SCOPE,
) -> None:
    """Update the account of a region, or what it offers.

    Example::

        remuda region update berlin --cloud berlin-manager

    :param region: Name or id of the region.
    """
    entry = None if cloud is None else read_cloud(cloud, clouds_file)

    def body(found: PlatformRegionRead) -> PlatformRegionWrite:
        spec = found.spec
        if spec.openstack is not None:
            section = spec.openstack if entry is None else _section(entry, spec.openstack)
            spec = replace(spec, openstack=offer.openstack(section))
        else:
            _reject({"--cloud": cloud, "--clouds-file": clouds_file}, spec.type, "regions of OpenStack")
            offer.reject(spec.type)
        if offer.visible_to is not None:
            spec = replace(spec, organization_ids=offer.visible_to)
        return PlatformRegionWrite(metadata=metadata.metadata(found.metadata.name, found.metadata), spec=spec)

    await _update(region, body, output, scope)


async def disable(region: str, /, *, output: Output = "table", scope: ScopeOptions = DEFAULT_SCOPE) -> None:
    """Disable a region: nothing new can be created in it.

    Example::

        remuda region disable berlin

    :param region: Name or id of the region.
    """
    await _update(region, lambda found: _with_disabled(found, disabled=True), output, scope)


async def enable(region: str, /, *, output: Output = "table", scope: ScopeOptions = DEFAULT_SCOPE) -> None:
    """Enable a region that was disabled.

    Example::

        remuda region enable berlin

    :param region: Name or id of the region.
    """
    await _update(region, lambda found: _with_disabled(found, disabled=False), output, scope)


async def remove(
    region: str, /, *, yes: Yes = False, wait: WaitOptions = NO_WAIT, scope: ScopeOptions = DEFAULT_SCOPE
) -> None:
    """Remove a region that nothing is in.

    Example::

        remuda region remove berlin --yes

    :param region: Name or id of the region.
    """
    async with scope.open() as api:
        await delete_resource(api, PLATFORM_REGION, await _added_id(api, region), yes=yes, wait=wait)


async def _update(
    region: str, body: Callable[[PlatformRegionRead], PlatformRegionWrite], output: Format, scope: ScopeOptions
) -> None:
    async with scope.open() as api, _naming_entries():
        updated = await update_resource(api, PLATFORM_REGION, await _added_id(api, region), body)
        await show_resource(api, PLATFORM_REGION, updated, output)


async def _added(api: ScopedSession) -> Sequence[NamedResource]:
    return await api.session.list_all(PLATFORM_REGION.service, PLATFORM_REGION.path, NamedResource, paged=False)


async def _added_id(api: ScopedSession, region: str) -> str:
    """Return the id of a region that was added, and explain that others belong to the configuration."""
    try:
        return await find_id(api, PLATFORM_REGION, region)
    except Unusable:
        visible = await api.session.list_all(REGION.service, REGION.path, NamedResource, paged=False)
        if any(region in {each.metadata.id, each.metadata.name} for each in visible):
            message = f"The region {region} belongs to the configuration of the server: change it there."
            raise Unusable(message) from None
        raise


def _reject(options: Mapping[str, object], region_type: RegionType, other: str) -> None:
    """Raise Invalid for an option that is given, but is for regions of another type."""
    for option, value in options.items():
        if value is not None:
            raise Invalid(option, f"is for {other}, not of {region_type}", remedy="leave it out")


@asynccontextmanager
async def _naming_entries() -> AsyncIterator[None]:
    """Name, in an error about the section of the cloud, the option or the entry of clouds.yaml that is wrong."""
    try:
        yield
    except RemudaError as error:
        if (option := _OF_OPTION.match(error.message)) is not None:
            error.message = f"{_SECTION_OPTIONS[option[1]]}{error.message[option.end() :]}"
        elif (found := _FIELD.match(error.message)) is not None:
            rest = _NAME.sub(lambda name: _ENTRIES[name[0]], error.message[found.end() :])
            error.message = f"clouds.yaml: {_ENTRIES[found[1]]}{rest}"
        raise


_ENTRIES = {
    "endpoint": "auth.auth_url",
    "region": "region_name",
    "caCertificate": "cacert",
    "domainName": "auth.domain_name",
    "userDomainName": "auth.user_domain_name",
    "userName": "auth.username",
    "password": "auth.password",
}
"""Entries of clouds.yaml by the fields of a request."""
_SECTION_OPTIONS = {
    "simulated.catalogue": "--like",
    "openstack.flavorIDs": "--flavor",
    "openstack.externalNetworkIDs": "--external-network",
    "openstack.physicalNetwork": "--physical-network",
    "openstack.vlans": "--vlans",
}
"""Options by the fields of a request."""
_OF_OPTION = re.compile(rf"[sS]pec\.({'|'.join(map(re.escape, _SECTION_OPTIONS))})\b")
_FIELD = re.compile(rf"[sS]pec\.openstack\.({'|'.join(_ENTRIES)})\b")
_NAME = re.compile(r"\b(?:userDomainName|userName|domainName)\b")


def _with_disabled(found: PlatformRegionRead, *, disabled: bool) -> PlatformRegionWrite:
    metadata = NO_METADATA.metadata(found.metadata.name, found.metadata)
    return PlatformRegionWrite(metadata=metadata, spec=replace(found.spec, disabled=disabled))


def _section(entry: CloudEntry, found: OpenstackWire | None) -> OpenstackWire:
    """Return the section of a cloud with the account of an entry."""
    return replace(
        found or OpenstackWire(endpoint=entry.endpoint),
        endpoint=entry.endpoint,
        region=entry.region,
        ca_certificate=entry.ca_certificate,
        domain_id=entry.domain_id,
        domain_name=entry.domain_name,
        user_id=entry.user_id,
        user_name=entry.user_name,
        user_domain_name=entry.user_domain_name,
        password=entry.password,
    )


def _vlans(text: str) -> VlanRangeWire:
    found = _VLANS.fullmatch(text)
    first, last = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
    if not 1 <= first <= last <= _GREATEST_VLAN:
        raise Invalid("--vlans", f"{text!r} is not a range of VLANs", remedy="write one such as 100-199")
    return VlanRangeWire(first=first, last=last)


async def _show_check(api: ScopedSession, region: str, name: str, output: Format) -> None:
    path = f"{PLATFORM_REGION.path}/{region}/check"
    found = await api.session.send("POST", PLATFORM_REGION.service, path, response_type=RegionCheckRead)
    write(_report(found, name) if output == "table" else dump(found, output))


def _report(found: RegionCheckRead, name: str) -> str:
    flavors = [
        [each.metadata.name, str(each.spec.cpus), f"{each.spec.memory} GiB", f"{each.spec.disk_gib} GiB"]
        for each in found.flavors
    ]
    images = [
        [each.metadata.name, f"{each.spec.os.distro} {each.spec.os.version}", each.spec.architecture]
        for each in found.images
    ]
    networks = [[each.name, each.id] for each in found.external_networks]
    parts = [
        _table(["FLAVOR", "CPUS", "MEMORY", "DISK"], flavors, "No flavor is offered."),
        _table(["IMAGE", "SYSTEM", "ARCHITECTURE"], images, "No image is offered."),
        _table(["EXTERNAL NETWORK", "ID"], networks, "No external network is offered."),
    ]
    missing = [
        f"{textwrap.fill(f'{each.capability}: {each.message}.', _WIDTH)}\n{_command(each.command)}"
        for each in found.findings
    ]
    if missing:
        again = f"Add what is needed of this at the cloud, and repeat: remuda region check {name}"
        parts += ["MISSING\n" + "\n".join(missing), f"{again}\n"]
    else:
        parts.append("Nothing is missing.\n")
    return "\n".join(parts)


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]], empty: str) -> str:
    return as_table(headings, rows) if rows else f"{empty}\n"


def _command(text: str) -> str:
    """Return a command on lines of a terminal's width, which a shell reads as one."""
    joined = _OPTION.sub(f"\\1{_NO_BREAK}\\2", text)  # an option stays with its value
    lines = textwrap.wrap(joined, _WIDTH - 6, break_long_words=False, break_on_hyphens=False)
    joint = " \\\n      " if text.startswith("openstack ") else "\n      "
    return f"    {joint.join(lines).replace(_NO_BREAK, ' ')}\n"
