"""Rules of networks: validation, stored objects and responses."""

from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from ipaddress import IPv4Network

from msgspec.structs import replace

from remuda.access.principal import Principal
from remuda.http.responses import etag_view
from remuda.kernel.ids import derived_id
from remuda.providers.contract.common import Handle, ProviderType, network_name, tenancy_name
from remuda.quota.lifecycle import payer_of
from remuda.quota.ports import Charge, ProjectRef, new_charge
from remuda.region.kinds.networks import (
    IDENTITY,
    NETWORK,
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
from remuda.resources.conventions import (
    API_V2,
    API_VERSION,
    CONTROLLER_FINALIZER,
    ORGANIZATION,
    PROJECT,
    REGION,
    region_of,
)
from remuda.resources.conventions import IDENTITY as IDENTITY_LABEL
from remuda.resources.conventions import NETWORK as NETWORK_LABEL
from remuda.resources.metadata import (
    changed_metadata,
    new_metadata,
    new_tags,
    read_project_metadata,
    stored_tags,
    updated_tags,
    writable_metadata,
)
from remuda.resources.schema import MetadataWrite
from remuda.store.objects import Metadata

_HIDDEN_NAME = "networkv2-service-principal"


def check_new(requested: NetworkCreate, by: Principal) -> None:
    """Raise an error for a network that is not possible, or tags that the caller may not set."""
    spec = requested.spec
    _plan(plan.parse_network_prefix(spec.prefix), _stored_reservations(spec.reservations))
    check_spec(spec)
    new_tags(requested.metadata, by)


def check_spec(requested: NetworkSpecWire) -> None:
    for address in requested.dns_nameservers:
        plan.parse_nameserver(address)
    for route in requested.routes:
        plan.parse_route_prefix(route.prefix)
        plan.parse_next_hop(route.nexthop)


def identity_id(operation: str) -> str:
    """Return the id of the hidden identity that an operation creates for its network."""
    return derived_id(operation, "identity")


def reference_of(identity: str) -> str:
    return f"{IDENTITY.qualified}/{identity}"


def build_charge(network: str, operation: str, payer: ProjectRef) -> Charge:
    return new_charge(NETWORK, network, operation, payer, {"networks": 1})


def charge_of(network: Network) -> Charge:
    return build_charge(network.name, network.spec.operation, payer_of(network))


def new_identity(operation: str, requested: NetworkCreateSpec, provider: ProviderType, by: Principal) -> Identity:
    """Return the hidden identity of a new network, which owns everything on it."""
    metadata = new_metadata(
        identity_id(operation),
        MetadataWrite(name=_HIDDEN_NAME),
        by,
        labels=_scope_labels(requested),
        finalizers=(CONTROLLER_FINALIZER,),
    )
    return Identity(metadata=metadata, spec=IdentitySpec(provider=provider, operation=operation))


def new_network(
    network: str, requested: NetworkCreate, identity: Identity, by: Principal, *, operation: str
) -> Network:
    spec = requested.spec
    scope = _scope_labels(spec) | {IDENTITY_LABEL: identity.name}
    metadata = new_metadata(network, requested.metadata, by, labels=scope, finalizers=(CONTROLLER_FINALIZER,))
    return Network(
        metadata=replace(metadata, owner_references=(IDENTITY.owner(identity),)),
        spec=NetworkSpec(
            prefix=str(plan.parse_network_prefix(spec.prefix)),
            dns_nameservers=spec.dns_nameservers,
            routes=_stored_routes(spec),
            reservations=_stored_reservations(spec.reservations),
            operation=operation,
            tags=stored_tags(requested.metadata),
        ),
    )


def child_metadata(
    name: str, requested: MetadataWrite, network: Network, by: Principal, *, tag_labels: Mapping[str, str] | None = None
) -> Metadata:
    """Return the metadata of a new object on a network, which is in the network's scope and deleted with it."""
    own, inherited = network.metadata.labels, (ORGANIZATION, PROJECT, REGION, IDENTITY_LABEL)
    scope = {label: own[label] for label in inherited}
    scope |= {NETWORK_LABEL: network.name, API_VERSION: API_V2}
    metadata = new_metadata(
        name, requested, by, labels={**(tag_labels or {}), **scope}, finalizers=(CONTROLLER_FINALIZER,)
    )
    return replace(metadata, owner_references=(NETWORK.owner(network),))


def changed_network(network: Network, requested: NetworkUpdate, by: Principal, now: datetime) -> Network:
    spec = replace(
        network.spec,
        dns_nameservers=requested.spec.dns_nameservers,
        routes=_stored_routes(requested.spec),
        tags=updated_tags(network.spec.tags, requested.metadata, by),
    )
    return replace(network, metadata=changed_metadata(network.metadata, requested.metadata, by, now), spec=spec)


def plan_of(network: Network) -> plan.AddressPlan:
    return _plan(network.spec.prefix, network.spec.reservations)


def tenancy_of(identity: Metadata) -> str:
    return tenancy_name(identity.name, identity.uid)


def network_handle(network: Network, identity: Identity) -> Handle:
    return Handle(tenancy_of(identity.metadata), network_name(network.name, network.uid))


@lru_cache(maxsize=1024)
def _plan(prefix: str, reservations: PrefixReservations | None) -> plan.AddressPlan:
    if reservations is None:
        return plan.address_plan(IPv4Network(prefix))
    requested = plan.ReservedLengths(reservations.prefix_length, reservations.provider_reserved_prefix_length)
    return plan.address_plan(IPv4Network(prefix), requested)


def _scope_labels(requested: NetworkCreateSpec) -> dict[str, str]:
    return {
        ORGANIZATION: requested.organization_id,
        PROJECT: requested.project_id,
        REGION: requested.region_id,
        API_VERSION: API_V2,
    }


def _stored_routes(requested: NetworkSpecWire) -> tuple[NetworkRoute, ...]:
    return tuple(
        NetworkRoute(prefix=str(plan.parse_route_prefix(route.prefix)), next_hop=route.nexthop)
        for route in requested.routes
    )


def _stored_reservations(requested: ReservationsWire | None) -> PrefixReservations | None:
    if requested is None:
        return None
    return PrefixReservations(
        prefix_length=requested.prefix_length, provider_reserved_prefix_length=requested.provider_reserved_prefix_length
    )


def writable_network(network: Network) -> NetworkUpdate:
    spec = network.spec
    routes = tuple(RouteWire(prefix=route.prefix, nexthop=route.next_hop) for route in spec.routes)
    return NetworkUpdate(
        metadata=writable_metadata(network.metadata, spec.tags),
        spec=NetworkSpecWire(dns_nameservers=spec.dns_nameservers, routes=routes),
    )


def read_network(network: Network) -> NetworkRead:
    effective = plan_of(network).reservations
    return NetworkRead(
        metadata=read_project_metadata(network.metadata, network.spec.tags, network.status.conditions),
        spec=writable_network(network).spec,
        status=NetworkStatusRead(
            region_id=region_of(network),
            prefix=network.spec.prefix,
            reservations=ReservationsWire(
                prefix_length=effective.length, provider_reserved_prefix_length=effective.provider_length
            ),
        ),
    )


NETWORK_VIEW = etag_view(read_network, writable_network)
