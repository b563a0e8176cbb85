"""Checks of schemathesis: all that it has by default, but for what is named here."""

import schemathesis.specs.openapi.checks  # noqa: F401  registers the checks, which otherwise the first run does
from schemathesis.checks import CHECKS
from schemathesis.config import ChecksConfig

from tests.fuzz.running import checks


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
