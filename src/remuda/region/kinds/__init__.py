"""Stored kinds of the region service, one module for each resource package.

Kinds of the group `region.unikorn-cloud.org` have the fields of existing clusters and some of our own. Kinds of the
group `region.remuda` exist only here.
"""

from typing import Any

from remuda.region.kinds.authorities import AUTHORITY
from remuda.region.kinds.filestorage import FILE_STORAGE, FILE_STORAGE_CLASS, FILE_STORAGE_PROVISIONER
from remuda.region.kinds.images import IMAGE_IMPORT
from remuda.region.kinds.legacy import OPENSTACK_NETWORK, OPENSTACK_SECURITY_GROUP, OPENSTACK_SERVER, VOLUME
from remuda.region.kinds.loadbalancers import LOAD_BALANCER
from remuda.region.kinds.networks import ADDRESS, IDENTITY, NETWORK, OPENSTACK_IDENTITY, VLAN_ALLOCATION
from remuda.region.kinds.orphans import ORPHAN, POLL_DIGEST
from remuda.region.kinds.regions import REGION
from remuda.region.kinds.securitygroups import SECURITY_GROUP
from remuda.region.kinds.servers import SERVER
from remuda.store.kinds import Kind

__all__ = ["KINDS"]

KINDS: tuple[Kind[Any], ...] = (
    REGION,
    IDENTITY,
    OPENSTACK_IDENTITY,
    NETWORK,
    ADDRESS,
    SECURITY_GROUP,
    LOAD_BALANCER,
    AUTHORITY,
    SERVER,
    FILE_STORAGE,
    FILE_STORAGE_CLASS,
    FILE_STORAGE_PROVISIONER,
    IMAGE_IMPORT,
    VOLUME,
    VLAN_ALLOCATION,
    ORPHAN,
    POLL_DIGEST,
    OPENSTACK_NETWORK,
    OPENSTACK_SECURITY_GROUP,
    OPENSTACK_SERVER,
)
