"""The contract on SQLite in simulation: the same store on a machine whose order, time and chance belong to a seed."""

import pytest

from tests.contract.backends import simulated
from tests.contract.law import Law
from tests.contract.laws.table import LAWS
from tests.sim.runner import World, simulate

SEEDS = 5


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_a_simulated_store_keeps(law: Law) -> None:
    async def prove(world: World) -> None:
        async with simulated(world) as harness:
            await law.prove(harness)

    simulate(prove, SEEDS)


def test_every_law_has_a_name_and_a_sentence_of_its_own() -> None:
    assert len({law.name for law in LAWS}) == len({law.sentence for law in LAWS}) == len(LAWS)
