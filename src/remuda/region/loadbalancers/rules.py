"""Rules of load balancers: stored objects, quota and responses."""

from datetime import datetime
from ipaddress import IPv4Network

import msgspec
from msgspec.structs import replace

from remuda.access.principal import Principal
from remuda.http.responses import etag_view
from remuda.quota.lifecycle import payer_of
from remuda.quota.lock import fencing_token
from remuda.quota.ports import Charge, ProjectRef, new_charge
from remuda.region.kinds.loadbalancers import (
    LOAD_BALANCER,
    BalancerListener,
    HealthCheck,
    LoadBalancer,
    LoadBalancerSpec,
    Pool,
    PoolMember,
)
from remuda.region.kinds.networks import Network
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
from remuda.region.networks.rules import child_metadata
from remuda.resources.conventions import network_of, region_of
from remuda.resources.metadata import changed_metadata, new_tags, read_project_metadata, updated_tags, writable_metadata

_IDLE_S = 60


def build_charge(balancer: str, operation: str, payer: ProjectRef, *, is_public: bool, token: int = 0) -> Charge:
    """Return the quota of a load balancer, allocated for the operation that created it."""
    amounts = {"loadbalancers": 1, "publicips": int(is_public)}
    return new_charge(LOAD_BALANCER, balancer, operation, payer, amounts, fencing_token=token)


def charge_of(balancer: LoadBalancer) -> Charge:
    spec, payer, token = balancer.spec, payer_of(balancer), fencing_token(balancer)
    return build_charge(balancer.name, spec.operation, payer, is_public=spec.public_ip, token=token)


def new_balancer(
    balancer: str, requested: BalancerCreate, network: Network, by: Principal, *, operation: str
) -> LoadBalancer:
    return LoadBalancer(
        metadata=child_metadata(balancer, requested.metadata, network, by),
        spec=LoadBalancerSpec(
            listeners=tuple(map(_stored_listener, requested.spec.listeners)),
            requested_vip_address=requested.spec.vip_address or "",
            public_ip=bool(requested.spec.public_ip),
            operation=operation,
            tags=new_tags(requested.metadata, by),
        ),
    )


def changed_balancer(balancer: LoadBalancer, requested: BalancerUpdate, by: Principal, now: datetime) -> LoadBalancer:
    spec = replace(
        balancer.spec,
        listeners=tuple(map(_stored_listener, requested.spec.listeners)),
        public_ip=bool(requested.spec.public_ip),
        tags=updated_tags(balancer.spec.tags, requested.metadata, by),
    )
    metadata = changed_metadata(balancer.metadata, requested.metadata, by, now)
    return replace(balancer, metadata=metadata, spec=spec)


def _stored_listener(requested: ListenerWire) -> BalancerListener:
    idle = requested.idle_timeout_seconds
    return BalancerListener(
        name=requested.name,
        protocol=requested.protocol,
        port=requested.port,
        pool=_stored_pool(requested.pool),
        allowed_cidrs=tuple(str(IPv4Network(prefix, strict=False)) for prefix in requested.allowed_cidrs),
        idle_timeout_seconds=_IDLE_S if idle is None and requested.protocol == "tcp" else idle,
    )


def _stored_pool(requested: PoolWire) -> Pool:
    check = requested.health_check
    return Pool(
        members=tuple(PoolMember(address=each.address, port=each.port) for each in requested.members),
        proxy_protocol_v2=bool(requested.proxy_protocol_v2),
        health_check=None if check is None else HealthCheck(**msgspec.structs.asdict(check)),
    )


def writable_balancer(balancer: LoadBalancer) -> BalancerUpdate:
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
    return BalancerRead(
        metadata=read_project_metadata(balancer.metadata, balancer.spec.tags, balancer.status.conditions),
        spec=writable_balancer(balancer).spec,
        status=BalancerStatusRead(
            region_id=region_of(balancer),
            network_id=network_of(balancer),
            vip_address=balancer.status.vip_address,
            public_ip=balancer.status.public_ip,
        ),
    )


BALANCER_VIEW = etag_view(read_balancer, writable_balancer)
