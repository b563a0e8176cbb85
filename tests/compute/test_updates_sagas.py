"""The generic proofs on a change that costs something else: at every failure it is done, or was never begun."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from remuda.access.principal import requester_of
from remuda.compute.instances.rules import changed_instance, charge_of, new_instance
from remuda.compute.instances.sagas import UPDATE_INSTANCE, ChangedInstance
from remuda.compute.instances.schema import (
    InstanceCreate,
    InstanceCreateSpec,
    InstanceNetworkingWire,
    InstanceSpecWire,
    InstanceUpdate,
    ProtectionWire,
)
from remuda.compute.kinds import KINDS, ComputeInstance, InstanceSpec
from remuda.kernel.errors import Unavailable
from remuda.operations.kinds import OPERATION, OperationSpec
from remuda.operations.saga import Sagas, Work, read_input, stored_input
from remuda.quota.lock import previous_state
from remuda.quota.ports import Charge
from remuda.quota.sagas import QuotaPorts
from remuda.resources.schema import MetadataWrite
from remuda.store.contract import Store
from remuda.store.kinds import Registry
from tests.kit.compute.sagas import ANN, FLAVOR, HOME, IMAGE, LIMITS, NETWORK, ORG, PAYER, PROJECT, REGION
from tests.kit.environment import options
from tests.kit.proofs.saga_environment import FIRST, SagaEnvironment, saga_environment
from tests.kit.proofs.sagas import Case, Proof, assert_all_proven, cases
from tests.kit.region.identity_port import MemoryIdentity, said_of
from tests.kit.simulation.runner import World

NOW = datetime(2030, 1, 1, tzinfo=UTC)
MAKER = "dddddddd-0000-4000-8000-000000000004"
USER_DATA = "I2Nsb3VkLWNvbmZpZwpwYXNzd29yZDogaHVudGVyMgo="
OTHER_DATA = "I2Nsb3VkLWNvbmZpZwpwYXNzd29yZDogaHVudGVyMwo="
LARGER = "22222222-2222-2222-2222-222222222222"


def _validated(*, is_public: bool) -> ComputeInstance:
    """Return the instance as it stands to begin with."""
    spec = InstanceCreateSpec(
        organization_id=ORG,
        project_id=PROJECT,
        network_id=NETWORK,
        flavor_id=FLAVOR,
        image_id=IMAGE,
        networking=InstanceNetworkingWire(public_ip=is_public),
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
            networking=InstanceNetworkingWire(public_ip=is_public),
            user_data=OTHER_DATA,
            protection=ProtectionWire(plan=True),
        ),
    )
    validated = _validated(is_public=was_public)
    return ChangedInstance(
        id=validated.name,
        previous=previous_state(validated),
        requested=wanted,
        requester=requester_of(ANN),
        requested_at=NOW,
        gpus=gpus,
    )


class Settled:
    """An instance that is paid for."""

    def __init__(self, world: World, *, is_public: bool = False) -> None:
        self.world, self._is_public = world, is_public
        self.registry: Registry = Registry([*KINDS, OPERATION])
        self.identity = MemoryIdentity({HOME, PAYER}, limits=LIMITS)

    async def prepare(self, store: Store) -> None:
        """Make it, and hold what it costs."""
        made = await store.create(_validated(is_public=self._is_public))
        await self.identity.allocate(charge_of(made))

    def ports(self, store: Store) -> QuotaPorts:
        """Return what the steps work on."""
        return QuotaPorts(store=store, ledger=self.identity)

    async def observe(self, store: Store) -> object:
        """Return what there is, here and at identity; in whose hand an instance was tells two equal runs apart."""
        return (
            [
                (
                    each.name,
                    each.spec,
                    each.metadata.labels,
                    said_of(each),
                    each.is_deleting,
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


@pytest.mark.thorough
@pytest.mark.parametrize("case", [case for proof in PROOFS for case in cases(proof)], ids=str)
def test_c11_a_change_ends_as_done_or_as_never_begun(case: Case) -> None:
    case.run()


def test_every_saga_is_proven() -> None:
    assert_all_proven(Sagas([UPDATE_INSTANCE]), PROOFS)


def test_what_an_operation_remembers_is_sealed_and_can_be_read_again() -> None:
    change = _changed(LARGER, 4, is_public=True, was_public=False)
    told, sealed = stored_input(UPDATE_INSTANCE, change)
    assert told == ""
    spec = OperationSpec(
        saga="", subject_kind="", subject="", actor="", input=told, sealed_input=sealed, deadline=NOW, process=""
    )
    again = read_input(UPDATE_INSTANCE, spec)
    assert again == change
    assert isinstance(again.previous.spec, InstanceSpec)
    found = _validated(is_public=False)
    assert changed_instance(found, again.requested, ANN, NOW, gpus=4).spec.user_data is not None


class Slow:
    """The ledger as somebody reaches it who falls asleep on the way there."""

    def __init__(self, ledger: MemoryIdentity) -> None:
        self._ledger, self.is_on_the_way, self.wakes = ledger, asyncio.Event(), asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)

    async def update(self, charge: Charge) -> None:
        self.is_on_the_way.set()
        await self.wakes.wait()
        await self._ledger.update(charge)


def _began(sagas: SagaEnvironment, proof: Proof) -> tuple[QuotaPorts, Work[ChangedInstance], MemoryIdentity]:
    """Return what the steps of a proof's change work on, step by step, and the ledger behind it."""
    settled, change = sagas.surroundings, proof.input
    assert isinstance(settled, Settled)
    assert isinstance(change, ChangedInstance)
    return settled.ports(sagas.start().store), Work(FIRST, change, "prover"), settled.identity


