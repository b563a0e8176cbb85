"""Resource types of the CLI: path and schema of each resource in the API, and the columns that tables show.

Schema types are named and imported when they are used, so that a command imports only its own. A test compares paths
and types with the route tables.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, cast

from msgspec import UNSET

from remuda.cli.client.session import Service
from remuda.cli.output import Columns, ResourceT

if TYPE_CHECKING:
    from remuda.compute.instances.schema import InstanceRead
    from remuda.region.authorities.schema import AuthorityRead
    from remuda.region.networks.schema import NetworkRead
    from remuda.region.regions.schema import PlatformRegionRead
    from remuda.region.securitygroups.schema import RuleWire, SecurityGroupRead
    from remuda.resources.schema import FlavorRead, ImageRead, MetadataRead, RegionRead, StaticMetadataRead


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceType(Generic[ResourceT]):
    """A type of resource: its path and schema in the API, and what tables show of it."""

    name: str
    service: Service
    path: str
    read: str
    """Schema type of the resource in a response, as MODULE:TYPE."""
    create: str = ""
    """Schema type of the body that creates one; empty if the CLI cannot."""
    update: str = ""
    """Schema type of the body that updates one; empty if the CLI cannot."""
    columns: Columns[ResourceT]
    more: Columns[ResourceT] = field(default_factory=dict)
    """Facts that only its own view shows."""
    remedy: str = "show it for more"
    """Remedy for one that has failed."""
    references: Sequence["ResourceType[Any]"] = ()
    """Types of the resources that its columns refer to by id."""
    is_in_projects: bool = True
    """Its list has pages and takes an organization and a project."""

    @property
    def details(self) -> Columns[ResourceT]:
        return {**self.columns, **self.more}

    @property
    def read_type(self) -> type[ResourceT]:
        return cast("type[ResourceT]", schema_type(self.read))

    def show_command(self, name: str) -> str:
        return f"remuda {self.name.replace(' ', '-')} show {name}"


def schema_type(path: str) -> Any:
    """Return the schema type at MODULE:TYPE."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


def _text(value: Any) -> str:
    if value is None or value is UNSET:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, Sequence) and not isinstance(value, str) else str(value)


def state_of(metadata: "MetadataRead") -> tuple[str, str]:
    """Return the status of a resource in one word, as the console shows it, and its message.

    A resource that was provisioned and has failed since is `error`, which its health says.
    """
    status, detail = metadata.provisioning_status, metadata.provisioning_status_detail
    if (status, metadata.health_status) == ("provisioned", "error"):
        detail = metadata.health_status_detail
        return "error", "" if detail is None else detail.message
    return status, "" if detail is None or detail.message == status else detail.message


def _message(metadata: "MetadataRead") -> str:
    return state_of(metadata)[1]


def _health(metadata: "MetadataRead") -> str:
    status, detail = metadata.health_status, metadata.health_status_detail
    message = "" if detail is None else detail.message
    if status == "healthy":
        return status
    return "" if status == "unknown" else f"{status}: {message}" if message not in {"", status} else status


def _created(metadata: "MetadataRead | StaticMetadataRead") -> str:
    return f"{metadata.creation_time:%Y-%m-%d %H:%M}"


def _tags(metadata: "MetadataRead | StaticMetadataRead") -> str:
    return ", ".join(f"{tag.name}={tag.value}" for tag in metadata.tags)


def _creator(metadata: "MetadataRead | StaticMetadataRead") -> str:
    return getattr(metadata, "created_by_name", "") or metadata.created_by


_METADATA: Columns[Any] = {
    "DESCRIPTION": lambda item: _text(item.metadata.description),
    "TAGS": lambda item: _tags(item.metadata),
    "MESSAGE": lambda item: _message(item.metadata),
    "HEALTH": lambda item: _health(item.metadata),
    "CREATED BY": lambda item: _creator(item.metadata),
}
_NAME: Columns[Any] = {"NAME": lambda item: item.metadata.name}
_STATUS: Columns[Any] = {**_NAME, "STATUS": lambda item: state_of(item.metadata)[0]}
_ID: Columns[Any] = {"ID": lambda item: item.metadata.id}
_CREATED: Columns[Any] = {"CREATED": lambda item: _created(item.metadata), **_ID}


def _protection(instance: "InstanceRead") -> str:
    found = instance.spec.protection
    if found is None:
        return ""
    return ", ".join(["from deletion"] * found.deletion + ["from updates without a plan"] * found.plan)


def rule_text(rule: "RuleWire") -> str:
    """Return a rule as the option --allow takes it."""
    ports = str(rule.port or "") + (f"-{rule.port_max}" if rule.port_max else "")
    return " ".join(filter(None, (rule.direction, rule.protocol, ports, rule.prefix or "")))


