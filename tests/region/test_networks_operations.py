"""What operations have made: nothing comes of it before they are done, and what they took back goes."""

import pytest

from remuda.operations.kinds import Operation, OperationSpec, Phase
from remuda.quota.sagas import unmake
from remuda.region.kinds.networks import Identity, Network
from remuda.region.networks.routes import NETWORKS
from remuda.region.networks.rules import new_identity, new_network
from remuda.region.networks.schema import NetworkCreate, NetworkCreateSpec
from remuda.resources.conventions import identity_of
from remuda.resources.schema import MetadataWrite
from remuda.store.objects import Metadata
from tests.region.networks_asking import NOTHING, all_is_gone, make_group
from tests.region.networks_ground import TENANT, Ground, on_ground
from tests.region.room import ORG, PROJECT, REGION
from tests.sim.runner import START


async def _left_by(ground: Ground, phase: Phase) -> str:
    """Store what an operation has made that stands like this, and return the network's id."""
    operation = "d0000000-0000-4000-8000-00000000000d"
    name = "d0000000-0000-4000-8000-00000000000e"
    record = OperationSpec(
        saga="network.create",
        subject_kind="networks.region.unikorn-cloud.org",
        subject=name,
        actor="ann@example.com",
        input="{}",
        deadline=START,
        process="another",
    )
    await ground.store.create(Operation(metadata=Metadata(name=operation), spec=record))
    await _turn(ground, phase)
    spec = NetworkCreateSpec(
        organization_id=ORG, project_id=PROJECT, region_id=REGION, prefix="10.0.0.0/24", dns_nameservers=()
    )
    wanted = NetworkCreate(metadata=MetadataWrite(name="net"), spec=spec)
    by = TENANT.paying(ORG, PROJECT)
    hidden = await ground.store.create(new_identity(operation, spec, "simulated", by))
    await ground.store.create(new_network(name, wanted, hidden, by, operation=operation))
    return name


async def _turn(ground: Ground, phase: Phase) -> None:
    found = await ground.store.get(Operation, "d0000000-0000-4000-8000-00000000000d")
    await ground.store.update_status(found.moved(phase))


@pytest.mark.parametrize("phase", ["running", "undoing", "stuck", "abandoned"])
def test_nothing_is_made_unless_the_operation_is_done(phase: Phase) -> None:
    async def scenario(ground: Ground) -> None:
        name = await _left_by(ground, phase)
        await ground.rest()
        assert await ground.at_cloud() == NOTHING
        assert (await ground.available(Network, name)).reason == "OperationOpen"
        assert not ground.identity.asked
        await ground.look_again()

    on_ground(scenario, at_work=True)


def test_what_an_abandoned_operation_left_can_be_deleted() -> None:
    async def scenario(ground: Ground) -> None:
        name = await _left_by(ground, "abandoned")
        await ground.rest()
        assert (await ground.networks.ask(TENANT).delete(f"{NETWORKS}/{name}")).status == 202
        await ground.rest()
        await all_is_gone(ground)

    on_ground(scenario, at_work=True)


def test_the_end_of_the_operation_wakes_what_it_made() -> None:
    async def scenario(ground: Ground) -> None:
        name = await _left_by(ground, "running")
        await ground.rest()
        await _turn(ground, "done")
        await ground.rest()
        assert (await ground.available(Network, name)).status == "True"

    on_ground(scenario, at_work=True)


def test_what_an_undone_operation_left_goes_and_never_was_at_the_cloud() -> None:
    async def scenario(ground: Ground) -> None:
        await _left_by(ground, "undoing")
        await ground.rest()
        await _turn(ground, "undone")
        await ground.rest()
        await all_is_gone(ground)

    on_ground(scenario, at_work=True)


def test_what_is_deleted_while_its_operation_is_open_waits_for_its_end() -> None:
    async def scenario(ground: Ground) -> None:
        name = await _left_by(ground, "running")
        assert (await ground.networks.ask(TENANT).delete(f"{NETWORKS}/{name}")).status == 202
        await ground.rest()
        assert (await ground.store.get(Network, name)).is_marked
        await _turn(ground, "done")
        await ground.rest()
        await all_is_gone(ground)

    on_ground(scenario, at_work=True)


def test_what_somebody_put_on_a_network_that_is_taken_back_goes_with_it() -> None:
    async def scenario(ground: Ground) -> None:
        name = await _left_by(ground, "running")
        hidden = identity_of(await ground.store.get(Network, name))
        await make_group(ground, name)
        await _turn(ground, "undoing")
        await unmake(ground.store, Network, name)
        await unmake(ground.store, Identity, hidden)
        await _turn(ground, "undone")
        await ground.rest()
        await all_is_gone(ground)

    on_ground(scenario, at_work=True)
