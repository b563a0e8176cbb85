"""The region service: its rooms, each with a port of its own.

Other services use the ports of the rooms, in this process or over HTTP; nothing else of region is theirs to know.
"""

from dataclasses import dataclass

from remuda.region.authorities.service import Authorities
from remuda.region.catalogue.service import Catalogue
from remuda.region.filestorage.service import FileStorageRoom
from remuda.region.images.facade import ImageRoom
from remuda.region.loadbalancers.service import LoadBalancers
from remuda.region.networks.service import Networks
from remuda.region.recovery.service import Recovery
from remuda.region.securitygroups.service import SecurityGroups
from remuda.region.servers.facade import ServerRoom


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """All rooms."""

    catalogue: Catalogue
    images: ImageRoom
    networks: Networks
    security_groups: SecurityGroups
    authorities: Authorities
    load_balancers: LoadBalancers
    file_storage: FileStorageRoom
    servers: ServerRoom
    recovery: Recovery
