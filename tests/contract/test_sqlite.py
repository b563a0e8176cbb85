"""The contract on SQLite: a real file, real threads, real time."""

from pathlib import Path

import pytest

from tests.kit.proofs.store_contract.backends import real_file
from tests.kit.proofs.store_contract.guarantee import Guarantee
from tests.kit.proofs.store_contract.guarantees.table import GUARANTEES


@pytest.mark.parametrize("guarantee", GUARANTEES, ids=lambda guarantee: guarantee.name)
async def test_a_real_file_keeps(guarantee: Guarantee, tmp_path: Path) -> None:
    async with real_file(tmp_path / "remuda.db") as harness:
        await guarantee.prove(harness)
