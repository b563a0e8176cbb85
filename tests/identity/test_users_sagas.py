"""The generic proofs on every saga of the users's resource, and what they cannot show."""

import pytest

from remuda.identity.users.memberships import Memberships
from remuda.identity.users.sagas import (
    CREATE_ACCOUNT,
    CREATE_USER,
    UPDATE_ACCOUNT,
    UPDATE_USER,
)
from remuda.operations.saga import Sagas
from tests.kit.identity.user_sagas import PROOFS
from tests.kit.proofs.sagas import Case, Proof, assert_all_proven, cases


@pytest.mark.parametrize("case", [case for proof in PROOFS for case in cases(proof)], ids=str)
def test_an_operation_ends_as_done_or_as_never_begun(case: Case) -> None:
    case.run()


def _run_all(proof: Proof) -> None:
    for case in cases(proof):
        case.run()


@pytest.mark.parametrize("proof", PROOFS, ids=lambda proof: proof.saga.name)
def test_an_undo_that_forgets_the_groups_is_found(proof: Proof, monkeypatch: pytest.MonkeyPatch) -> None:
    async def forget(*_arguments: object, **_options: object) -> None:
        """Restore nothing."""

    monkeypatch.setattr(Memberships, "restore", forget)
    with pytest.raises(AssertionError):
        _run_all(proof)


def test_every_saga_is_proven() -> None:
    assert_all_proven(Sagas([CREATE_USER, UPDATE_USER, CREATE_ACCOUNT, UPDATE_ACCOUNT]), PROOFS)
