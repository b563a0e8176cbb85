"""The generic proofs on the making of an instance: at every failure it is done, or was never begun."""

import msgspec
import pytest

from remuda.access.principal import requester_of
from remuda.compute.instances.rules import charge_of, instance_id
from remuda.compute.instances.sagas import (
    CREATE_INSTANCE,
    SAGAS,
    UPDATE_INSTANCE,
    InstancePorts,
    NameTaken,
    NewInstance,
)
from remuda.compute.instances.schema import InstanceCreate, InstanceCreateSpec, InstanceNetworkingWire
from remuda.compute.kinds import KINDS, ComputeInstance
from remuda.kernel.errors import Unavailable
from remuda.kernel.secrets import Secret
from remuda.operations.kinds import OPERATION, Operation
from remuda.operations.saga import Sagas, stored_input
from remuda.quota.sagas import roll_back_create
from remuda.region.networks.schema import NetworkRead
from remuda.resources.schema import MetadataWrite
from remuda.store.contract import Store
from remuda.store.kinds import Registry
from tests.kit.compute.region_api import network_read
from tests.kit.compute.sagas import ANN, FLAVOR, HOME, IMAGE, LIMITS, NETWORK, ORG, PAYER, PROJECT, REGION
from tests.kit.environment import options
from tests.kit.proofs.saga_environment import FIRST, SECOND, saga_environment
from tests.kit.proofs.sagas import Case, Proof, assert_all_proven, cases
from tests.kit.region.identity_port import MemoryIdentity
from tests.kit.simulation.runner import World

USER_DATA = "I2Nsb3VkLWNvbmZpZwpwYXNzd29yZDogaHVudGVyMgo="


class Networks:
    """Region, as far as this saga asks it. A network in `marked` is being deleted."""

    def __init__(self) -> None:
        self.marked: set[str] = set()

    async def find_network(self, network: str) -> NetworkRead | None:
        return network_read(network, region=REGION, is_deleting=network in self.marked)


