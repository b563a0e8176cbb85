"""What becomes of operations is told: step by step, in the timeline, and in numbers."""

from dataclasses import replace

import msgspec
from prometheus_client import CollectorRegistry

from remuda.operations.kinds import OBSTACLES, Failure, Operation, attempt_id
from remuda.operations.reporter import Metrics, Obstructed, OpenCounts, Reporter, Reporters, Timeline, TimelineEntry
from remuda.operations.saga import Sagas
from remuda.store.logs import Record, subject_of
from tests.kit.proofs.saga_environment import FIRST, SagaEnvironment
from tests.kit.proofs.saga_hooks import Point, failing, hooked
from tests.kit.sample_farm.saga import PITCH, TENT
from tests.kit.sample_farm.stuck_operations import Jam, get_stuck

LAST = Point("do", "pitch-tent", "after")
POLE = Point("undo", "cut-pole", "before")


class Diary(Reporter):
    """Writes everything down."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def records(self, operation: Operation) -> list[Record]:
        self.lines.append(f"about to be {operation.phase}")
        return []

    def started(self, operation: Operation) -> None:
        self.lines.append(f"started {operation.name}")

    def step_done(self, operation: Operation, step: str) -> None:
        self.lines.append(f"done {step} while {operation.phase}")

    def step_failed(self, operation: Operation, step: str, failure: Failure) -> None:
        self.lines.append(f"failed {step} while {operation.phase}: {failure.code}")

    def undone(self, operation: Operation, step: str) -> None:
        self.lines.append(f"undone {step} while {operation.phase}")

    def undo_failed(self, operation: Operation, step: str, failure: Failure) -> None:
        self.lines.append(f"undo failed {step} while {operation.phase}: {failure.code}")

    def closed(self, operation: Operation) -> None:
        self.lines.append(f"closed {operation.phase}")

    def stuck(self, operation: Operation) -> None:
        self.lines.append(f"stuck after {operation.status.undo_attempts}")

    def open(self, counts: OpenCounts) -> None:
        self.lines.append(f"open {dict(counts)}")

    def obstructed(self, found: Obstructed, sagas: Sagas) -> None:
        self.lines.append(f"obstructed {dict(found)} of {[saga.name for saga in sagas]}")


async def test_a_reporter_hears_of_everything_in_order(sagas: SagaEnvironment) -> None:
    diary, copy = Diary(), Diary()
    process = sagas.start(hooked(PITCH, failing(LAST, POLE, once=True)), reporter=Reporters(diary, copy))
    await process.try_to_run()
    await process.settle()
    await process.recovery.recover()
    assert diary.lines == [
        "about to be running",
        f"started {FIRST}",
        "done take-place while running",
        "done cut-pole while running",
        "failed pitch-tent while running: internal",
        "about to be undoing",
        "undone pitch-tent while undoing",
        "undo failed cut-pole while undoing: internal",
        "undone pitch-tent while undoing",
        "undone cut-pole while undoing",
        "undone take-place while undoing",
        "about to be undone",
        "closed undone",
        "open {}",
        "obstructed {} of ['tent.pitch']",
    ]
    assert copy.lines == diary.lines


async def test_the_timeline_of_the_subject_is_written_with_the_record(sagas: SagaEnvironment) -> None:
    process = sagas.start(hooked(PITCH, failing(LAST)), reporter=Timeline())
    await process.try_to_run()
    await process.run()
    page = await sagas.store.read("timeline", subject_of(TENT.qualified, "blue"))
    entries = [msgspec.json.decode(entry.data, type=TimelineEntry) for entry in page.entries]
    assert [entry.phase for entry in entries] == ["running", "undoing", "undone", "running", "done"]
    assert [entry.event for entry in entries] == [
        "OperationStarted",
        "OperationUndoing",
        "OperationUndone",
        "OperationStarted",
        "OperationDone",
    ]
    assert [entry.operation for entry in entries] == [FIRST] * 3 + [attempt_id(FIRST, 2)] * 2
    assert [entry.failed_step for entry in entries] == ["", "pitch-tent", "pitch-tent", "", ""]
    assert {entry.actor for entry in entries} == {"prover"}
    assert process.fuse.by_kind.keys() == {"Operation", "Camp", "Tent", "delete"}, "and with no write of its own"


def samples(registry: CollectorRegistry) -> dict[str, float]:
    return {
        f"{sample.name} {' '.join(sample.labels.values())}": sample.value
        for metric in registry.collect()
        for sample in metric.samples
        if not sample.name.endswith("_created")
    }


def test_every_label_value_is_there_from_the_start() -> None:
    registry = CollectorRegistry()
    Metrics(Sagas([PITCH]), registry)
    found = samples(registry)
    assert set(found.values()) == {0.0}
    steps = ["take-place", "cut-pole", "pitch-tent", "journal"]
    assert found.keys() == {
        *(f"remuda_operations_closed_total tent.pitch {phase}" for phase in ("done", "undone", "abandoned")),
        *(f"remuda_operations_open tent.pitch {phase}" for phase in ("running", "undoing", "stuck")),
        "remuda_operations_stuck_total tent.pitch",
        *(f"remuda_operations_undo_blocked {obstacle}" for obstacle in OBSTACLES),
        *(f"remuda_operation_step_failures_total tent.pitch {step}" for step in steps),
        *(f"remuda_operation_undo_failures_total tent.pitch {step}" for step in steps),
    }


def test_services_of_one_process_share_the_counters() -> None:
    alone, shared = CollectorRegistry(), CollectorRegistry()
    Metrics(Sagas([PITCH]), alone)
    Metrics(Sagas([]), shared).show(Sagas([PITCH]))
    assert samples(shared) == samples(alone)


async def test_what_operations_come_to_is_counted(sagas: SagaEnvironment) -> None:
    registry = CollectorRegistry()
    before = samples(registry)
    process = await get_stuck(sagas, Jam(), reporter=Metrics(Sagas([PITCH]), registry))
    await process.recovery.recover()
    changed = {name: value for name, value in samples(registry).items() if value and name not in before}
    assert changed == {
        "remuda_operations_open tent.pitch stuck": 1.0,
        "remuda_operations_stuck_total tent.pitch": 1.0,
        "remuda_operation_step_failures_total tent.pitch pitch-tent": 1.0,
        "remuda_operation_undo_failures_total tent.pitch cut-pole": 3.0,
    }
    await process.operations.abandon(FIRST, reason="enough", actor="ada")
    await process.recovery.recover()
    after = samples(registry)
    assert after["remuda_operations_open tent.pitch stuck"] == 0.0
    assert after["remuda_operations_closed_total tent.pitch abandoned"] == 1.0


def test_a_saga_that_has_none_open_any_more_is_shown_at_zero() -> None:
    registry = CollectorRegistry()
    metrics = Metrics(Sagas([PITCH]), registry)
    metrics.open({("tent.burn", "stuck"): 2, ("tent.burn", "running"): 1})
    metrics.open({("tent.burn", "running"): 1})
    assert samples(registry)["remuda_operations_open tent.burn stuck"] == 0
    assert samples(registry)["remuda_operations_open tent.burn running"] == 1
    metrics.open({})
    assert samples(registry)["remuda_operations_open tent.burn running"] == 0


def test_what_cannot_be_undone_here_is_shown_as_long_as_it_is_so() -> None:
    registry, sagas = CollectorRegistry(), Sagas([PITCH])
    metrics = Metrics(sagas, registry)
    metrics.obstructed({"one": "unreadable", "two": "unreadable"}, sagas)
    assert samples(registry)["remuda_operations_undo_blocked unreadable"] == 2
    metrics.obstructed({"one": "unknown_saga"}, sagas)
    assert samples(registry)["remuda_operations_undo_blocked unreadable"] == 0
    assert samples(registry)["remuda_operations_undo_blocked unknown_saga"] == 1


def test_services_of_one_process_count_together_what_none_of_them_can_undo() -> None:
    registry, one, other = CollectorRegistry(), Sagas([PITCH]), Sagas([replace(PITCH, name="tent.burn")])
    metrics = Metrics(one, registry)

    def shown() -> dict[str, float]:
        found = samples(registry)
        return {each: found[f"remuda_operations_undo_blocked {each}"] for each in OBSTACLES}

    metrics.obstructed({"garbled": "unreadable", "of other": "unknown_saga", "old": "unknown_saga"}, one)
    metrics.obstructed({"garbled": "unreadable", "of one": "unknown_saga", "old": "unknown_saga"}, other)
    assert shown() == {"unreadable": 1, "unreadable_input": 0, "unknown_saga": 1}
    metrics.obstructed({"of other": "unreadable_input", "of one": "unknown_saga"}, other)
    assert shown() == {"unreadable": 1, "unreadable_input": 1, "unknown_saga": 0}
    metrics.obstructed({"of other": "unknown_saga"}, one)
    assert shown() == {"unreadable": 0, "unreadable_input": 1, "unknown_saga": 0}
