"""The contract on SQLite: a real file, real threads, real time."""

import asyncio
from pathlib import Path

import pytest

from tests.kit.proofs.store_contract.backends import real_file
from tests.kit.proofs.store_contract.guarantee import Law
from tests.kit.proofs.store_contract.guarantees.table import LAWS


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_a_real_file_keeps(law: Law, tmp_path: Path) -> None:
    async def prove() -> None:
        async with real_file(tmp_path / "remuda.db") as harness:
            await law.prove(harness)

    asyncio.run(prove())
