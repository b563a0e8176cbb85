"""Schemathesis on the livery: no 5xx, nothing undocumented, no invalid data accepted."""

import pytest
import schemathesis.specs.openapi.checks  # noqa: F401  registers the checks, which otherwise the first run does
from schemathesis.checks import CHECKS
from schemathesis.config import ChecksConfig

from tests.example.api import table
from tests.fuzz.apart import EXAMPLES, fuzzed, said
from tests.fuzz.running import PHASES, Report, checks


@pytest.fixture(scope="module")
def report() -> Report:
    return fuzzed("livery")


def test_nothing_is_found(report: Report) -> None:
    assert not report.failures, said(report, "tests/fuzz/test_livery.py")


def test_all_default_checks_are_on_but_one_and_none_is_softer_but_two() -> None:
    ours, default = checks(), ChecksConfig()
    names = set(CHECKS.get_all_names())
    assert {name for name in names if not ours.get_by_name(name=name).enabled} == {"use_after_free"}
    assert all(default.get_by_name(name=name).enabled for name in names)
    softer = {name for name in names if _statuses(ours, name) != _statuses(default, name)}
    added = {name: set(_statuses(ours, name)) - set(_statuses(default, name)) for name in softer}
    assert added == {"positive_data_acceptance": {"400", "422"}, "negative_data_rejection": {"413", "431"}}


def _statuses(config: ChecksConfig, name: str) -> list[str]:
    return getattr(config.get_by_name(name=name), "expected_statuses", [])


def test_every_phase_did_something(report: Report) -> None:
    assert report.phases.keys() >= set(PHASES)
    for phase in ("coverage", "fuzzing", "stateful"):
        assert report.count(phase=phase, success=True) > 0, f"nothing went well in {phase}"


def test_every_operation_was_tried_enough_and_went_well_at_least_once(report: Report) -> None:
    assert len(report.operations) == len(table().routes)
    for operation, has_variety in report.operations.items():
        tried = report.count(phase="fuzzing", operation=operation)
        assert tried >= (EXAMPLES if has_variety else 1), f"{operation} was tried {tried} times"
        assert report.count(operation=operation, success=True) > 0, f"{operation} never went well"


def test_deletions_were_looked_after(report: Report) -> None:
    assert report.deletions > 0
