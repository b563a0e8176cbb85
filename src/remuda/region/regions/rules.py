"""Pure functions of regions: validation, new and updated objects, views."""

from datetime import datetime
from itertools import pairwise

from msgspec.structs import replace

from remuda.access.principal import Principal
from remuda.http.responses import etag_view
from remuda.kernel.errors import Invalid
from remuda.kernel.secrets import Secret
from remuda.region.catalogue.rules import read_external_network, read_flavor, size_of
from remuda.region.catalogue.seed import CONFIGURED
from remuda.region.images.rules import read_image
from remuda.region.kinds.regions import (
    ExternalNetworksConfig,
    FlavorsConfig,
    IdSelector,
    NetworksConfig,
    OpenstackComputeConfig,
    ProviderNetworksConfig,
    Region,
    RegionOpenstack,
    RegionOrganization,
    RegionSecurity,
    RegionSimulated,
    RegionSpec,
    ServiceAccountConfig,
    TaggedSelector,
    VlanConfig,
    VlanSegment,
)
from remuda.region.ports import AccountNames, CheckedRegion
from remuda.region.regions import schema
from remuda.resources.conventions import CONTROLLER_FINALIZER, NAME
from remuda.resources.metadata import (
    changed_metadata,
    new_metadata,
    new_tags,
    read_metadata,
    updated_tags,
    writable_metadata,
)

_OPENSTACK = "spec.openstack"


def is_managed(region: Region) -> bool:
    """Return whether a region was created by a request, and is not defined by the configuration."""
    return CONFIGURED not in region.metadata.annotations and region.spec.provider in ("openstack", "simulated")


def check_spec(spec: schema.PlatformRegionSpec) -> None:
    """Raise Invalid if the sections do not fit the type, or contradict themselves."""
    for name in ("openstack", "simulated"):
        if (getattr(spec, name) is None) is (spec.type == name):
            problem = "is missing" if spec.type == name else f"is for another type than {spec.type}"
            raise Invalid(f"spec.{name}", problem, remedy=f"give the section {spec.type}, and no other")
    if spec.openstack is not None:
        _check_openstack(spec.openstack)


def _check_openstack(openstack: schema.OpenstackWire) -> None:
    for number, each in enumerate(openstack.vlans):
        if each.last < each.first:
            raise Invalid(
                f"{_OPENSTACK}.vlans[{number}]", "ends before it begins", remedy="write the lower VLAN as first"
            )
    ordered = sorted(openstack.vlans, key=lambda each: each.first)
    if any(after.first <= before.last for before, after in pairwise(ordered)):
        raise Invalid(f"{_OPENSTACK}.vlans", "has a VLAN twice", remedy="write ranges that do not overlap")
    if openstack.vlans and not openstack.physical_network:
        raise Invalid(
            f"{_OPENSTACK}.physicalNetwork", "is missing, but there are VLANs", remedy="name the network they are on"
        )
    if not (openstack.domain_id or openstack.domain_name):
        raise Invalid(f"{_OPENSTACK}.domainName", "is missing", remedy="name the domain that the account manages")
    if not (openstack.user_id or openstack.user_name):
        raise Invalid(f"{_OPENSTACK}.userName", "is missing", remedy="name the account that manages the domain")


def new_region(name: str, requested: schema.PlatformRegionWrite, spec: RegionSpec, principal: Principal) -> Region:
    """Return a new region. `spec` is what its cloud made of the requested one."""
    metadata = new_metadata(name, requested.metadata, principal, labels={}, finalizers=(CONTROLLER_FINALIZER,))
    return Region(metadata=metadata, spec=replace(spec, tags=new_tags(requested.metadata, principal)))


def updated_region(
    found: Region, requested: schema.PlatformRegionWrite, spec: RegionSpec, principal: Principal, now: datetime
) -> Region:
    if requested.metadata.name != found.metadata.labels[NAME]:
        raise Invalid("metadata.name", "cannot be changed", remedy="create another region")
    if requested.spec.type != found.spec.provider:
        raise Invalid("spec.type", "cannot be changed", remedy="create another region")
    tags = updated_tags(found.spec.tags, requested.metadata, principal)
    metadata = changed_metadata(found.metadata, requested.metadata, principal, now)
    return replace(found, metadata=metadata, spec=replace(spec, tags=tags))


def desired_spec(requested: schema.PlatformRegionSpec, before: RegionSpec | None) -> RegionSpec:
    """Return a requested spec as it is stored, with the present password if none is given."""
    organizations = tuple(RegionOrganization(id=each) for each in requested.organization_ids)
    openstack = None if requested.openstack is None else _stored_openstack(requested.openstack, before)
    simulated = None if requested.simulated is None else RegionSimulated(region=requested.simulated.catalogue)
    if before is not None and simulated != before.simulated:
        raise Invalid("spec.simulated.catalogue", "cannot be changed", remedy="create another region")
    return RegionSpec(
        provider=requested.type,
        disabled=requested.disabled,
        security=RegionSecurity(organizations=organizations) if organizations else None,
        openstack=openstack,
        simulated=simulated,
    )


def names_of(requested: schema.PlatformRegionSpec) -> AccountNames:
    """Return the names for which the cloud knows the ids."""
    found = requested.openstack
    if found is None:
        return AccountNames()
    return AccountNames(domain=found.domain_name, user=found.user_name, user_domain=found.user_domain_name)


def domain_of(spec: RegionSpec) -> tuple[str, str] | None:
    """Return the cloud and the domain that a region of OpenStack manages."""
    found = spec.openstack
    if spec.provider != "openstack" or found is None or found.service_account is None:
        return None
    return found.endpoint, found.service_account.domain_id


