"""The rules of networks, as pure functions: what may be asked, what is stored of it, how it reads."""

from datetime import datetime
from ipaddress import IPv4Network

from msgspec.structs import replace

from remuda.access.principal import Principal
from remuda.http.responses import etag_view
from remuda.kernel.ids import derived_id
from remuda.providers.contract.common import Handle, network_name, tenancy_name
from remuda.region.kinds.common import ProviderType
from remuda.region.kinds.networks import (
    IDENTITY,
    Identity,
    IdentitySpec,
    Network,
    NetworkRoute,
    NetworkSpec,
    PrefixReservations,
)
from remuda.region.networks import address_plan as plan
from remuda.region.networks.schema import (
    NetworkCreate,
    NetworkCreateSpec,
    NetworkRead,
    NetworkSpecWire,
    NetworkStatusRead,
    NetworkUpdate,
    ReservationsWire,
    RouteWire,
)
from remuda.resources import conventions as labels
from remuda.resources import conventions as regional
from remuda.resources.conventions import CONTROLLER_FINALIZER
from remuda.resources.metadata import (
    changed_metadata,
    check_tags,
    new_metadata,
    read_project_metadata,
    stored_tags,
    writable_metadata,
)
from remuda.resources.schema import MetadataWrite
from remuda.resources.tags import own_tags, replaced_tags
from remuda.store.objects import Metadata

_HIDDEN_NAME = "networkv2-service-principal"


def check_new(wanted: NetworkCreate, by: Principal) -> None:
    """Refuse what no network can be, and tags that are not the caller's to give."""
    spec = wanted.spec
    _plan(plan.read_network_prefix(spec.prefix), _stored_reservations(spec.reservations))
    _check_spec(spec)
    check_tags(wanted.metadata.tags)
    own_tags(stored_tags(wanted.metadata), by)


def check_update(wanted: NetworkSpecWire) -> None:
    """Refuse what a network cannot become."""
    _check_spec(wanted)


def _check_spec(wanted: NetworkSpecWire) -> None:
    for address in wanted.dns_nameservers:
        plan.read_nameserver(address)
    for route in wanted.routes:
        plan.read_route_prefix(route.prefix)
        plan.read_nexthop(route.nexthop)


def identity_id(operation: str) -> str:
    """Return the id of the hidden identity that an operation makes for its network."""
    return derived_id(operation, "identity")


def new_identity(operation: str, wanted: NetworkCreateSpec, provider: ProviderType, by: Principal) -> Identity:
    """Return the hidden identity of a new network, which is the root of everything on it."""
    metadata = new_metadata(
        identity_id(operation),
        MetadataWrite(name=_HIDDEN_NAME),
        by,
        labels=_where(wanted),
        finalizers=(CONTROLLER_FINALIZER,),
    )
    return Identity(metadata=metadata, spec=IdentitySpec(provider=provider, operation=operation))


def new_network(network: str, wanted: NetworkCreate, identity: Identity, by: Principal, *, operation: str) -> Network:
    """Return a network as it is stored; what is wanted was checked before."""
    spec = wanted.spec
    where = _where(spec) | {regional.IDENTITY: identity.name}
    metadata = new_metadata(network, wanted.metadata, by, labels=where, finalizers=(CONTROLLER_FINALIZER,))
    return Network(
        metadata=replace(metadata, owner_references=(IDENTITY.owner(identity),)),
        spec=NetworkSpec(
            prefix=str(plan.read_network_prefix(spec.prefix)),
            dns_nameservers=spec.dns_nameservers,
            routes=_stored_routes(spec),
            reservations=_stored_reservations(spec.reservations),
            operation=operation,
            tags=stored_tags(wanted.metadata),
        ),
    )


def changed_network(network: Network, wanted: NetworkUpdate, by: Principal, now: datetime) -> Network:
    """Return a network with everything replaced that a client may change."""
    check_tags(wanted.metadata.tags)
    spec = replace(
        network.spec,
        dns_nameservers=wanted.spec.dns_nameservers,
        routes=_stored_routes(wanted.spec),
        tags=replaced_tags(network.spec.tags, stored_tags(wanted.metadata), by),
    )
    return replace(network, metadata=changed_metadata(network.metadata, wanted.metadata, by.subject, now), spec=spec)


def plan_of(network: Network) -> plan.Plan:
    """Return how a network's addresses are divided."""
    return _plan(IPv4Network(network.spec.prefix), network.spec.reservations)


def tenancy_of(identity: Metadata) -> str:
    """Return what an identity's tenancy is called at its provider."""
    return tenancy_name(identity.name, identity.uid)


def to_cloud(network: Network, identity: Identity) -> Handle:
    """Return what a network is called at its provider."""
    return Handle(tenancy_of(identity.metadata), network_name(network.name, network.uid))


def _plan(prefix: IPv4Network, reservations: PrefixReservations | None) -> plan.Plan:
    if reservations is None:
        return plan.plan_of(prefix)
    wanted = plan.Reservations(reservations.prefix_length, reservations.provider_reserved_prefix_length)
    return plan.plan_of(prefix, wanted)


def _where(wanted: NetworkCreateSpec) -> dict[str, str]:
    return {
        labels.ORGANIZATION: wanted.organization_id,
        labels.PROJECT: wanted.project_id,
        regional.REGION: wanted.region_id,
        regional.API_VERSION: regional.API_V2,
    }


def _stored_routes(wanted: NetworkSpecWire) -> tuple[NetworkRoute, ...]:
    return tuple(
        NetworkRoute(prefix=str(plan.read_route_prefix(route.prefix)), next_hop=route.nexthop)
        for route in wanted.routes
    )


def _stored_reservations(wanted: ReservationsWire | None) -> PrefixReservations | None:
    if wanted is None:
        return None
    return PrefixReservations(
        prefix_length=wanted.prefix_length,
        provider_reserved_prefix_length=wanted.provider_reserved_prefix_length,
    )


def writable_network(network: Network) -> NetworkUpdate:
    """Return what a client may change of a network, as it is now."""
    spec = network.spec
    routes = tuple(RouteWire(prefix=route.prefix, nexthop=route.next_hop) for route in spec.routes)
    return NetworkUpdate(
        metadata=writable_metadata(network.metadata, spec.tags),
        spec=NetworkSpecWire(dns_nameservers=spec.dns_nameservers, routes=routes),
    )


def read_network(network: Network) -> NetworkRead:
    """Return a network as clients read it."""
    effective = plan_of(network).reservations
    return NetworkRead(
        metadata=read_project_metadata(network.metadata, network.spec.tags, network.status.conditions),
        spec=writable_network(network).spec,
        status=NetworkStatusRead(
            region_id=regional.region_of(network),
            prefix=network.spec.prefix,
            reservations=ReservationsWire(
                prefix_length=effective.length, provider_reserved_prefix_length=effective.provider_length
            ),
        ),
    )


NETWORK_VIEW = etag_view(read_network, writable_network)
"""A network as JSON, with its tag."""
