"""Schemathesis on identity: no 5xx, nothing undocumented, no invalid data accepted."""

import pytest

from remuda.identity.app import TABLE
from tests.fuzz.apart import EXAMPLES, fuzzed, said
from tests.fuzz.running import PHASES, Report

NEED_A_BROWSER = {
    "GET /oidc/callback",
    "POST /oauth2/v2/account",
    "POST /oauth2/v2/device",
    "POST /oauth2/v2/enrolment",
    "POST /oauth2/v2/factors",
    "POST /oauth2/v2/factors/recovery-codes",
    "POST /oauth2/v2/factors/removal",
    "POST /oauth2/v2/invitations",
    "POST /oauth2/v2/login/completion",
    "POST /oauth2/v2/login/continue",
    "POST /oauth2/v2/login/factor",
    "POST /oauth2/v2/login/password",
    "POST /oauth2/v2/password",
}
"""What only goes well with a page, a link or a provider that somebody was at before: `tests/identity` goes there."""
SELDOM_VALID = {
    "POST /api/v1/organizations/{organizationID}/oauth2providers",
    "PUT /api/v1/oauth2clients/{clientID}",
}
"""Operations whose body is seldom valid (an https URL), or whose key was often used before: few examples may all miss
it, the 100 of `make fuzz` do not.
"""
_MANY = 100


@pytest.fixture(scope="module")
def report() -> Report:
    return fuzzed("identity")


def test_nothing_is_found(report: Report) -> None:
    assert not report.failures, said(report, "tests/fuzz/test_identity.py")


def test_every_phase_did_something(report: Report) -> None:
    assert report.phases.keys() >= set(PHASES)
    for phase in ("coverage", "fuzzing", "stateful"):
        assert report.count(phase=phase, success=True) > 0, f"nothing went well in {phase}"


def test_every_operation_was_tried_enough_and_went_well_at_least_once(report: Report) -> None:
    assert len(report.operations) == len(TABLE.routes)
    for operation, has_variety in report.operations.items():
        tried = report.count(phase="fuzzing", operation=operation)
        assert tried >= (EXAMPLES if has_variety else 1), f"{operation} was tried {tried} times"
        if operation not in NEED_A_BROWSER and not (operation in SELDOM_VALID and EXAMPLES < _MANY):
            assert report.count(operation=operation, success=True) > 0, f"{operation} never went well"


def test_deletions_were_reconciled(report: Report) -> None:
    assert report.deletions > 0
