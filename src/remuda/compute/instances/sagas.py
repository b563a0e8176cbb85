"""Sagas that create an instance, and update it together with its quota.

Quota is reserved under the id of the operation, which is stored in the instance. So of two operations for the same name
the second one rolls back its own reservation only. The network may be deleted between the validation and the write;
it is read again when the instance is stored, so either the saga or the network consumer sees the deletion.

The input has user data, before and after, so the record of the operation is sealed.
"""

from dataclasses import dataclass
from typing import Protocol

import msgspec

from remuda.access.principal import Principal, Requester
from remuda.compute.instances import rules
from remuda.compute.instances.rules import changed_instance, charge_of
from remuda.compute.instances.schema import InstanceCreate, InstanceUpdate
from remuda.compute.kinds import INSTANCE, ComputeInstance, InstanceSpec
from remuda.compute.ports import is_deleting
from remuda.kernel.errors import AlreadyExists, Malformed
from remuda.operations.saga import AnySaga, Saga, Step, Work
from remuda.quota.lifecycle import reserve
from remuda.quota.ports import Charge, ProjectRef
from remuda.quota.sagas import QuotaPorts, QuotaUpdate, roll_back_create, update_saga
from remuda.region.networks.schema import NetworkRead
from remuda.resources.crud import find


class NameTaken(AlreadyExists):
    """Raised when the network has an instance of this name, or one is being created or deleted."""

    def __init__(self, name: str, *, is_settled: bool) -> None:
        super().__init__("instance", name)
        self.message = (
            f"The network already has an instance named {name!r}: choose another name."
            if is_settled
            else f"An instance named {name!r} is being created or deleted on this network: try again later."
        )


class NewInstance(msgspec.Struct, frozen=True, kw_only=True):
    """Input of the create saga."""

    instance: str
    requested: InstanceCreate
    region: str
    gpus: int
    requester: Requester
    """The caller and payer."""


class NetworkLookup(Protocol):
    """Finds networks."""

    async def find_network(self, network: str) -> NetworkRead | None:
        """Return a network, or None if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstancePorts(QuotaPorts):
    """Ports of the create saga."""

    region: NetworkLookup


def _charge(work: Work[NewInstance]) -> Charge:
    new, by = work.input, work.input.requester
    assert by.organization is not None, "the service completes the payer"
    assert by.project is not None, "the service completes the payer"
    networking, payer = new.requested.spec.networking, ProjectRef(by.organization, by.project)
    is_public = networking is not None and bool(networking.public_ip)
    return rules.build_charge(new.instance, work.id, payer, gpus=new.gpus, is_public=is_public)


async def _reserve(ports: InstancePorts, work: Work[NewInstance]) -> None:
    try:
        await reserve(ports.ledger, _charge(work), work.input.requester.named(work.actor_name))
    except AlreadyExists:  # quota is reserved for an instance of this name
        raise await _name_taken(ports, work.input) from None


async def _release(ports: InstancePorts, work: Work[NewInstance]) -> None:
    await ports.ledger.release(_charge(work))


async def _create(ports: InstancePorts, work: Work[NewInstance]) -> None:
    new = work.input
    desired = rules.new_instance(
        new.requested, new.region, new.requester.named(work.actor_name), operation=work.id, gpus=new.gpus
    )
    try:
        found = await ports.store.create(desired)
    except AlreadyExists:
        existing = await find(ports.store, ComputeInstance, desired.name)
        if existing is None or existing.spec.operation != work.id:
            raise await _name_taken(ports, new) from None
        found = existing
    work.subject.uid = found.uid


async def _name_taken(ports: InstancePorts, new: NewInstance) -> NameTaken:
    found = await find(ports.store, ComputeInstance, new.instance, include_deleting=False)
    return NameTaken(new.requested.metadata.name, is_settled=found is not None)


async def _roll_back(ports: InstancePorts, work: Work[NewInstance]) -> None:
    await roll_back_create(
        ports.store, ComputeInstance, work.input.instance, lambda found: found.spec.operation == work.id
    )


async def _check_network(ports: InstancePorts, work: Work[NewInstance]) -> None:
    network = await ports.region.find_network(work.input.requested.spec.network_id)
    if network is None or is_deleting(network):
        raise Malformed("network is being deleted")


async def _do_nothing(ports: InstancePorts, work: Work[NewInstance]) -> None:
    """Do nothing, because the step has no effect."""


CREATE_INSTANCE: Saga[InstancePorts, NewInstance] = Saga(
    name="instance.create",
    input_type=NewInstance,
    has_secret=True,  # its user data
    subject=lambda new: (INSTANCE.qualified, new.instance),
    steps=(
        Step(name="reserve-quota", do=_reserve, undo=_release),
        Step(name="create-instance", do=_create, undo=_roll_back),
        Step(name="recheck-network", do=_check_network, undo=_do_nothing),
    ),
)


class ChangedInstance(QuotaUpdate[InstanceSpec, InstanceUpdate], frozen=True, kw_only=True):
    """Input of an update that changes the quota of an instance."""

    gpus: int
    """The physical GPUs of the new flavor."""


def _changed(instance: ComputeInstance, change: ChangedInstance, by: Principal) -> ComputeInstance:
    return changed_instance(instance, change.requested, by, change.requested_at, gpus=change.gpus)


UPDATE_INSTANCE = update_saga(
    "instance.update", INSTANCE, ChangedInstance, changed=_changed, charge=charge_of, has_secret=True
)
"""Updates an instance whose quota changes, because of its flavor or public address."""

SAGAS: tuple[AnySaga, ...] = (CREATE_INSTANCE, UPDATE_INSTANCE)
