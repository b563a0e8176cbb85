"""What can be set about region, with its type, its default and what it means."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Annotated

from remuda.config.about import About, Section
from remuda.config.fields import (
    is_gpu_vendor,
    is_name,
    is_network,
    is_organization,
    is_percentage,
    is_positive,
    is_some,
    is_uuid,
    is_vlan,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGpu:
    """The GPUs of a sort of node."""

    vendor: Annotated[str, About("Who makes them: NVIDIA or AMD.", is_gpu_vendor)]
    model: Annotated[str, About("What they are called.")]
    memory_gib: Annotated[int, About("How much memory each logical one has.", is_positive)]
    physical_count: Annotated[int, About("How many there are.", is_positive)] = 1
    logical_count: Annotated[int, About("As how many they are shown.", is_positive)] = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterNode:
    """A sort of node, which is a flavor while the cluster has such a node."""

    id: Annotated[str, About("A UUID of your own: nodes say it in their label for the node class.", is_uuid)]
    name: Annotated[str, About("What the flavor is called.")]
    memory_gib: Annotated[int, About("How much memory such a node has.", is_positive)]
    disk_gib: Annotated[int, About("How large its disk is.", is_positive)]
    cpus: Annotated[int | None, About("How many processors it has; left out, as the cluster says.", is_positive)] = None
    cpu_family: Annotated[str, About("What its processors are called.")] = ""
    gpu: Annotated[NodeGpu | None, About("Its GPUs.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A Kubernetes cluster that is a region."""

    kube_config_file: Annotated[Path, About("The file with its kubeconfig, which has everything in it.")]
    domain_name: Annotated[str, About("Below which its services have their names.")] = ""
    nodes: Annotated[tuple[ClusterNode, ...], About("The sorts of nodes that it has.")] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class VlanRange:
    """VLANs in a row, both ends included."""

    first: Annotated[int, About("The lowest of them.", is_vlan)]
    last: Annotated[int, About("The highest of them.", is_vlan)]


@dataclass(frozen=True, slots=True, kw_only=True)
class PhysicalNetwork:
    """A physical network, of which each network of a region is a VLAN."""

    name: Annotated[str, About("What the cloud calls it.", is_name)]
    vlans: Annotated[tuple[VlanRange, ...], About("Those that are ours to give; all there are, if none is named.")] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Region(Section):
    """Which regions there are, and how what is in them is looked after."""

    simulated: Annotated[bool, About("Each simulated cloud of the catalogue is a region.")] = True
    catalogue: Annotated[
        Path | None, About("The TOML file that describes the simulated clouds.", shown="the one that comes with Remuda")
    ] = None
    instant: Annotated[bool, About("In simulated clouds nothing takes any time.")] = False
    kubernetes: Annotated[Mapping[str, Cluster], About("Kubernetes clusters, each of which is a region, by name.")] = (
        field(default_factory=dict)
    )
    private: Annotated[
        Mapping[str, tuple[str, ...]],
        About(
            "Regions by name that only some organizations see, with the ids of these.", is_organization, needs_one=True
        ),
    ] = field(default_factory=dict)
    physical_networks: Annotated[
        Mapping[str, PhysicalNetwork],
        About("Regions by name whose networks are VLANs of a physical network, with that."),
    ] = field(default_factory=dict)
    create_attempts: Annotated[
        int, About("How often a server is made that its cloud could not bring up.", is_positive)
    ] = 3
    poll_idle: Annotated[timedelta, About("How often a cloud is looked at in which nothing is under way.", is_some)] = (
        timedelta(minutes=5)
    )
    poll_busy: Annotated[
        timedelta,
        About("How often a cloud that tells nothing by itself is asked about what is under way in it.", is_some),
    ] = timedelta(seconds=2)
    first_looks_per_s: Annotated[
        int, About("How many servers a second are looked at of which nobody knows how they were.", is_positive)
    ] = 3
    judged_per_s: Annotated[
        int, About("How many things at a cloud a second are held against what should be there.", is_positive)
    ] = 10
    addresses_low_percent: Annotated[
        int, About("A network of whose addresses a smaller share is free runs low.", is_percentage)
    ] = 10
    look_again: Annotated[
        timedelta,
        About("How far two looks are apart, at least, that find something gone at a cloud.", is_some),
    ] = timedelta(seconds=1)
    image_size_gib: Annotated[int, About("How large an image may be that is imported.", is_positive)] = 30
    image_targets: Annotated[
        tuple[str, ...], About("Networks of your own from which images may be imported all the same.", is_network)
    ] = ()
