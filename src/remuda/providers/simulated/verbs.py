"""The verbs of the contract: what a delay or a fault can be about."""

from remuda.providers.contract.catalogue import Catalogue, ExternalNetworks, Images
from remuda.providers.contract.filestorage import FileStorages
from remuda.providers.contract.loadbalancers import LoadBalancers
from remuda.providers.contract.networks import Networks, SecurityGroups, Tenancies
from remuda.providers.contract.servers import Consoles, Ports, Servers, Snapshots

_CAPABILITIES = (
    *(Catalogue, ExternalNetworks, Images, Tenancies, Networks, SecurityGroups),
    *(Ports, Servers, Consoles, Snapshots, LoadBalancers, FileStorages),
)

VERBS: tuple[str, ...] = tuple(
    verb for capability in _CAPABILITIES for verb in vars(capability) if not verb.startswith("_")
)
"""All of them."""
