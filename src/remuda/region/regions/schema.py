"""Schema of regions as platform administrators see them. Passwords are written, and never read."""

from typing import Annotated, Literal

import msgspec

from remuda.http.schema import Wire
from remuda.kernel.secrets import Secret
from remuda.region.catalogue.schema import ExternalNetworkRead
from remuda.resources.schema import FlavorRead, ImageRead, MetadataRead, MetadataWrite, OrganizationId

_Text = Annotated[str, msgspec.Meta(max_length=255)]
_Ids = Annotated[tuple[_Text, ...], msgspec.Meta(max_length=1024)]
RegionType = Literal["openstack", "simulated"]
"""Types of regions that can be created while the process runs."""


class VlanRangeWire(Wire, frozen=True):
    """VLANs, both ends included."""

    first: Annotated[int, msgspec.Meta(ge=1, le=4094, description="The lowest VLAN.", examples=[100])]
    last: Annotated[int, msgspec.Meta(ge=1, le=4094, description="The highest VLAN.", examples=[199])]


class OpenstackWire(Wire, frozen=True):
    """Access to an OpenStack cloud, and what of it is offered."""

    endpoint: Annotated[
        str,
        msgspec.Meta(
            min_length=1,
            max_length=1024,
            description="URL of Keystone, with its version.",
            examples=["https://cloud.example.com:5000/v3"],
        ),
    ]
    region: Annotated[_Text, msgspec.Meta(description="Region of the service catalogue; empty if it has one only.")] = (
        ""
    )
    ca_certificate: Annotated[
        str,
        msgspec.Meta(
            max_length=262_144,
            description="PEM of the authorities that signed the certificates of the cloud; empty for the public ones.",
        ),
    ] = ""
    domain_id: Annotated[_Text, msgspec.Meta(description="Id of the domain that the account manages.")] = msgspec.field(
        default="", name="domainID"
    )
    domain_name: Annotated[_Text, msgspec.Meta(description="Its name, if the id is empty. It is not stored.")] = ""
    user_id: Annotated[_Text, msgspec.Meta(description="Id of the account.")] = msgspec.field(default="", name="userID")
    user_name: Annotated[_Text, msgspec.Meta(description="Its name, if the id is empty. It is not stored.")] = ""
    user_domain_name: Annotated[
        _Text, msgspec.Meta(description="Name of the domain of the account, if that is another one.")
    ] = ""
    password: Annotated[
        Secret | None,
        msgspec.Meta(
            description="Password of the account, which is never returned. Without it, the stored one stays while "
            "endpoint, domain and account do not change.",
            examples=["a-password-of-the-cloud"],
        ),
    ] = None
    flavor_ids: Annotated[_Ids, msgspec.Meta(description="Offered flavors; empty for all public ones.")] = (
        msgspec.field(default=(), name="flavorIDs")
    )
    external_network_ids: Annotated[_Ids, msgspec.Meta(description="Offered external networks; empty for all.")] = (
        msgspec.field(default=(), name="externalNetworkIDs")
    )
    external_network_tags: Annotated[_Ids, msgspec.Meta(description="Tags that an offered external network has.")] = ()
    physical_network: Annotated[
        _Text, msgspec.Meta(description="Physical network on which each network is a VLAN; empty for tenant networks.")
    ] = ""
    vlans: Annotated[
        tuple[VlanRangeWire, ...],
        msgspec.Meta(max_length=256, description="VLANs of the physical network that can be used; empty for all."),
    ] = ()
    server_group_policy: Annotated[
        _Text, msgspec.Meta(description="Policy of server groups; empty for soft-anti-affinity.")
    ] = ""


class SimulatedWire(Wire, frozen=True):
    """Simulated cloud."""

    catalogue: Annotated[
        _Text,
        msgspec.Meta(description="Simulated cloud of the catalogue that this one is like.", examples=["eu-west"]),
    ]


class PlatformRegionSpec(Wire, frozen=True, kw_only=True):
    """Provider of a region, and who may use it."""

    type: Annotated[
        RegionType,
        msgspec.Meta(description="Type of the provider, which has a section of its name.", examples=["simulated"]),
    ]
    disabled: Annotated[
        bool, msgspec.Meta(description="Nothing new can be created; what is there can be used and deleted.")
    ] = False
    organization_ids: Annotated[
        tuple[OrganizationId, ...],
        msgspec.Meta(max_length=1024, description="Organizations that may see the region; empty for all."),
    ] = msgspec.field(default=(), name="organizationIDs")
    openstack: OpenstackWire | None = None
    simulated: Annotated[SimulatedWire | None, msgspec.Meta(examples=[{"catalogue": "eu-west"}])] = None


class PlatformRegionWrite(Wire, frozen=True):
    """Request for a region."""

    metadata: MetadataWrite
    spec: PlatformRegionSpec


class PlatformRegionRead(Wire, frozen=True):
    """A region without its password."""

    metadata: MetadataRead
    spec: PlatformRegionSpec


class RegionFindingRead(Wire, frozen=True):
    """Thing that the cloud lacks."""

    capability: Annotated[str, msgspec.Meta(description="What does not work without it.")]
    message: Annotated[str, msgspec.Meta(description="What is missing.")]
    command: Annotated[str, msgspec.Meta(description="Command of the cloud's operator that adds it.")] = ""


class RegionCheckRead(Wire, frozen=True):
    """Result of a check: the offer of a cloud, and the things that it lacks."""

    flavors: Annotated[tuple[FlavorRead, ...], msgspec.Meta(description="Offered flavors.")]
    images: Annotated[tuple[ImageRead, ...], msgspec.Meta(description="Offered images.")]
    external_networks: Annotated[
        tuple[ExternalNetworkRead, ...], msgspec.Meta(description="Offered external networks.")
    ]
    findings: Annotated[tuple[RegionFindingRead, ...], msgspec.Meta(description="What is missing.")]
