"""What a region says about a Kubernetes cluster that it stands for."""

from typing import Annotated

from remuda.kernel.secrets import Secret
from remuda.region.kinds.hardware import Cpu, Gpu
from remuda.store.kinds import keyed
from remuda.store.objects import StoredStruct


class SecretName(StoredStruct, frozen=True):
    """Names a secret of the cluster that the objects are stored in."""

    namespace: str
    name: str


class KubernetesNode(StoredStruct, frozen=True):
    """A sort of node, which is a flavor if the cluster has one."""

    id: str
    name: str
    cpu: Cpu
    memory: int
    disk: int
    gpu: Gpu | None = None


class RegionKubernetes(StoredStruct, frozen=True):
    """How to reach the cluster, and what its nodes are."""

    kube_config_secret: SecretName | None = None
    kube_config: Secret | None = None
    """The kubeconfig itself, where no cluster keeps secrets for us."""
    nodes: Annotated[tuple[KubernetesNode, ...], keyed("id")] = ()
    domain_name: str = ""
