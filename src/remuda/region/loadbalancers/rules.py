"""The rules of load balancers, as pure functions: what is stored of them, what they cost, how they read."""

from datetime import datetime
from ipaddress import IPv4Network

import msgspec
from msgspec.structs import replace

from remuda.access.principal import Principal
from remuda.http.responses import etag_view
from remuda.quota.ports import Amount, Charge, ProjectRef
from remuda.region.kinds.loadbalancers import (
    LOAD_BALANCER,
    BalancerListener,
    HealthCheck,
    LoadBalancer,
    LoadBalancerSpec,
    Pool,
    PoolMember,
)
from remuda.region.kinds.networks import NETWORK, Network
from remuda.region.loadbalancers.schema import (
    BalancerCreate,
    BalancerRead,
    BalancerSpecWire,
    BalancerStatusRead,
    BalancerUpdate,
    HealthCheckWire,
    ListenerWire,
    MemberWire,
    PoolWire,
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
from remuda.resources.tags import own_tags, replaced_tags

_IDLE_S = 60


def charge_of(balancer: str, operation: str, payer: ProjectRef, *, is_public: bool, turn: int = 0) -> Charge:
    """Return what a load balancer costs in a turn, which the operation that made it holds."""
    public = (Amount("publicips", 1),) if is_public else ()
    return Charge(
        payer=payer,
        operation=operation,
        kind=LOAD_BALANCER.qualified,
        id=balancer,
        amounts=(Amount("loadbalancers", 1), *public),
        fencing_token=turn,
    )


def new_balancer(
    balancer: str, wanted: BalancerCreate, network: Network, by: Principal, *, operation: str
) -> LoadBalancer:
    """Return a load balancer as it is stored."""
    check_tags(wanted.metadata.tags)
    home = network.metadata.labels
    where = {
        label: home[label] for label in (labels.ORGANIZATION, labels.PROJECT, regional.REGION, regional.IDENTITY)
    } | {regional.NETWORK: network.name, regional.API_VERSION: regional.API_V2}
    metadata = new_metadata(balancer, wanted.metadata, by, labels=where, finalizers=(CONTROLLER_FINALIZER,))
    return LoadBalancer(
        metadata=replace(metadata, owner_references=(NETWORK.owner(network),)),
        spec=LoadBalancerSpec(
            listeners=tuple(map(_stored_listener, wanted.spec.listeners)),
            requested_vip_address=wanted.spec.vip_address or "",
            public_ip=bool(wanted.spec.public_ip),
            operation=operation,
            tags=own_tags(stored_tags(wanted.metadata), by),
        ),
    )


def changed_balancer(balancer: LoadBalancer, wanted: BalancerUpdate, by: Principal, now: datetime) -> LoadBalancer:
    """Return a load balancer with everything replaced that a client may change."""
    check_tags(wanted.metadata.tags)
    spec = replace(
        balancer.spec,
        listeners=tuple(map(_stored_listener, wanted.spec.listeners)),
        public_ip=bool(wanted.spec.public_ip),
        tags=replaced_tags(balancer.spec.tags, stored_tags(wanted.metadata), by),
    )
    metadata = changed_metadata(balancer.metadata, wanted.metadata, by.subject, now)
    return replace(balancer, metadata=metadata, spec=spec)


def _stored_listener(wanted: ListenerWire) -> BalancerListener:
    idle = wanted.idle_timeout_seconds
    return BalancerListener(
        name=wanted.name,
        protocol=wanted.protocol,
        port=wanted.port,
        pool=_stored_pool(wanted.pool),
        allowed_cidrs=tuple(str(IPv4Network(prefix, strict=False)) for prefix in wanted.allowed_cidrs),
        idle_timeout_seconds=_IDLE_S if idle is None and wanted.protocol == "tcp" else idle,
    )


def _stored_pool(wanted: PoolWire) -> Pool:
    check = wanted.health_check
    return Pool(
        members=tuple(PoolMember(address=each.address, port=each.port) for each in wanted.members),
        proxy_protocol_v2=bool(wanted.proxy_protocol_v2),
        health_check=None if check is None else HealthCheck(**msgspec.structs.asdict(check)),
    )


def writable_balancer(balancer: LoadBalancer) -> BalancerUpdate:
    """Return what a client may change of a load balancer, as it is now."""
    spec = balancer.spec
    return BalancerUpdate(
        metadata=writable_metadata(balancer.metadata, spec.tags),
        spec=BalancerSpecWire(public_ip=spec.public_ip, listeners=tuple(map(_read_listener, spec.listeners))),
    )


def _read_listener(listener: BalancerListener) -> ListenerWire:
    pool, check = listener.pool, listener.pool.health_check
    return ListenerWire(
        name=listener.name,
        protocol=listener.protocol,
        port=listener.port,
        pool=PoolWire(
            members=tuple(MemberWire(address=each.address, port=each.port) for each in pool.members),
            proxy_protocol_v2=pool.proxy_protocol_v2,
            health_check=None if check is None else HealthCheckWire(**msgspec.structs.asdict(check)),
        ),
        allowed_cidrs=listener.allowed_cidrs,
        idle_timeout_seconds=listener.idle_timeout_seconds,
    )


def read_balancer(balancer: LoadBalancer) -> BalancerRead:
    """Return a load balancer as clients read it."""
    return BalancerRead(
        metadata=read_project_metadata(balancer.metadata, balancer.spec.tags, balancer.status.conditions),
        spec=writable_balancer(balancer).spec,
        status=BalancerStatusRead(
            region_id=regional.region_of(balancer),
            network_id=regional.network_of(balancer),
            vip_address=balancer.status.vip_address,
            public_ip=balancer.status.public_ip,
        ),
    )


BALANCER_VIEW = etag_view(read_balancer, writable_balancer)
"""A load balancer as JSON, with its tag."""
