"""The contract on SQLite in simulation: the same store on a machine whose order, time and chance belong to a seed."""

import pytest

from tests.kit.environment import options
from tests.kit.proofs.store_contract.backends import simulated
from tests.kit.proofs.store_contract.guarantee import Guarantee
from tests.kit.proofs.store_contract.guarantees.table import GUARANTEES
from tests.kit.simulation.runner import World

SEEDS = 5


@pytest.mark.parametrize("invariant", GUARANTEES, ids=lambda invariant: invariant.name)
@options(seeds=SEEDS)
async def test_a_simulated_store_keeps(world: World, invariant: Guarantee) -> None:
    async with simulated(world) as harness:
        await invariant.prove(harness)


def test_every_invariant_has_a_name_and_a_sentence_of_its_own() -> None:
    assert (
        len({invariant.name for invariant in GUARANTEES})
        == len({invariant.sentence for invariant in GUARANTEES})
        == len(GUARANTEES)
    )
