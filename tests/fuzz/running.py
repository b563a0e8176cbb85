"""One run of schemathesis: all phases, all default checks, and what came of it.

Two checks differ from the defaults, and no others may: data that fits the schema may still be answered 400 or 422,
because rules are more than schemas; and `use_after_free` is a check of ours. Beside the checks, a run differs in what
it sends and how long it waits, never in what it lets pass: how many examples there are, drawn from a seed or the same
each time and kept nowhere; no values from earlier answers, because `lending` gives real ids; one event of a stream is
enough, because streams do not end; a request may take 20 s; and a failure does not end the run.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import schemathesis
from schemathesis.checks import CHECKS
from schemathesis.config import (
    ChecksConfig,
    ExtraDataSourcesConfig,
    FuzzingPhaseConfig,
    GenerationConfig,
    PhasesConfig,
    PositiveDataAcceptanceConfig,
    ProjectConfig,
    ProjectsConfig,
    SchemathesisConfig,
    SimpleCheckConfig,
)
from schemathesis.core.result import Ok
from schemathesis.engine import events, from_schema
from schemathesis.hooks import GLOBAL_HOOK_DISPATCHER

from tests.fuzz.checks import DeletionCheck
from tests.fuzz.lending import Lending
from tests.fuzz.target import HEADERS, Target

PHASES = ("examples", "coverage", "fuzzing", "stateful")


@dataclass
class Report:
    """What was done and what was found."""

    statuses: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    """By phase, operation and status."""
    phases: dict[str, str] = field(default_factory=dict)
    operations: dict[str, bool] = field(default_factory=dict)
    """Every operation there is, and whether its requests can differ."""
    failures: dict[str, str] = field(default_factory=dict)
    deletions: int = 0

    def count(self, *, phase: str | None = None, operation: str | None = None, success: bool = False) -> int:
        """Return how many requests there were of this sort."""
        return sum(
            times
            for (in_phase, of, status), times in self.statuses.items()
            if phase in {None, in_phase} and operation in {None, of} and (not success or 200 <= status < 300)
        )


def checks() -> ChecksConfig:
    """Return which checks are made: see above."""
    accepted = [*PositiveDataAcceptanceConfig().expected_statuses, "400", "422"]
    return ChecksConfig(
        positive_data_acceptance=PositiveDataAcceptanceConfig(expected_statuses=accepted),
        use_after_free=SimpleCheckConfig(enabled=False),
    )


def config(target: Target, *, examples: int, seed: int | None) -> SchemathesisConfig:
    """Return the settings of a run: the same one each time, unless it is given a seed."""
    # `lending` gives requests real ids. Drawn from earlier answers instead, the examples of a DELETE run out early.
    fuzzing = FuzzingPhaseConfig(extra_data_sources=ExtraDataSourcesConfig(responses=False))
    project = ProjectConfig(
        base_url=target.url,
        headers=dict(HEADERS),
        request_timeout=20,
        max_stream_events=1,
        continue_on_failure=True,
        checks=checks(),
        phases=PhasesConfig(fuzzing=fuzzing),
        generation=GenerationConfig(max_examples=examples, deterministic=seed is None, database="none"),
    )
    return SchemathesisConfig(seed=seed, projects=ProjectsConfig(default=project))


def run(target: Target, *, examples: int, seed: int | None) -> Report:
    """Fuzz everything that the target's own document tells."""
    report = Report()
    schema = schemathesis.openapi.from_url(
        f"{target.url}/openapi.json", config=config(target, examples=examples, seed=seed)
    )
    found = [each.ok() for each in schema.get_all_operations() if isinstance(each, Ok)]
    report.operations = {each.label: bool(each.path_parameters or each.query or each.body) for each in found}
    with _extended(Lending(target), check := DeletionCheck(target)):
        for event in from_schema(schema).execute():
            _note(report, event)
    report.deletions = check.seen
    return report


@contextmanager
def _extended(lending: Lending, check: DeletionCheck) -> Iterator[None]:
    hooks: dict[str, Callable[..., None]] = {"before_call": lending.before_call, "after_call": lending.after_call}
    for name, hook in hooks.items():
        GLOBAL_HOOK_DISPATCHER.register_hook_with_name(hook, name)
    CHECKS.register(check)
    try:
        yield
    finally:
        CHECKS.unregister(check.__name__)
        for hook in hooks.values():
            GLOBAL_HOOK_DISPATCHER.unregister(hook)


def _note(report: Report, event: Any) -> None:
    match event:
        case events.PhaseFinished():
            report.phases[event.phase.name.value.lower()] = event.status.value
        case events.ScenarioFinished():
            _note_scenario(report, event)
        case events.NonFatalError():
            report.failures.setdefault(f"{event.label}: {type(event.value).__name__}", repr(event.value))
        case events.FatalError():
            report.failures["the engine broke off"] = repr(event.exception)


def _note_scenario(report: Report, event: events.ScenarioFinished) -> None:
    recorder, phase = event.recorder, event.phase.value.lower()
    for name, interaction in recorder.interactions.items():
        status = 0 if interaction.response is None else interaction.response.status_code
        report.statuses[phase, recorder.cases[name].value.operation.label, status] += 1
    for checks in recorder.checks.values():
        for check in checks:
            if check.failure_info is not None:
                failure = check.failure_info.failure
                title = f"{check.name}, {failure.operation}: {failure.title}"
                report.failures.setdefault(title, f"{failure.message}\n{check.failure_info.code_sample}")