class Country:
    """A network, and a project that pays for what is on it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.registry: Registry = Registry([*KINDS, OPERATION])
        self.identity = MemoryIdentity({HOME, PAYER}, limits=LIMITS)
        self.networks = Networks()

    async def prepare(self, store: Store) -> None:
        """Nothing of ours has to be there."""

    def ports(self, store: Store) -> InstancePorts:
        """Return what the steps work on."""
        return InstancePorts(store=store, ledger=self.identity, region=self.networks)

    async def observe(self, store: Store) -> object:
        """Return what there is, here and at identity, even what is only marked."""
        return (
            [
                (
                    each.name,
                    each.spec,
                    each.metadata.labels,
                    each.metadata.annotations,
                    each.metadata.finalizers,
                    each.is_deleting,
                )
                for each in (await store.list(ComputeInstance)).items
            ],
            self.identity.everything(),
        )


def _wanted(name: str = "web", *, is_public: bool = True, gpus: int = 4) -> NewInstance:
    spec = InstanceCreateSpec(
        organization_id=ORG,
        project_id=PROJECT,
        network_id=NETWORK,
        flavor_id=FLAVOR,
        image_id=IMAGE,
        networking=InstanceNetworkingWire(public_ip=is_public),
        user_data=USER_DATA,
    )
    wanted = InstanceCreate(metadata=MetadataWrite(name=name), spec=spec)
    return NewInstance(
        instance=instance_id(NETWORK, name), requested=wanted, region=REGION, gpus=gpus, requester=requester_of(ANN)
    )


PROOFS = [Proof(saga=CREATE_INSTANCE, make_world=Country, input=_wanted(), rival=_wanted("db", is_public=False))]
SAME = Proof(saga=CREATE_INSTANCE, make_world=Country, input=_wanted(), rival=_wanted(gpus=0))


@pytest.mark.thorough
@pytest.mark.parametrize("case", [case for proof in PROOFS for case in cases(proof)], ids=str)
def test_c11_m02_an_operation_ends_as_done_or_as_never_begun(case: Case) -> None:
    case.run()


@pytest.mark.parametrize("case", [case for case in cases(SAME) if "another" in case.name], ids=str)
def test_c07_m07_of_two_that_want_the_same_name_one_has_it_and_the_other_leaves_nothing(case: Case) -> None:
    case.run()


def test_every_saga_is_proven() -> None:
    proven_elsewhere = UPDATE_INSTANCE
    assert_all_proven(Sagas([each for each in SAGAS if each is not proven_elsewhere]), PROOFS)


def test_what_an_operation_remembers_is_sealed_and_can_be_read_again() -> None:
    told, hidden = stored_input(CREATE_INSTANCE, _wanted())
    assert (told, hidden is not None) == ("", True)
    assert msgspec.json.decode(msgspec.json.encode(_wanted()), type=NewInstance) == _wanted()


@options(seeds=[1])
async def test_m02_what_is_held_is_named_after_the_operation_and_is_what_the_instance_costs(world: World) -> None:
    country = Country(world)
    proof = Proof(saga=CREATE_INSTANCE, make_world=lambda _: country, input=_wanted())
    async with saga_environment(world, proof) as sagas:
        await sagas.start().run()
        (made,) = (await sagas.store.list(ComputeInstance)).items
        assert (made.spec.operation, made.spec.user_data) == (FIRST, Secret(USER_DATA))
        assert made.spec.server_id == made.name == instance_id(NETWORK, "web")
        assert country.identity.held == {(PAYER, FIRST): charge_of(made)}
        amounts = {amount.kind: amount.committed for amount in charge_of(made).amounts}
        assert amounts == {"servers": 1, "gpus": 4, "floatingips": 1}


@options(seeds=[1])
async def test_a_network_that_was_marked_meanwhile_undoes_it(world: World) -> None:
    country = Country(world)
    proof = Proof(saga=CREATE_INSTANCE, make_world=lambda _: country, input=_wanted())
    async with saga_environment(world, proof) as sagas:
        country.networks.marked.add(NETWORK)
        process = sagas.start()
        refused = await process.try_to_run()
        assert str(refused) == "network is being deleted"
        assert not (await sagas.store.list(ComputeInstance)).items
        assert not country.identity.held
        assert (await sagas.store.get(Operation, FIRST)).phase == "undone"


@options(seeds=[1])
async def test_m07_a_name_is_taken_until_the_one_that_had_it_is_gone(world: World) -> None:
    country = Country(world)
    proof = Proof(saga=CREATE_INSTANCE, make_world=lambda _: country, input=_wanted())
    async with saga_environment(world, proof) as sagas:
        process = sagas.start()
        await process.run()
        taken = await process.try_to_run(SECOND)
        assert str(getattr(taken, "message", "")) == (
            "The network already has an instance named 'web': choose another name."
        )
        (made,) = (await sagas.store.list(ComputeInstance)).items
        await sagas.store.delete(ComputeInstance, made.name, uid=made.uid)
        going = await process.try_to_run("cccccccc-0000-4000-8000-000000000003")
        assert str(getattr(going, "message", "")) == (
            "An instance named 'web' is being created or deleted on this network: try again later."
        )
        assert list(country.identity.held) == [(PAYER, FIRST)]
        await country.identity.release(charge_of(made))  # as at the end of its deletion, before it goes
        assert isinstance(await process.try_to_run("dddddddd-0000-4000-8000-000000000004"), NameTaken)
        assert not country.identity.held
        (left,) = (await sagas.store.list(ComputeInstance)).items
        assert left.uid == made.uid


@options(seeds=[1])
async def test_whoever_uses_a_key_again_that_is_long_forgotten_is_told_to_try_again_and_not_that_something_changed(
    world: World,
) -> None:
    country = Country(world)
    proof = Proof(saga=CREATE_INSTANCE, make_world=lambda _: country, input=_wanted())
    async with saga_environment(world, proof) as sagas:
        process = sagas.start()
        await process.run()
        (made,) = (await sagas.store.list(ComputeInstance)).items
        await country.identity.release_and_fence(charge_of(made))
        await roll_back_create(sagas.store, ComputeInstance, made.name)
        done = await sagas.store.get(Operation, FIRST)
        await sagas.store.delete(Operation, FIRST, uid=done.uid)
        again = await process.try_to_run(FIRST)
        assert isinstance(again, Unavailable)
        assert str(again) == "The quota reservation of this operation has expired. Retry the request."
        assert not country.identity.held
        assert await process.try_to_run(SECOND) is None
