"""The generic proofs on a change that costs something else: at every failure it is done, or was never begun."""

from datetime import UTC, datetime

import pytest

from remuda.charging.in_hand import before_of
from remuda.compute.instances.rules import changed_instance, new_instance
from remuda.compute.instances.sagas import charge_for
from remuda.compute.instances.update_sagas import UPDATE_INSTANCE, ChangedInstance, UpdatePorts, bound
from remuda.compute.instances.wire import (
    InstanceCreate,
    InstanceCreateSpec,
    InstanceSpecWire,
    InstanceUpdate,
    NetworkingWire,
    ProtectionWire,
)
from remuda.compute.kinds import KINDS
from remuda.compute.kinds.instances import ComputeInstance, InstanceSpec
from remuda.operations.inputs import read_input, stored_input
from remuda.operations.kinds import OPERATION, OperationSpec
from remuda.operations.registry import Sagas
from remuda.resources.askers import asker_of
from remuda.resources.wire import MetadataWrite
from remuda.store.contract import Store
from remuda.store.kinds import Registry
from tests.compute.test_instances_sagas import ANN, FLAVOR, HOME, IMAGE, LIMITS, NETWORK, ORG, PAYER, PROJECT, REGION
from tests.operations.proofs import Case, Proof, assert_all_proven, cases
from tests.region.identity_port import MemoryIdentity
from tests.sim.runner import World

NOW = datetime(2030, 1, 1, tzinfo=UTC)
MAKER = "dddddddd-0000-4000-8000-000000000004"
USER_DATA = "I2Nsb3VkLWNvbmZpZwpwYXNzd29yZDogaHVudGVyMgo="
OTHER_DATA = "I2Nsb3VkLWNvbmZpZwpwYXNzd29yZDogaHVudGVyMwo="
LARGER = "22222222-2222-2222-2222-222222222222"


def _judged(*, is_public: bool) -> ComputeInstance:
    """Return the instance as it stands to begin with."""
    spec = InstanceCreateSpec(
        organization_id=ORG,
        project_id=PROJECT,
        network_id=NETWORK,
        flavor_id=FLAVOR,
        image_id=IMAGE,
        networking=NetworkingWire(public_ip=is_public),
        user_data=USER_DATA,
    )
    wanted = InstanceCreate(metadata=MetadataWrite(name="web"), spec=spec)
    return new_instance(wanted, REGION, ANN, operation=MAKER, gpus=1)


def _changed(flavor: str, gpus: int, *, is_public: bool, was_public: bool) -> ChangedInstance:
    wanted = InstanceUpdate(
        metadata=MetadataWrite(name="web", description="changed"),
        spec=InstanceSpecWire(
            flavor_id=flavor,
            image_id=IMAGE,
            networking=NetworkingWire(public_ip=is_public),
            user_data=OTHER_DATA,
            protection=ProtectionWire(plan=True),
        ),
    )
    judged = _judged(is_public=was_public)
    return ChangedInstance(
        id=judged.name, before=before_of(judged), wanted=wanted, by=asker_of(ANN), now=NOW, gpus=gpus
    )


class Settled:
    """An instance that is paid for."""

    def __init__(self, world: World, *, is_public: bool = False) -> None:
        self.world, self._is_public = world, is_public
        self.registry: Registry = Registry([*KINDS, OPERATION])
        self.identity = MemoryIdentity({HOME, PAYER}, limits=LIMITS)

    async def prepare(self, store: Store) -> None:
        """Make it, and hold what it costs."""
        made = await store.create(_judged(is_public=self._is_public))
        await self.identity.allocate(charge_for(made))

    def ports(self, store: Store) -> UpdatePorts:
        """Return what the steps work on."""
        return UpdatePorts(store=store, identity=self.identity)

    async def observe(self, store: Store) -> object:
        """Return what there is, here and at identity; in whose hand an instance was tells two equal runs apart."""
        return (
            [
                (
                    each.name,
                    each.spec,
                    each.metadata.labels,
                    {key: value for key, value in each.metadata.annotations.items() if "in-hand" not in key},
                    each.is_marked,
                )
                for each in (await store.list(ComputeInstance)).items
            ],
            self.identity.everything(),
        )


PROOFS = [
    Proof(
        saga=UPDATE_INSTANCE,
        make_world=Settled,
        input=_changed(LARGER, 4, is_public=True, was_public=False),
        rival=_changed(FLAVOR, 1, is_public=True, was_public=False),
    ),
    Proof(
        saga=UPDATE_INSTANCE,
        make_world=lambda world: Settled(world, is_public=True),
        input=_changed(LARGER, 4, is_public=False, was_public=True),
    ),
]


@pytest.mark.parametrize("case", [case for proof in PROOFS for case in cases(proof)], ids=str)
def test_c11_a_change_ends_as_done_or_as_never_begun(case: Case) -> None:
    case.run()


def test_every_saga_is_proven() -> None:
    ports = UpdatePorts(store=None, identity=MemoryIdentity())  # type: ignore[arg-type]  # nothing is asked of it
    assert_all_proven(Sagas([each.saga for each in bound(ports)]), PROOFS)


def test_what_an_operation_remembers_is_sealed_and_can_be_read_again() -> None:
    change = _changed(LARGER, 4, is_public=True, was_public=False)
    told, sealed = stored_input(UPDATE_INSTANCE, change)
    assert told == ""
    spec = OperationSpec(
        saga="", subject_kind="", subject="", actor="", input=told, sealed_input=sealed, deadline=NOW, process=""
    )
    again = read_input(UPDATE_INSTANCE, spec)
    assert again == change
    assert isinstance(again.before.spec, InstanceSpec)
    found = _judged(is_public=False)
    assert changed_instance(found, again.wanted, ANN, NOW, gpus=4).spec.user_data is not None
