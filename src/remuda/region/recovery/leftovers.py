"""What an object may have at its provider, by the names that it has there."""

from collections.abc import Iterator, Mapping

from remuda.providers.contract.common import Handle, balancer_name, storage_name
from remuda.providers.contract.provider import Subject
from remuda.region.kinds.filestorage import FileStorage
from remuda.region.kinds.identities import Identity
from remuda.region.kinds.loadbalancers import LoadBalancer
from remuda.region.kinds.networks import Network
from remuda.region.kinds.securitygroups import SecurityGroup
from remuda.region.kinds.server_parts import Replacement
from remuda.region.kinds.servers import Server
from remuda.region.networks.rules import tenancy_of, to_cloud
from remuda.region.recovery.schema import RecoverableSort
from remuda.region.securitygroups.rules import handle_of
from remuda.region.servers.provider_spec import port_handle, server_handle
from remuda.store.objects import Resource

KIND_OF: Mapping[RecoverableSort, type[Resource]] = {
    "identities": Identity,
    "networks": Network,
    "securitygroups": SecurityGroup,
    "loadbalancers": LoadBalancer,
    "servers": Server,
    "filestorages": FileStorage,
}
"""The kinds of what has something at a provider."""


def things_of(resource: Resource, home: Identity | None) -> Iterator[tuple[Subject, Handle]]:
    """Yield what an object may have; nothing in a tenancy, if the identity is gone, which goes after all of it."""
    match resource:
        case Identity():
            yield "tenancy", Handle("", tenancy_of(resource.metadata))
        case FileStorage():
            yield "storage", Handle("", storage_name(resource.name, resource.uid))
        case _ if home is not None:
            yield from _in_tenancy(resource, home)


def _in_tenancy(resource: Resource, home: Identity) -> Iterator[tuple[Subject, Handle]]:
    match resource:
        case Server():
            turn = resource.status.replacement or Replacement()
            for number in range(turn.done, max(turn.counter, resource.spec.replacement) + 1):
                yield "server", server_handle(resource, home, number)
            yield "port", port_handle(resource, home)
        case Network():
            yield "network", to_cloud(resource, home)
        case SecurityGroup():
            yield "group", handle_of(resource, home)
        case LoadBalancer():
            yield "balancer", Handle(tenancy_of(home.metadata), balancer_name(resource.name, resource.uid))
