"""A request that fails and is repeated: each attempt costs the same, and the records of few are kept."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from remuda.kernel.errors import InFlight
from remuda.operations.kinds import Operation, attempt_id
from remuda.operations.saga import Step, Work
from tests.kit.environment import options
from tests.kit.proofs.saga_environment import FIRST, Process, SagaEnvironment
from tests.kit.proofs.saga_hooks import InjectedError
from tests.kit.sample_farm.saga import PITCH, Outfit, Pitch


async def fail(_outfit: Outfit, _work: Work[Pitch]) -> None:
    raise InjectedError("it fails")


async def nothing(_outfit: Outfit, _work: Work[Pitch]) -> None:
    """Undo nothing."""


FAILING = replace(PITCH, steps=(*PITCH.steps, Step(name="fail", do=fail, undo=nothing)))
CALLS = ("create", "update", "update_status", "delete", "get", "list", "list_names")


def counting(process: Process, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count what a process asks of its store."""
    calls = Counter[str]()
    store: Any = process.operations.journal._store

    def counted(name: str) -> Callable[..., Awaitable[Any]]:
        inner = getattr(store, name)

        async def call(*arguments: Any, **options: Any) -> Any:
            calls[name] += 1
            return await inner(*arguments, **options)

        return call

    for name in CALLS:
        monkeypatch.setattr(store, name, counted(name))
    return calls


async def records(sagas: SagaEnvironment) -> list[str]:
    return sorted(each.name for each in (await sagas.store.list(Operation)).items)


@options(seeds=1)
async def test_m27_the_hundredth_attempt_costs_as_much_as_the_fifth_and_few_records_are_kept(
    sagas: SagaEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = sagas.start(FAILING)
    calls = counting(process, monkeypatch)
    costs = []
    for _ in range(100):
        calls.clear()
        assert await process.try_to_run() is not None
        costs.append(dict(calls))
    assert costs[4] == costs[50] == costs[99]
    assert await records(sagas) == sorted([FIRST, *(attempt_id(FIRST, number) for number in (99, 100))])
    well = sagas.start()
    calls = counting(well, monkeypatch)
    done = await well.run()
    assert done.name == attempt_id(FIRST, 101)
    calls.clear()
    assert (await well.run()).name == done.name
    assert calls.total() <= 10
    assert len(await records(sagas)) == 3


@options(seeds=20)
async def test_of_many_repeats_at_once_one_runs_and_no_name_is_used_again(sagas: SagaEnvironment) -> None:
    ran: list[str] = []

    async def note(_outfit: Outfit, work: Work[Pitch]) -> None:
        ran.append(work.id)

    saga = replace(PITCH, steps=(Step(name="note", do=note, undo=nothing), *FAILING.steps))
    process = sagas.start(saga)
    outcomes: list[Exception | None] = []

    async def repeat() -> None:
        for _ in range(8):
            await sagas.world.clock.sleep(sagas.world.randomness.uniform(0, 0.05))
            outcomes.append(await process.try_to_run())

    await asyncio.gather(*(repeat() for _ in range(5)))
    await process.settle()
    assert any(isinstance(each, InjectedError) for each in outcomes)
    assert {type(each) for each in outcomes} <= {InjectedError, InFlight}
    assert ran == [attempt_id(FIRST, number) for number in range(1, len(ran) + 1)]
    assert len(await records(sagas)) <= 4
    await sagas.assert_closed()


@options(seeds=3)
async def test_an_attempt_whose_record_was_removed_runs_nothing_when_a_slow_process_creates_it_again(
    sagas: SagaEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing_process = sagas.start(FAILING)
    for _ in range(5):
        await failing_process.try_to_run()
    removed = attempt_id(FIRST, 3)
    assert removed not in await records(sagas)
    clean = await sagas.observe()
    slow = sagas.start()

    async def outdated(request: str, *, after: str) -> str:
        assert (request, after) == (FIRST, FIRST)
        return removed

    monkeypatch.setattr(slow.operations.journal, "next_attempt", outdated)
    assert isinstance(await slow.try_to_run(), InFlight)
    assert await sagas.observe() == clean
    assert (await sagas.store.get(Operation, removed)).phase == "undone"
    assert await failing_process.try_to_run() is not None
    assert attempt_id(FIRST, 6) in await records(sagas)
