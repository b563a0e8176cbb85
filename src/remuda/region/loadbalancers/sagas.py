"""Sagas that create a load balancer, and that update one together with its quota."""

import msgspec

from remuda.access.principal import Principal, Requester
from remuda.operations.saga import Work
from remuda.quota.ports import Charge, ProjectRef
from remuda.quota.sagas import QuotaPorts, QuotaUpdate, create_saga, update_saga
from remuda.region.kinds.loadbalancers import LOAD_BALANCER, LoadBalancer, LoadBalancerSpec
from remuda.region.kinds.networks import Network
from remuda.region.loadbalancers import rules
from remuda.region.loadbalancers.schema import BalancerCreate, BalancerUpdate


class NewBalancer(msgspec.Struct, frozen=True, kw_only=True):
    """The input: a load balancer to create."""

    balancer: str
    requested: BalancerCreate
    requester: Requester
    """The requester, with the payer."""


def _charge(work: Work[NewBalancer], payer: ProjectRef) -> Charge:
    is_public = bool(work.input.requested.spec.public_ip)
    return rules.build_charge(work.input.balancer, work.id, payer, is_public=is_public)


async def _build(ports: QuotaPorts, work: Work[NewBalancer]) -> LoadBalancer:
    new = work.input
    network = await ports.store.get(Network, new.requested.spec.network_id)
    return rules.new_balancer(
        new.balancer, new.requested, network, new.requester.named(work.actor_name), operation=work.id
    )


CREATE_BALANCER = create_saga(
    "loadbalancer.create",
    LOAD_BALANCER,
    NewBalancer,
    id_of=lambda new: new.balancer,
    create_step="create-balancer",
    build=_build,
    charge=_charge,
)


class ChangedBalancer(QuotaUpdate[LoadBalancerSpec, BalancerUpdate], frozen=True, kw_only=True):
    """The input: an update that adds or removes the public address of a load balancer."""


def _changed(balancer: LoadBalancer, change: ChangedBalancer, by: Principal) -> LoadBalancer:
    return rules.changed_balancer(balancer, change.requested, by, change.requested_at)


UPDATE_BALANCER = update_saga(
    "loadbalancer.update", LOAD_BALANCER, ChangedBalancer, changed=_changed, charge=rules.charge_of
)
"""Updates a load balancer whose public address is added or removed."""

SAGAS = (CREATE_BALANCER, UPDATE_BALANCER)
