"""What takes more than one effect: to make a load balancer, and to change what one costs."""

import msgspec

from remuda.access.principal import Requester
from remuda.operations.saga import Work
from remuda.quota.lock import fencing_token
from remuda.quota.ports import Charge, ProjectRef
from remuda.quota.reservation import payer_of
from remuda.quota.sagas import CreatePorts, QuotaUpdate, create_saga, update_saga
from remuda.region.kinds.loadbalancers import LOAD_BALANCER, LoadBalancer, LoadBalancerSpec
from remuda.region.kinds.networks import Network
from remuda.region.loadbalancers import rules
from remuda.region.loadbalancers.schema import BalancerCreate, BalancerUpdate


class NewBalancer(msgspec.Struct, frozen=True, kw_only=True):
    """What is needed to make a load balancer."""

    balancer: str
    """Its id."""
    wanted: BalancerCreate
    by: Requester
    """Who pays is told in it."""


def _charge(work: Work[NewBalancer], payer: ProjectRef) -> Charge:
    is_public = bool(work.input.wanted.spec.public_ip)
    return rules.charge_of(work.input.balancer, work.id, payer, is_public=is_public)


async def _build(ports: CreatePorts, work: Work[NewBalancer]) -> LoadBalancer:
    new = work.input
    network = await ports.store.get(Network, new.wanted.spec.network_id)
    return rules.new_balancer(new.balancer, new.wanted, network, new.by.principal, operation=work.id)


CREATE_BALANCER = create_saga(
    "loadbalancer.create",
    LOAD_BALANCER,
    NewBalancer,
    id_of=lambda new: new.balancer,
    create_step="make-balancer",
    build=_build,
    charge=_charge,
)
"""Creates a load balancer."""


class ChangedBalancer(QuotaUpdate[LoadBalancerSpec, BalancerUpdate], frozen=True, kw_only=True):
    """What is needed to change a load balancer that is to have a public address, or is to have none any more."""


def charge_for(balancer: LoadBalancer) -> Charge:
    """Return what a stored load balancer costs."""
    is_public = balancer.spec.public_ip
    payer, turn = payer_of(balancer), fencing_token(balancer)
    return rules.charge_of(balancer.name, balancer.spec.operation, payer, is_public=is_public, turn=turn)


def _changed(balancer: LoadBalancer, change: ChangedBalancer) -> LoadBalancer:
    return rules.changed_balancer(balancer, change.wanted, change.by.principal, change.now)


UPDATE_BALANCER = update_saga(
    "loadbalancer.update", LOAD_BALANCER, ChangedBalancer, changed=_changed, charge=charge_for
)
"""Gives a load balancer a public address, or takes it away, with whatever else is changed by the same request."""

SAGAS = (CREATE_BALANCER, UPDATE_BALANCER)
