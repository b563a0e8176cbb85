"""Schema of the configuration of region: its regions, their clusters and networks, and how resources are managed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Annotated

from remuda.config.fields import (
    Description,
    Section,
    check_gpu_vendor,
    check_name,
    check_network,
    check_not_zero,
    check_organization,
    check_percentage,
    check_positive,
    check_uuid,
    check_vlan,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGpuConfig:
    """GPUs of a class of nodes."""

    vendor: Annotated[str, Description("The vendor: NVIDIA or AMD.", check_gpu_vendor)]
    model: Annotated[str, Description("The model.")]
    memory_gib: Annotated[int, Description("Memory of each logical GPU.", check_positive)]
    physical_count: Annotated[int, Description("Number of physical GPUs.", check_positive)] = 1
    logical_count: Annotated[int, Description("Number of logical GPUs.", check_positive)] = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterNodeConfig:
    """A class of nodes, which is a flavor while the cluster has such a node."""

    id: Annotated[
        str, Description("A UUID of your choice: nodes have it in their label for the node class.", check_uuid)
    ]
    name: Annotated[str, Description("Name of the flavor.")]
    memory_gib: Annotated[int, Description("Memory of a node.", check_positive)]
    disk_gib: Annotated[int, Description("Size of its disk.", check_positive)]
    cpus: Annotated[
        int | None, Description("Number of processors; by default the cluster's value.", check_positive)
    ] = None
    cpu_family: Annotated[str, Description("Name of its processors.")] = ""
    gpu: Annotated[NodeGpuConfig | None, Description("Its GPUs.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterConfig:
    """A Kubernetes cluster that is a region."""

    kube_config_file: Annotated[Path, Description("The file with its kubeconfig, with inline credentials.")]
    domain_name: Annotated[str, Description("The domain of its services.")] = ""
    nodes: Annotated[tuple[ClusterNodeConfig, ...], Description("Its classes of nodes.")] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class VlanRangeConfig:
    """Consecutive VLANs, both ends included."""

    first: Annotated[int, Description("The lowest of them.", check_vlan)]
    last: Annotated[int, Description("The highest of them.", check_vlan)]


@dataclass(frozen=True, slots=True, kw_only=True)
class PhysicalNetworkConfig:
    """A physical network, of which each network of a region is a VLAN."""

    name: Annotated[str, Description("Its name in the cloud.", check_name)]
    vlans: Annotated[
        tuple[VlanRangeConfig, ...], Description("VLANs that may be assigned; all, if none is named.")
    ] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionConfig(Section):
    """Settings of region: the regions, and how their resources are managed."""

    simulated: Annotated[bool, Description("Whether each simulated cloud of the catalogue is a region.")] = True
    catalogue: Annotated[
        Path | None, Description("The TOML file that describes the simulated clouds.", shown="the built-in one")
    ] = None
    instant: Annotated[bool, Description("Whether simulated clouds work without delays.")] = False
    kubernetes: Annotated[
        Mapping[str, ClusterConfig], Description("Kubernetes clusters, each of which is a region, by name.")
    ] = field(default_factory=dict)
    private: Annotated[
        Mapping[str, tuple[str, ...]],
        Description(
            "Regions by name that only some organizations see, with the ids of these organizations.",
            check_organization,
            needs_one=True,
        ),
    ] = field(default_factory=dict)
    physical_networks: Annotated[
        Mapping[str, PhysicalNetworkConfig],
        Description("Physical networks by the name of the region whose networks are VLANs of it."),
    ] = field(default_factory=dict)
    create_attempts: Annotated[
        int, Description("Number of attempts to create a server that its cloud fails to start.", check_positive)
    ] = 3
    poll_idle: Annotated[
        timedelta, Description("Poll interval of a cloud in which nothing is in progress.", check_not_zero)
    ] = timedelta(minutes=5)
    poll_busy: Annotated[
        timedelta,
        Description("Poll interval of resources in progress, in a cloud that sends no events.", check_not_zero),
    ] = timedelta(seconds=2)
    initial_polls_per_second: Annotated[
        int, Description("Number of servers per second that are polled for the first time.", check_positive)
    ] = 3
    checks_per_second: Annotated[
        int, Description("Number of resources at a cloud per second that are checked for orphans.", check_positive)
    ] = 10
    addresses_low_percent: Annotated[
        int, Description("Share of free addresses below which a network is reported as nearly full.", check_percentage)
    ] = 10
    absence_delay: Annotated[
        timedelta,
        Description(
            "Shortest time between the two reads that confirm the absence of a resource at a cloud.", check_not_zero
        ),
    ] = timedelta(seconds=1)
    image_size_gib: Annotated[int, Description("Largest size of an imported image.", check_positive)] = 30
    cloud_targets: Annotated[
        tuple[str, ...], Description("Networks in which clouds may be, besides public and private ones.", check_network)
    ] = ()
    image_targets: Annotated[
        tuple[str, ...], Description("Private networks from which images may be imported.", check_network)
    ] = ()
