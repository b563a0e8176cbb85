"""What takes more than one effect: to make a load balancer, and to change what one costs."""

from dataclasses import dataclass

import msgspec

from remuda.access.principal import Requester
from remuda.kernel.errors import AlreadyExists
from remuda.operations.saga import AnyBound, Bound, Saga, Step, Work
from remuda.quota.lock import fencing_token
from remuda.quota.ports import Charge, ProjectRef
from remuda.quota.reservation import payer_of, reserve
from remuda.quota.sagas import QuotaUpdate, roll_back_create, update_saga
from remuda.region.kinds.loadbalancers import LOAD_BALANCER, LoadBalancer, LoadBalancerSpec
from remuda.region.kinds.networks import Network
from remuda.region.loadbalancers import rules
from remuda.region.loadbalancers.schema import BalancerCreate, BalancerUpdate
from remuda.region.ports import IdentityPort
from remuda.store.contract import Store


class NewBalancer(msgspec.Struct, frozen=True, kw_only=True):
    """What is needed to make a load balancer."""

    balancer: str
    """Its id."""
    wanted: BalancerCreate
    by: Requester
    """Who pays is told in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BalancerPorts:
    """What the steps reach the world through."""

    store: Store
    identity: IdentityPort


def _charge(work: Work[NewBalancer]) -> Charge:
    by = work.input.by
    assert by.organization is not None, "it is completed when it is asked for"
    assert by.project is not None, "it is completed when it is asked for"
    payer, is_public = ProjectRef(by.organization, by.project), bool(work.input.wanted.spec.public_ip)
    return rules.charge_of(work.input.balancer, work.id, payer, is_public=is_public)


async def _allocate(ports: BalancerPorts, work: Work[NewBalancer]) -> None:
    await reserve(ports.identity, _charge(work), work.input.by.principal)


async def _release(ports: BalancerPorts, work: Work[NewBalancer]) -> None:
    await ports.identity.release(_charge(work))


async def _make(ports: BalancerPorts, work: Work[NewBalancer]) -> None:
    new = work.input
    network = await ports.store.get(Network, new.wanted.spec.network_id)
    made = rules.new_balancer(new.balancer, new.wanted, network, new.by.principal, operation=work.id)
    try:
        await ports.store.create(made)
    except AlreadyExists:
        if (await ports.store.get(LoadBalancer, made.name)).spec.operation != work.id:
            raise


async def _unmake(ports: BalancerPorts, work: Work[NewBalancer]) -> None:
    await roll_back_create(
        ports.store, LoadBalancer, work.input.balancer, lambda balancer: balancer.spec.operation == work.id
    )


CREATE_BALANCER: Saga[BalancerPorts, NewBalancer] = Saga(
    name="loadbalancer.create",
    input_type=NewBalancer,
    subject=lambda new: (LOAD_BALANCER.qualified, new.balancer),
    steps=(
        Step(name="hold-quota", do=_allocate, undo=_release),
        Step(name="make-balancer", do=_make, undo=_unmake),
    ),
)
"""Makes a load balancer."""


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


def bound(ports: BalancerPorts) -> list[AnyBound]:
    """Return the sagas of this room with what they reach the world through."""
    return [Bound(CREATE_BALANCER, ports), Bound(UPDATE_BALANCER, ports)]
