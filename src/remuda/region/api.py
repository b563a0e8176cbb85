"""Region's route table: the routes of all its rooms."""

from remuda.http.mounting import within
from remuda.http.routes import Table
from remuda.region.authorities import routes as authorities
from remuda.region.catalogue import routes as catalogue
from remuda.region.filestorage import routes as file_storage
from remuda.region.images import routes as images
from remuda.region.loadbalancers import routes as load_balancers
from remuda.region.networks import routes as networks
from remuda.region.recovery import routes as recovery
from remuda.region.securitygroups import routes as security_groups
from remuda.region.servers import routes as servers

TABLE = Table(
    "region",
    title="Region",
    description="Networks, servers and what they stand on, in every region there is.",
    routes=[
        *within(lambda region: region.catalogue, catalogue.routes()),
        *within(lambda region: region.images, images.routes()),
        *within(lambda region: region.networks, networks.routes()),
        *within(lambda region: region.security_groups, security_groups.routes()),
        *within(lambda region: region.authorities, authorities.routes()),
        *within(lambda region: region.load_balancers, load_balancers.routes()),
        *within(lambda region: region.file_storage, file_storage.routes()),
        *within(lambda region: region.servers, servers.routes()),
        *within(lambda region: region.recovery, recovery.routes()),
    ],
)
"""The whole API, which `assembly` mounts with a `Region`."""
