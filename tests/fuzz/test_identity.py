"""Schemathesis on identity: no 5xx, nothing undocumented, no invalid data accepted.

Environment: REMUDA_FUZZ_EXAMPLES and REMUDA_FUZZ_SEED, as for the livery.
"""

import os

import pytest

from remuda.identity.api import TABLE
from tests.fuzz.identity_lending import IdentityLending
from tests.fuzz.identity_target import serving_identity
from tests.fuzz.running import PHASES, Report, run

EXAMPLES = int(os.environ.get("REMUDA_FUZZ_EXAMPLES", "10"))
SEED = int(os.environ["REMUDA_FUZZ_SEED"]) if "REMUDA_FUZZ_SEED" in os.environ else None
NEED_A_BROWSER = {
    "GET /oidc/callback",
    "POST /oauth2/v2/account",
    "POST /oauth2/v2/device",
    "POST /oauth2/v2/password",
}
"""What only goes well with a page, a link or a provider that somebody was at before: `tests/identity` goes there."""


@pytest.fixture(scope="module")
def report() -> Report:
    with serving_identity() as target:
        return run(target, IdentityLending(target), examples=EXAMPLES, seed=SEED)


def test_nothing_is_found(report: Report) -> None:
    found = "\n\n".join(f"{title}\n{details}" for title, details in report.failures.items())
    assert not report.failures, f"{found}\n\nreplay: {_replay()}"


def test_every_phase_did_something(report: Report) -> None:
    assert report.phases.keys() >= set(PHASES)
    for phase in ("coverage", "fuzzing", "stateful"):
        assert report.count(phase=phase, success=True) > 0, f"nothing went well in {phase}"


def test_every_operation_was_tried_enough_and_went_well_at_least_once(report: Report) -> None:
    assert len(report.operations) == len(TABLE.routes)
    for operation, has_variety in report.operations.items():
        tried = report.count(phase="fuzzing", operation=operation)
        assert tried >= (EXAMPLES if has_variety else 1), f"{operation} was tried {tried} times"
        if operation not in NEED_A_BROWSER:
            assert report.count(operation=operation, success=True) > 0, f"{operation} never went well"


def test_deletions_were_looked_after(report: Report) -> None:
    assert report.deletions > 0


def _replay() -> str:
    seed = "" if SEED is None else f"REMUDA_FUZZ_SEED={SEED} "
    return f"REMUDA_FUZZ_EXAMPLES={EXAMPLES} {seed}.venv/bin/pytest tests/fuzz/test_identity.py"
