"""What becomes of operations is told: step by step, in the timeline, and in numbers."""

import msgspec
from prometheus_client import CollectorRegistry

from remuda.operations.kinds import Failure, Operation, subject_key
from remuda.operations.metrics import Metrics
from remuda.operations.registry import Sagas
from remuda.operations.reporter import OpenCounts, Reporters, Silent, Timeline, TimelineEntry
from remuda.store.logs import Record
from tests.operations.hooks import Point, failing, hooked
from tests.operations.stage import FIRST, Stage
from tests.operations.test_stuck import Jam, get_stuck
from tests.operations.toy import PITCH, TENT, on_stage

LAST = Point("do", "pitch-tent", "after")
POLE = Point("undo", "cut-pole", "before")


class Diary(Silent):
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


def test_a_reporter_hears_of_everything_in_order() -> None:
    async def act(stage: Stage) -> None:
        diary, copy = Diary(), Diary()
        process = stage.start(hooked(PITCH, failing(LAST, POLE, once=True)), reporter=Reporters(diary, copy))
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
        ]
        assert copy.lines == diary.lines

    on_stage(act)


def test_the_timeline_of_the_subject_is_written_with_the_record() -> None:
    async def act(stage: Stage) -> None:
        process = stage.start(hooked(PITCH, failing(LAST)), reporter=Timeline())
        await process.try_to_run()
        await process.run()
        page = await stage.store.read("timeline", subject_key(TENT.qualified, "blue"))
        entries = [msgspec.json.decode(entry.data, type=TimelineEntry) for entry in page.entries]
        assert [entry.phase for entry in entries] == ["running", "undoing", "undone", "running", "done"]
        assert [entry.failed_step for entry in entries] == ["", "pitch-tent", "pitch-tent", "", ""]
        assert {entry.actor for entry in entries} == {"prover"}
        assert process.fuse.by_kind.keys() == {"Operation", "Camp", "Tent", "delete"}, "and with no write of its own"

    on_stage(act)


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
        *(f"remuda_operation_step_failures_total tent.pitch {step}" for step in steps),
        *(f"remuda_operation_undo_failures_total tent.pitch {step}" for step in steps),
    }


def test_what_operations_come_to_is_counted() -> None:
    async def act(stage: Stage) -> None:
        registry = CollectorRegistry()
        before = samples(registry)
        process = await get_stuck(stage, Jam(), reporter=Metrics(Sagas([PITCH]), registry))
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

    on_stage(act)
