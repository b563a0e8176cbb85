"""One run of schemathesis: all phases, all default checks, and what came of it.

Three checks differ from the defaults, and no others may: data that fits the schema may still be answered 400 or 422,
because rules are more than schemas; data that does not fit may be answered 413 or 431, because who sends too much is
told so before it is read; and `use_after_free` is a check of ours. Beside the checks, a run differs in what
it sends and how long it waits, never in what it lets pass: how many examples there are, drawn from a seed or the same
each time and kept nowhere; no values from earlier answers, because `lending` gives real ids; one event of a stream is
enough, because streams do not end; a request may take 20 s; and a failure does not end the run.

In a short run, coverage is of data that fits the schema. Each way in which it may not fit, of each field of each
operation, is most of what there is to send, and who rejects it is the same for every service: it is for a whole run,
and for compute.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import schemathesis
from schemathesis import Case, HookContext, Response
from schemathesis.checks import CHECKS
from schemathesis.config import (
    ChecksConfig,
    CoveragePhaseConfig,
    ExtraDataSourcesConfig,
    FuzzingPhaseConfig,
    GenerationConfig,
    OperationConfig,
    OperationsConfig,
    PhasesConfig,
    PositiveDataAcceptanceConfig,
    ProjectConfig,
    ProjectsConfig,
    SchemathesisConfig,
    SimpleCheckConfig,
)
from schemathesis.core.result import Ok
from schemathesis.engine import events, from_schema
from schemathesis.generation import GenerationMode
from schemathesis.hooks import GLOBAL_HOOK_DISPATCHER

from tests.fuzz.checks import Called, DeletionCheck

PHASES = ("examples", "coverage", "fuzzing", "stateful")
_WHOLE = 50
"""A run is whole if it has so many examples, unless somebody says otherwise."""


class Target(Called, Protocol):
    """What is fuzzed."""

    @property
    def url(self) -> str:
        """Where it answers."""
        ...

    @property
    def headers(self) -> dict[str, str]:
        """What every request sends."""
        ...

    @property
    def other_headers(self) -> Mapping[str, dict[str, str]]:
        """What the requests of some operations send instead, by the operations' names."""
        ...


class Lending(Protocol):
    """Lends real things to generated requests."""

    def before_call(self, context: HookContext, case: Case[Any], kwargs: dict[str, Any]) -> None:
        """Lend what a request needs."""
        ...

    def after_call(self, context: HookContext, case: Case[Any], response: Response) -> None:
        """See what came of it."""
        ...


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
            if phase in {None, in_phase} and operation in {None, of} and (not success or 200 <= status < 400)
        )


def checks() -> ChecksConfig:
    """Return which checks are made: see above."""
    accepted = [*PositiveDataAcceptanceConfig().expected_statuses, "400", "422"]
    rejection = ChecksConfig().negative_data_rejection
    refused = [*rejection.expected_statuses, "413", "431"]
    return ChecksConfig(
        positive_data_acceptance=PositiveDataAcceptanceConfig(expected_statuses=accepted),
        negative_data_rejection=type(rejection)(expected_statuses=refused),
        use_after_free=SimpleCheckConfig(enabled=False),
    )


def config(target: Target, *, examples: int, seed: int | None, is_whole: bool) -> SchemathesisConfig:
    """Return the settings of a run: the same one each time, unless it is given a seed."""
    modes = list(GenerationMode) if is_whole else [GenerationMode.POSITIVE]
    coverage = CoveragePhaseConfig(generation=GenerationConfig(modes=modes))
    # `lending` gives requests real ids. Drawn from earlier answers instead, the examples of a DELETE run out early.
    fuzzing = FuzzingPhaseConfig(extra_data_sources=ExtraDataSourcesConfig(responses=False))
    project = ProjectConfig(
        base_url=target.url,
        headers=target.headers,
        operations=OperationsConfig(operations=[_sending(*each) for each in target.other_headers.items()]),
        request_timeout=20,
        max_stream_events=1,
        continue_on_failure=True,
        checks=checks(),
        phases=PhasesConfig(fuzzing=fuzzing, coverage=coverage),
        generation=GenerationConfig(max_examples=examples, deterministic=seed is None, database="none"),
    )
    return SchemathesisConfig(seed=seed, projects=ProjectsConfig(default=project))


def _sending(operation: str, headers: dict[str, str]) -> OperationConfig:
    return OperationConfig.from_dict({"include-operation-id": operation, "headers": headers})


def run(target: Target, lending: Lending, *, examples: int, seed: int | None, is_whole: bool | None = None) -> Report:
    """Fuzz everything that the target's own document tells."""
    report = Report()
    settings = config(
        target, examples=examples, seed=seed, is_whole=examples >= _WHOLE if is_whole is None else is_whole
    )
    schema = schemathesis.openapi.from_url(f"{target.url}/openapi.json", config=settings)
    found = [each.ok() for each in schema.get_all_operations() if isinstance(each, Ok)]
    report.operations = {each.label: bool(each.path_parameters or each.query or each.body) for each in found}
    with _extended(lending, check := DeletionCheck(target)):
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
