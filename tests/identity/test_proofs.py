"""Every saga that identity runs has its proofs, wherever they are, and every operation is in the simulation."""

from pathlib import Path

from remuda.identity.assembly import IdentityApp
from tests.identity.house import running
from tests.identity.test_people_sagas import PROOFS
from tests.operations.proofs import assert_all_proven


async def test_every_saga_of_identity_is_proven(tmp_path: Path) -> None:
    async with running(tmp_path) as house:
        app: IdentityApp = house.app
        assert len(list(app.operations.sagas)) >= len(PROOFS), "the sagas were found"
        assert_all_proven(app.operations.sagas, PROOFS)
