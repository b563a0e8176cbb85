"""What operations have made: nothing comes of it before they are done, and what they rolled back goes."""

import pytest

from remuda.operations.kinds import Operation, OperationSpec, Phase
from remuda.quota.sagas import roll_back_create
from remuda.region.kinds.networks import Identity, Network
from remuda.region.networks.routes import NETWORKS
from remuda.region.networks.rules import new_identity, new_network
from remuda.region.networks.schema import NetworkCreate, NetworkCreateSpec
from remuda.resources.conventions import identity_of
from remuda.resources.schema import MetadataWrite
from remuda.store.objects import Metadata
from tests.kit.environment import options
from tests.kit.region.network_requests import NOTHING, all_is_gone, make_group
from tests.kit.region.networks import TENANT, NetworksEnvironment
from tests.kit.region.resource_api import ORG, PROJECT, REGION
from tests.kit.simulation.runner import START


async def _left_by(region_networks: NetworksEnvironment, phase: Phase) -> str:
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
    await region_networks.store.create(Operation(metadata=Metadata(name=operation), spec=record))
    await _turn(region_networks, phase)
    spec = NetworkCreateSpec(
        organization_id=ORG, project_id=PROJECT, region_id=REGION, prefix="10.0.0.0/24", dns_nameservers=()
    )
    wanted = NetworkCreate(metadata=MetadataWrite(name="net"), spec=spec)
    by = TENANT.with_payer(ORG, PROJECT)
    hidden = await region_networks.store.create(new_identity(operation, spec, "simulated", by))
    await region_networks.store.create(new_network(name, wanted, hidden, by, operation=operation))
    return name


async def _turn(region_networks: NetworksEnvironment, phase: Phase) -> None:
    found = await region_networks.store.get(Operation, "d0000000-0000-4000-8000-00000000000d")
    await region_networks.store.update_status(found.moved(phase))


@pytest.mark.parametrize("phase", ["running", "undoing", "stuck", "abandoned"])
@options(at_work=True)
async def test_nothing_is_made_unless_the_operation_is_done(region_networks: NetworksEnvironment, phase: Phase) -> None:
    name = await _left_by(region_networks, phase)
    await region_networks.rest()
    assert await region_networks.at_cloud() == NOTHING
    assert (await region_networks.available(Network, name)).reason == "OperationRunning"
    assert not region_networks.identity.asked
    await region_networks.confirm_absence()


@options(at_work=True)
async def test_what_an_abandoned_operation_left_can_be_deleted(region_networks: NetworksEnvironment) -> None:
    name = await _left_by(region_networks, "abandoned")
    await region_networks.rest()
    assert (await region_networks.networks.ask(TENANT).delete(f"{NETWORKS}/{name}")).status == 202
    await region_networks.rest()
    await all_is_gone(region_networks)


@options(at_work=True)
async def test_the_end_of_the_operation_wakes_what_it_made(region_networks: NetworksEnvironment) -> None:
    name = await _left_by(region_networks, "running")
    await region_networks.rest()
    await _turn(region_networks, "done")
    await region_networks.rest()
    assert (await region_networks.available(Network, name)).status == "True"


@options(at_work=True)
async def test_what_an_undone_operation_left_goes_and_never_was_at_the_cloud(
    region_networks: NetworksEnvironment,
) -> None:
    await _left_by(region_networks, "undoing")
    await region_networks.rest()
    await _turn(region_networks, "undone")
    await region_networks.rest()
    await all_is_gone(region_networks)


@options(at_work=True)
async def test_what_is_deleted_while_its_operation_is_open_waits_for_its_end(
    region_networks: NetworksEnvironment,
) -> None:
    name = await _left_by(region_networks, "running")
    assert (await region_networks.networks.ask(TENANT).delete(f"{NETWORKS}/{name}")).status == 202
    await region_networks.rest()
    assert (await region_networks.store.get(Network, name)).is_deleting
    await _turn(region_networks, "done")
    await region_networks.rest()
    await all_is_gone(region_networks)


@options(at_work=True)
async def test_what_somebody_put_on_a_network_that_is_rolled_back_goes_with_it(
    region_networks: NetworksEnvironment,
) -> None:
    name = await _left_by(region_networks, "running")
    hidden = identity_of(await region_networks.store.get(Network, name))
    await make_group(region_networks, name)
    await _turn(region_networks, "undoing")
    await roll_back_create(region_networks.store, Network, name)
    await roll_back_create(region_networks.store, Identity, hidden)
    await _turn(region_networks, "undone")
    await region_networks.rest()
    await all_is_gone(region_networks)
