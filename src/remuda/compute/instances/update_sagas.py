"""What takes more than one effect: to change an instance together with what it costs.

Its user data is in what the operation remembers, before and after; so its record is sealed.
"""

from dataclasses import dataclass

from remuda.compute.instances.paying import charge_for
from remuda.compute.instances.rules import changed_instance
from remuda.compute.instances.schema import InstanceUpdate
from remuda.compute.kinds.instances import INSTANCE, ComputeInstance, InstanceSpec
from remuda.operations.saga import AnyBound, Bound
from remuda.quota.ports import Ledger
from remuda.quota.sagas import Change, change_saga
from remuda.store.contract import Store


class ChangedInstance(Change[InstanceSpec, InstanceUpdate], frozen=True, kw_only=True):
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


UPDATE_INSTANCE = change_saga(
    "instance.update", INSTANCE, ChangedInstance, changed=_changed, charge=charge_for, holds_secret=True
)
"""Gives an instance another flavor, or a public address, or takes one away, with whatever else is changed with it."""


def bound(ports: UpdatePorts) -> list[AnyBound]:
    """Return the saga with what it reaches the world through."""
    return [Bound(UPDATE_INSTANCE, ports)]
