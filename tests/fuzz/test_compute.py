"""Schemathesis on compute: no 5xx, nothing undocumented, no invalid data accepted."""

import pytest

from remuda.compute.app import TABLE
from tests.fuzz.apart import EXAMPLES, fuzzed, said
from tests.fuzz.running import PHASES, Report


@pytest.fixture(scope="module")
def report() -> Report:
    return fuzzed("compute")


def test_nothing_is_found(report: Report) -> None:
    assert not report.failures, said(report, "tests/fuzz/test_compute.py")


def test_every_phase_did_something(report: Report) -> None:
    assert report.phases.keys() >= set(PHASES)
    for phase in ("coverage", "fuzzing", "stateful"):
        assert report.count(phase=phase, success=True) > 0, f"nothing went well in {phase}"


def test_every_operation_was_tried_enough_and_went_well_at_least_once(report: Report) -> None:
    assert len(report.operations) == len(TABLE.routes)
    for operation, has_variety in report.operations.items():
        tried = report.count(phase="fuzzing", operation=operation)
        assert tried >= (EXAMPLES if has_variety else 1), f"{operation} was tried {tried} times"
        assert report.count(operation=operation, success=True) > 0, f"{operation} never went well"


def test_deletions_were_reconciled(report: Report) -> None:
    assert report.deletions > 0
