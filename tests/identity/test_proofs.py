"""Every saga that identity runs has its proofs, wherever they are."""

from pathlib import Path

from tests.kit.identity.launch import running
from tests.kit.identity.user_sagas import PROOFS
from tests.kit.proofs.sagas import assert_all_proven


async def test_every_saga_of_identity_is_proven(tmp_path: Path) -> None:
    async with running(tmp_path) as identity:
        sagas = identity.app.operations.sagas
        assert list(sagas), "identity has sagas"
        assert_all_proven(sagas, PROOFS)
