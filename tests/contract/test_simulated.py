"""The contract on SQLite in simulation: the same store on a machine whose order, time and chance belong to a seed."""

import pytest

from tests.kit.environment import options
from tests.kit.proofs.store_contract.backends import simulated
from tests.kit.proofs.store_contract.guarantee import Guarantee
from tests.kit.proofs.store_contract.guarantees.table import GUARANTEES
from tests.kit.simulation.runner import World

SEEDS = 5


@pytest.mark.parametrize("law", GUARANTEES, ids=lambda law: law.name)
@options(seeds=SEEDS)
async def test_a_simulated_store_keeps(world: World, law: Guarantee) -> None:
    async with simulated(world) as harness:
        await law.prove(harness)


def test_every_law_has_a_name_and_a_sentence_of_its_own() -> None:
    assert len({law.name for law in GUARANTEES}) == len({law.sentence for law in GUARANTEES}) == len(GUARANTEES)