def is_same_cloud(before: RegionSpec | None, after: RegionSpec) -> bool:
    """Return whether a spec changes nothing for which its cloud has to be asked."""
    return before is not None and (before.openstack, before.simulated) == (after.openstack, after.simulated)


def _stored_openstack(requested: schema.OpenstackWire, before: RegionSpec | None) -> RegionOpenstack:
    present = before.openstack if before is not None else None
    base = RegionOpenstack(endpoint="") if present is None else present
    return replace(
        base,
        endpoint=requested.endpoint.rstrip("/"),
        region=requested.region,
        ca_certificate=requested.ca_certificate,
        service_account=ServiceAccountConfig(
            domain_id=requested.domain_id,
            project_id="",
            user_id=requested.user_id,
            password=requested.password or _present_password(requested, present),
        ),
        compute=_compute(requested, present),
        network=_network(requested),
    )


def _present_password(requested: schema.OpenstackWire, present: RegionOpenstack | None) -> Secret:
    """Return the stored password, which is only ever sent where it was sent before."""
    account = None if present is None else present.service_account
    if present is None or account is None:
        raise Invalid(f"{_OPENSTACK}.password", "is missing", remedy="give the password of the account")
    if (requested.endpoint.rstrip("/"), requested.domain_id, requested.user_id) != (
        present.endpoint,
        account.domain_id,
        account.user_id,
    ):
        problem = "is missing, but the endpoint, the domain or the account changes"
        raise Invalid(f"{_OPENSTACK}.password", problem, remedy="give the password of the account")
    return account.password


def _compute(requested: schema.OpenstackWire, present: RegionOpenstack | None) -> OpenstackComputeConfig | None:
    kept = (None if present is None else present.compute) or OpenstackComputeConfig()
    flavors = kept.flavors or FlavorsConfig()
    selector = IdSelector(ids=requested.flavor_ids) if requested.flavor_ids else None
    flavors = replace(flavors, selector=selector)
    changed = replace(
        kept,
        server_group_policy=requested.server_group_policy,
        flavors=None if flavors == FlavorsConfig() else flavors,
    )
    return None if changed == OpenstackComputeConfig() else changed


def _network(requested: schema.OpenstackWire) -> NetworksConfig | None:
    selector = TaggedSelector(ids=requested.external_network_ids, tags=requested.external_network_tags)
    segments = tuple(VlanSegment(start_id=each.first, end_id=each.last) for each in requested.vlans)
    provider = ProviderNetworksConfig(
        physical_network=requested.physical_network, vlan=VlanConfig(segments=segments) if segments else None
    )
    external = None if selector == TaggedSelector() else ExternalNetworksConfig(selector=selector)
    found = NetworksConfig(
        external_networks=external, provider_networks=provider if requested.physical_network else None
    )
    return None if found == NetworksConfig() else found


def read_region(region: Region) -> schema.PlatformRegionRead:
    metadata = read_metadata(region.metadata, region.spec.tags, region.status.conditions)
    return schema.PlatformRegionRead(metadata=metadata, spec=_spec_wire(region.spec))


def _writable(region: Region) -> schema.PlatformRegionWrite:
    return schema.PlatformRegionWrite(
        metadata=writable_metadata(region.metadata, region.spec.tags), spec=_spec_wire(region.spec)
    )


REGION_VIEW = etag_view(read_region, _writable)


def _spec_wire(spec: RegionSpec) -> schema.PlatformRegionSpec:
    simulated, openstack = spec.simulated, spec.openstack
    return schema.PlatformRegionSpec(
        type="openstack" if spec.provider == "openstack" else "simulated",
        disabled=spec.disabled,
        organization_ids=tuple(sorted(spec.organizations)),
        openstack=None if openstack is None else _openstack_wire(openstack),
        simulated=None if simulated is None else schema.SimulatedWire(catalogue=simulated.region),
    )


def _openstack_wire(found: RegionOpenstack) -> schema.OpenstackWire:
    account, network = found.service_account, found.network or NetworksConfig()
    external = network.external_networks.selector if network.external_networks else None
    selected = external or TaggedSelector()
    provider = network.provider_networks or ProviderNetworksConfig()
    compute = found.compute or OpenstackComputeConfig()
    flavors = compute.flavors.selector if compute.flavors else None
    return schema.OpenstackWire(
        endpoint=found.endpoint,
        region=found.region,
        ca_certificate=found.ca_certificate,
        domain_id="" if account is None else account.domain_id,
        user_id="" if account is None else account.user_id,
        flavor_ids=() if flavors is None else flavors.ids,
        external_network_ids=selected.ids,
        external_network_tags=selected.tags,
        physical_network=provider.physical_network,
        vlans=_vlans(provider.vlan),
        server_group_policy=compute.server_group_policy,
    )


def _vlans(found: VlanConfig | None) -> tuple[schema.VlanRangeWire, ...]:
    segments = () if found is None else found.segments
    return tuple(schema.VlanRangeWire(first=each.start_id, last=each.end_id) for each in segments)


def read_check(found: CheckedRegion) -> schema.RegionCheckRead:
    """Return what was found at a cloud, flavors from the smallest, the rest by name."""
    networks = sorted(found.external_networks, key=lambda each: (each.name, each.id))
    return schema.RegionCheckRead(
        flavors=tuple(read_flavor(each, with_free=False) for each in sorted(found.flavors, key=size_of)),
        images=tuple(read_image(each) for each in sorted(found.images, key=lambda each: (each.name, each.id))),
        external_networks=tuple(map(read_external_network, networks)),
        findings=tuple(
            schema.RegionFindingRead(capability=each.capability, message=each.message, command=each.command)
            for each in found.findings
        ),
    )
