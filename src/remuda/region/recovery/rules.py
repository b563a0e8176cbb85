"""Rules of recovery: views of orphans, objects of adopted servers, resources of objects."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from ipaddress import IPv4Address

import msgspec
from msgspec.structs import replace

from remuda.access.principal import Principal
from remuda.kernel.errors import Invalid
from remuda.providers.contract.common import Handle, balancer_name, port_name, storage_name
from remuda.providers.contract.provider import EventSubject
from remuda.providers.contract.servers import CloudPort, CloudServer
from remuda.region.kinds.filestorage import FileStorage
from remuda.region.kinds.loadbalancers import LoadBalancer
from remuda.region.kinds.networks import Identity, Network
from remuda.region.kinds.orphans import Orphan, OrphanClaim, claimed
from remuda.region.kinds.securitygroups import SecurityGroup
from remuda.region.kinds.servers import Adopted, Server
from remuda.region.networks.address_plan import mac_of
from remuda.region.networks.rules import network_handle, tenancy_of
from remuda.region.recovery.schema import AdoptWrite, OrphanRead, RecoverableKind
from remuda.region.securitygroups.rules import group_handle
from remuda.region.servers.provider_spec import port_handle, replacement_number, server_handle
from remuda.region.servers.rules import new_server, server_id
from remuda.region.servers.schema import ServerCreate, ServerCreateSpec, ServerNetworkingWire
from remuda.resources.conventions import REGION, region_of
from remuda.resources.schema import MetadataWrite
from remuda.store.objects import Resource, ResourceT


@dataclass(frozen=True, slots=True, kw_only=True)
class LostServer:
    """Server at a provider whose object was lost."""

    orphan: Orphan
    network: Network
    found: CloudServer
    port: CloudPort


def read_orphan(orphan: Orphan) -> OrphanRead:
    spec = orphan.spec
    return OrphanRead(
        id=orphan.name,
        region_id=orphan.metadata.labels[REGION],
        subject=spec.subject,
        name=spec.provider_name,
        tenancy=spec.tenancy,
        object_id=spec.object_id,
        object_uid=spec.object_uid,
        first_seen=spec.first_seen,
        cause=spec.cause,
        reason=spec.reason,
    )


def orphan_view(orphan: Orphan) -> bytes:
    return msgspec.json.encode(read_orphan(orphan))


def annotated(resource: ResourceT, name: str, value: str) -> ResourceT:
    annotations = dict(resource.metadata.annotations) | {name: value}
    return replace(resource, metadata=replace(resource.metadata, annotations=annotations))


def needs_reset(server: Server) -> bool:
    """Return whether a server has failed creates or a failed rebuild."""
    status = server.status
    has_failed_rebuild = status.rebuild is not None and status.rebuild.state == "Failed"
    return bool(status.provider_create_failures) or has_failed_rebuild


def retried_server(server: Server) -> Server:
    status = server.status
    rebuild = None if status.rebuild is not None and status.rebuild.state == "Failed" else status.rebuild
    return replace(server, status=replace(status, provider_create_failures=0, rebuild=rebuild))


def check_adoptable(orphan: Orphan, body: AdoptWrite) -> None:
    """Raise Invalid if an orphan is not a server, or is not the named one."""
    if orphan.spec.subject != "server":
        raise Invalid("orphan", "is not a server", remedy="adopt its server, or forget it")
    if server_id(body.network_id, body.name) != orphan.spec.object_id:
        raise Invalid(
            "name",
            "is not the name of this server on this network",
            remedy="give name and network as they were when the server was created",
        )


def claimed_for(claim: OrphanClaim, orphan: Orphan, now: datetime) -> Orphan:
    """Return the record of an orphan with a claim; raise Invalid if the other claim is active."""
    if claim == "adoption" and orphan.spec.is_claimed("removal", now):
        remedy = "wait until it is deleted; or forget it, and adopt it if it is found again"
        raise Invalid("orphan", "is being deleted", remedy=remedy)
    if claim == "removal" and orphan.spec.is_claimed("adoption", now):
        raise Invalid("orphan", "is being adopted", remedy="retry in a few minutes")
    return claimed(orphan, claim, now)


def port_of(orphan: Orphan) -> Handle:
    return Handle(orphan.spec.tenancy, port_name(orphan.spec.object_id, orphan.spec.object_uid))


def check_network(orphan: Orphan, network: Network, identity: Identity, port: CloudPort | None) -> CloudPort:
    """Return the port of an orphan; raise Invalid if it is not on this network at its provider."""
    is_here = region_of(network) == region_of(orphan) and tenancy_of(identity.metadata) == orphan.spec.tenancy
    if (
        network.is_deleting
        or not is_here
        or (port is not None and port.spec.network != network_handle(network, identity).name)
    ):
        raise Invalid(
            "networkId",
            "is not the network that the server is on at its provider",
            remedy="give that network, or forget the orphan",
        )
    if port is None or port.spec.mac != mac_of(network.name, IPv4Address(port.spec.address)):
        raise Invalid("orphan", "does not have the port that it was created with", remedy="delete it with forget")
    return port


def adopted_server(lost: LostServer, name: str, groups: Iterable[str], by: Principal, *, operation: str) -> Server:
    """Return the object of a server that exists at its provider, with the fields that the provider reports.

    It reports no user data, no certificate authority and no pinned host: the object gets none.
    """
    port, orphan = lost.port.spec, lost.orphan.spec
    spec = ServerCreateSpec(
        network_id=lost.network.name,
        flavor_id=lost.found.flavor,
        image_id=lost.found.image,
        rebuilds=lost.found.rebuilds,
        networking=ServerNetworkingWire(
            security_groups=tuple(groups), public_ip=port.is_public, allowed_source_addresses=port.sources
        ),
        ssh_injection="none",
    )
    body = ServerCreate(metadata=MetadataWrite(name=name), spec=spec)
    server = new_server(body, lost.network, by, operation=operation)
    adopted = Adopted(uid=orphan.object_uid, address=port.address, number=replacement_number(orphan.provider_name) or 0)
    return replace(server, spec=replace(server.spec, adopted=adopted))


KIND_OF: Mapping[RecoverableKind, type[Resource]] = {
    "identities": Identity,
    "networks": Network,
    "securitygroups": SecurityGroup,
    "loadbalancers": LoadBalancer,
    "servers": Server,
    "filestorages": FileStorage,
}


def resources_of(resource: Resource, identity: Identity | None) -> Iterator[tuple[EventSubject, Handle]]:
    """Yield the resources that an object may have; none in a tenancy if its identity is gone, which is deleted last."""
    match resource:
        case Identity():
            yield "tenancy", Handle("", tenancy_of(resource.metadata))
        case FileStorage():
            yield "storage", Handle("", storage_name(resource.name, resource.uid))
        case _ if identity is not None:
            yield from _in_tenancy(resource, identity)


def _in_tenancy(resource: Resource, identity: Identity) -> Iterator[tuple[EventSubject, Handle]]:
    match resource:
        case Server():
            replacement = resource.status.replacement
            for number in range(replacement.completed, max(replacement.started, resource.spec.replacement) + 1):
                yield "server", server_handle(resource, identity, number)
            yield "port", port_handle(resource, identity)
        case Network():
            yield "network", network_handle(resource, identity)
        case SecurityGroup():
            yield "group", group_handle(resource, identity)
        case LoadBalancer():
            yield "balancer", Handle(tenancy_of(identity.metadata), balancer_name(resource.name, resource.uid))