@pytest.mark.parametrize("undone", range(len(UPDATE_INSTANCE.steps) + 1))
@pytest.mark.parametrize("step", [1, 3])
@pytest.mark.parametrize("proof", PROOFS)
@options(seeds=1)
async def test_c11_who_sleeps_while_a_change_is_undone_does_not_have_the_last_word(
    world: World, proof: Proof, step: int, undone: int
) -> None:
    async with saga_environment(world, proof) as sagas:
        before, (ports, work, ledger) = await sagas.observe(), _began(sagas, proof)
        for each in UPDATE_INSTANCE.steps[:step]:
            await each.do(ports, work)
        slow = Slow(ledger)
        late = asyncio.ensure_future(UPDATE_INSTANCE.steps[step].do(replace(ports, ledger=slow), work))
        await slow.is_on_the_way.wait()
        for number, each in enumerate(reversed(UPDATE_INSTANCE.steps[: step + 1])):
            if number == undone:
                slow.wakes.set()
                await asyncio.wait([late])
            await each.undo(ports, work)
            (instance,), (held,) = (await sagas.store.list(ComputeInstance)).items, ledger.held.values()
            held_of = {amount.kind: amount.committed for amount in held.amounts}
            assert all(held_of.get(cost.kind, 0) >= cost.committed for cost in charge_of(instance).amounts)
        slow.wakes.set()
        await asyncio.wait([late])
        assert late.exception() is None or isinstance(late.exception(), Unavailable)
        assert await sagas.observe() == before


@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("proof", PROOFS)
@options(seeds=1)
async def test_c11_of_two_who_undo_a_change_the_one_that_sleeps_does_not_have_the_last_word(
    world: World, proof: Proof, step: int
) -> None:
    async with saga_environment(world, proof) as sagas:
        before, (ports, work, ledger) = await sagas.observe(), _began(sagas, proof)
        for each in UPDATE_INSTANCE.steps:
            await each.do(ports, work)
        slow = Slow(ledger)
        undo = UPDATE_INSTANCE.steps[step].undo
        late = asyncio.ensure_future(undo(replace(ports, ledger=slow), work))
        await slow.is_on_the_way.wait()
        for each in reversed(UPDATE_INSTANCE.steps):
            await each.undo(ports, work)
        slow.wakes.set()
        await asyncio.wait([late])
        assert isinstance(late.exception(), Unavailable)
        assert await sagas.observe() == before