REGION: "ResourceType[RegionRead]" = ResourceType(
    name="region",
    service="region",
    path="/api/v2/regions",
    read="remuda.resources.schema:RegionRead",
    columns={**_NAME, "TYPE": lambda region: region.spec.type, **_ID},
    more={
        "CAPABILITIES": lambda region: _text(region.spec.features.capabilities),
        "DISABLED": lambda region: "yes" if region.spec.disabled else "",
    },
    is_in_projects=False,
)
PLATFORM_REGION: "ResourceType[PlatformRegionRead]" = ResourceType(
    name="region",
    service="region",
    path="/api/v2/platform/regions",
    read="remuda.region.regions.schema:PlatformRegionRead",
    create="remuda.region.regions.schema:PlatformRegionWrite",
    update="remuda.region.regions.schema:PlatformRegionWrite",
    columns={**_STATUS, "TYPE": lambda region: region.spec.type, **_ID},
    more={
        "DISABLED": lambda region: _text(region.spec.disabled),
        "ORGANIZATIONS": lambda region: _text(region.spec.organization_ids),
        "ENDPOINT": lambda region: region.spec.openstack.endpoint if region.spec.openstack else "",
        "DOMAIN": lambda region: region.spec.openstack.domain_id if region.spec.openstack else "",
        "LIKE": lambda region: region.spec.simulated.catalogue if region.spec.simulated else "",
        "CREATED": lambda region: _created(region.metadata),
        **_METADATA,
    },
    is_in_projects=False,
)
NETWORK: "ResourceType[NetworkRead]" = ResourceType(
    name="network",
    service="region",
    path="/api/v2/networks",
    read="remuda.region.networks.schema:NetworkRead",
    create="remuda.region.networks.schema:NetworkCreate",
    update="remuda.region.networks.schema:NetworkUpdate",
    columns={
        **_STATUS,
        "PREFIX": lambda network: network.status.prefix,
        "REGION": lambda network: network.status.region_id,
        **_CREATED,
    },
    more={"DNS": lambda network: _text(network.spec.dns_nameservers), **_METADATA},
    references=(REGION,),
)
SECURITY_GROUP: "ResourceType[SecurityGroupRead]" = ResourceType(
    name="security group",
    service="region",
    path="/api/v2/securitygroups",
    read="remuda.region.securitygroups.schema:SecurityGroupRead",
    create="remuda.region.securitygroups.schema:SecurityGroupCreate",
    update="remuda.region.securitygroups.schema:SecurityGroupUpdate",
    columns={
        **_STATUS,
        "RULES": lambda group: str(len(group.spec.rules)),
        "NETWORK": lambda group: group.status.network_id,
        **_CREATED,
    },
    more={"ALLOWS": lambda group: "; ".join(map(rule_text, group.spec.rules)), **_METADATA},
    references=(NETWORK,),
)
SSH_CA: "ResourceType[AuthorityRead]" = ResourceType(
    name="SSH certificate authority",
    service="region",
    path="/api/v2/sshcertificateauthorities",
    read="remuda.region.authorities.schema:AuthorityRead",
    create="remuda.region.authorities.schema:AuthorityCreate",
    columns={**_STATUS, **_CREATED},
    more={"PUBLIC KEY": lambda authority: authority.spec.public_key, **_METADATA},
)
INSTANCE: "ResourceType[InstanceRead]" = ResourceType(
    name="instance",
    service="compute",
    path="/api/v2/instances",
    read="remuda.compute.instances.schema:InstanceRead",
    create="remuda.compute.instances.schema:InstanceCreate",
    update="remuda.compute.instances.schema:InstanceUpdate",
    columns={
        **_STATUS,
        "POWER": lambda instance: _text(instance.status.power_state),
        "PRIVATE IP": lambda instance: instance.status.private_ip,
        "PUBLIC IP": lambda instance: instance.status.public_ip,
        "NETWORK": lambda instance: instance.status.network_id,
        **_CREATED,
    },
    more={
        "MAC": lambda instance: instance.status.mac_address,
        "FLAVOR": lambda instance: instance.spec.flavor_id,
        "IMAGE": lambda instance: instance.spec.image_id,
        "REGION": lambda instance: instance.status.region_id,
        "SECURITY GROUPS": lambda instance: _text(
            instance.spec.networking and instance.spec.networking.security_groups
        ),
        "SSH CA": lambda instance: _text(instance.spec.ssh_certificate_authority_id),
        "SOURCE PREFIXES": lambda instance: _text(
            instance.spec.networking and instance.spec.networking.allowed_source_addresses
        ),
        "PROTECTED": _protection,
        **_METADATA,
    },
    remedy="remuda instance explain {name} shows the cause and the remedy",
    references=(NETWORK, REGION, SECURITY_GROUP, SSH_CA),
)


def _gpu(flavor: "FlavorRead") -> str:
    gpu = flavor.spec.gpu
    return "" if gpu is None else f"{gpu.physical_count} x {gpu.model}"


FLAVOR: "ResourceType[FlavorRead]" = ResourceType(
    name="flavor",
    service="region",
    path="/api/v2/regions/{regionID}/flavors",
    read="remuda.resources.schema:FlavorRead",
    columns={
        **_NAME,
        "CPUS": lambda flavor: str(flavor.spec.cpus),
        "MEMORY": lambda flavor: f"{flavor.spec.memory} GiB",
        "DISK": lambda flavor: f"{flavor.spec.disk_gib} GiB",
        "GPU": _gpu,
        "FREE": lambda flavor: _text(flavor.spec.free),
        **_ID,
    },
    more={
        "ARCHITECTURE": lambda flavor: flavor.spec.architecture,
        "BARE METAL": lambda flavor: _text(flavor.spec.baremetal),
    },
)
IMAGE: "ResourceType[ImageRead]" = ResourceType(
    name="image",
    service="region",
    path="/api/v2/regions/{regionID}/images",
    read="remuda.resources.schema:ImageRead",
    columns={
        **_NAME,
        "STATE": lambda image: image.status.state,
        "SYSTEM": lambda image: f"{image.spec.os.distro} {image.spec.os.version}",
        "SIZE": lambda image: f"{image.spec.size_gib} GiB",
        **_CREATED,
    },
    more={
        "ARCHITECTURE": lambda image: image.spec.architecture,
        "VIRTUALIZATION": lambda image: image.spec.virtualization,
        "SOFTWARE": lambda image: ", ".join(
            f"{name} {version}" for name, version in image.spec.software_versions.items()
        ),
        "TAGS": lambda image: _tags(image.metadata),
    },
)
