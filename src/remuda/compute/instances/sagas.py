"""What takes more than one effect: to make an instance.

What it costs is held under the id of the operation, and the instance says which operation made it. So of two who want
the same name the later one takes back what it held itself, and nothing else.

Its network may have been marked between the judgement and the write. It is looked at once more when the instance is
there: either that is seen here, or whoever ends the instances of a marked network has seen the instance.

What takes more than one effect: to change an instance together with what it costs.

Its user data is in what the operation remembers, before and after; so its record is sealed.
"""

from dataclasses import dataclass
from typing import Protocol

import msgspec

from remuda.access.principal import Requester
from remuda.compute.instances import rules
from remuda.compute.instances.rules import changed_instance, charge_for
from remuda.compute.instances.schema import InstanceCreate, InstanceUpdate
from remuda.compute.kinds import INSTANCE, ComputeInstance, InstanceSpec
from remuda.compute.ports import is_deleting
from remuda.kernel.errors import AlreadyExists, Malformed
from remuda.operations.saga import AnyBoundSaga, BoundSaga, Saga, Step, Work
from remuda.quota.ports import Charge, Ledger, ProjectRef
from remuda.quota.reservation import reserve
from remuda.quota.sagas import QuotaUpdate, roll_back_create, update_saga
from remuda.region.networks.schema import NetworkRead
from remuda.resources.crud import find
from remuda.store.contract import Store


class NameTaken(AlreadyExists):
    """Raised when the network has an instance of this name, or is about to, or had one that is not gone yet."""

    def __init__(self, name: str, *, is_settled: bool) -> None:
        super().__init__("instance", name)
        self.message = (
            f"The network has an instance named {name!r} already: choose another name."
            if is_settled
            else f"An instance named {name!r} is being made or deleted on this network: try again a little later."
        )


class NewInstance(msgspec.Struct, frozen=True, kw_only=True):
    """What is needed to make an instance."""

    instance: str
    """Its id."""
    wanted: InstanceCreate
    region: str
    gpus: int
    by: Requester
    """Who pays is told in it."""


class NetworkLookup(Protocol):
    """Knows networks."""

    async def find_network(self, network: str) -> NetworkRead | None:
        """Return a network, or None if there is none."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class InstancePorts:
    """What the steps reach the world through."""

    store: Store
    identity: Ledger
    region: NetworkLookup


def _charge(work: Work[NewInstance]) -> Charge:
    new, by = work.input, work.input.by
    assert by.organization is not None, "it is completed when it is asked for"
    assert by.project is not None, "it is completed when it is asked for"
    networking, payer = new.wanted.spec.networking, ProjectRef(by.organization, by.project)
    is_public = networking is not None and bool(networking.public_ip)
    return rules.charge_of(new.instance, work.id, payer, gpus=new.gpus, is_public=is_public)


async def _allocate(ports: InstancePorts, work: Work[NewInstance]) -> None:
    try:
        await reserve(ports.identity, _charge(work), work.input.by.principal)
    except AlreadyExists:  # something is held for an instance of this name
        raise await _taken(ports, work.input) from None


async def _release(ports: InstancePorts, work: Work[NewInstance]) -> None:
    await ports.identity.release(_charge(work))


async def _make(ports: InstancePorts, work: Work[NewInstance]) -> None:
    new = work.input
    made = rules.new_instance(new.wanted, new.region, new.by.principal, operation=work.id, gpus=new.gpus)
    try:
        found = await ports.store.create(made)
    except AlreadyExists:
        there = await find(ports.store, ComputeInstance, made.name)
        if there is None or there.spec.operation != work.id:
            raise await _taken(ports, new) from None
        found = there
    work.about.uid = found.uid


async def _taken(ports: InstancePorts, new: NewInstance) -> NameTaken:
    found = await find(ports.store, ComputeInstance, new.instance, include_deleting=False)
    return NameTaken(new.wanted.metadata.name, is_settled=found is not None)


async def _unmake(ports: InstancePorts, work: Work[NewInstance]) -> None:
    await roll_back_create(
        ports.store, ComputeInstance, work.input.instance, lambda found: found.spec.operation == work.id
    )


async def _look_again(ports: InstancePorts, work: Work[NewInstance]) -> None:
    network = await ports.region.find_network(work.input.wanted.spec.network_id)
    if network is None or is_deleting(network):
        raise Malformed("network is being deleted")


async def _leave(ports: InstancePorts, work: Work[NewInstance]) -> None:
    """Do nothing: nothing was done."""


CREATE_INSTANCE: Saga[InstancePorts, NewInstance] = Saga(
    name="instance.create",
    input_type=NewInstance,
    has_secret=True,  # its user data
    subject=lambda new: (INSTANCE.qualified, new.instance),
    steps=(
        Step(name="hold-quota", do=_allocate, undo=_release),
        Step(name="make-instance", do=_make, undo=_unmake),
        Step(name="look-at-network", do=_look_again, undo=_leave),
    ),
)
"""Makes an instance."""


def bound(ports: InstancePorts) -> list[AnyBoundSaga]:
    """Return the sagas of this room with what they reach the world through."""
    return [BoundSaga(CREATE_INSTANCE, ports)]


class ChangedInstance(QuotaUpdate[InstanceSpec, InstanceUpdate], frozen=True, kw_only=True):
    """What is needed to change an instance that is to cost something else."""

    gpus: int
    """How many physical ones the wanted flavor has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdatePorts:
    """What the steps reach the world through."""

    store: Store
    identity: Ledger


def _changed(instance: ComputeInstance, change: ChangedInstance) -> ComputeInstance:
    return changed_instance(instance, change.wanted, change.by.principal, change.now, gpus=change.gpus)


UPDATE_INSTANCE = update_saga(
    "instance.update", INSTANCE, ChangedInstance, changed=_changed, charge=charge_for, has_secret=True
)
"""Gives an instance another flavor, or a public address, or takes one away, with whatever else is changed with it."""


def bound_update(ports: UpdatePorts) -> list[AnyBoundSaga]:
    """Return the saga with what it reaches the world through."""
    return [BoundSaga(UPDATE_INSTANCE, ports)]
