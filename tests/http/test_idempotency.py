import asyncio
from collections import Counter
from typing import Any

import pytest

from remuda.http import idempotency as module
from remuda.http.idempotency import STREAM
from remuda.http.responses import Response
from remuda.kernel.errors import InFlight, Invalid, KeyReused, Malformed, ResponseNotStored, StorageFull, Unavailable
from remuda.kernel.ids import is_id
from tests.kit.sample_api.idempotency import REPLAYED, TIME_LIMIT_S, FullDisk, IdempotencyEnvironment


async def test_the_same_request_is_carried_out_once_and_answered_alike(idempotency: IdempotencyEnvironment) -> None:
    process = idempotency.process()
    first, second = [await idempotency.ask(process) for _ in range(2)]
    third = await idempotency.ask(idempotency.process())
    assert first == idempotency.answer
    assert second == third == Response(201, idempotency.answer.body, (*idempotency.answer.headers, REPLAYED))
    assert len(idempotency.operations) == 1
    assert is_id(idempotency.operations[0])


async def test_without_a_key_each_request_is_an_operation_of_its_own_and_leaves_no_record(
    idempotency: IdempotencyEnvironment,
) -> None:
    process = idempotency.process()
    assert [await idempotency.ask(process, None) for _ in range(2)] == [idempotency.answer] * 2
    assert len(set(idempotency.operations)) == 2
    assert all(map(is_id, idempotency.operations))


async def test_keys_of_different_callers_are_different_keys(idempotency: IdempotencyEnvironment) -> None:
    process = idempotency.process()
    for who, key in (("anna", "k"), ("bert", "k"), ("an", "nak"), ("anna", "k2")):
        assert await idempotency.ask(process, key, who=who) == idempotency.answer
    assert len(set(idempotency.operations)) == 4


async def test_an_operation_is_the_same_for_one_caller_and_key_and_another_without_a_key(
    idempotency: IdempotencyEnvironment,
) -> None:
    process, other = idempotency.process(), idempotency.process()
    await idempotency.ask(process, "k", who="anna")
    assert idempotency.operations == [process.operation("k", who="anna")] == [other.operation("k", who="anna")]
    others = [("k", "bert"), ("k2", "anna"), (None, "anna"), (None, "anna")]
    assert len({*idempotency.operations, *(process.operation(key, who=who) for key, who in others)}) == 5
    with pytest.raises(Malformed):
        process.operation("ä", who="anna")


async def test_another_request_under_the_key_is_refused_whatever_became_of_the_first(
    idempotency: IdempotencyEnvironment,
) -> None:
    process = idempotency.process()
    for key, answer in (("done", idempotency.answer), ("failed", Response(503))):
        idempotency.answer = answer
        await idempotency.ask(process, key)
        with pytest.raises(KeyReused):
            await idempotency.ask(process, key, body=b"2")
    idempotency.may_go_on.clear()
    first = asyncio.create_task(idempotency.ask(process, "running"))
    await idempotency.world.clock.sleep(1)
    with pytest.raises(KeyReused):
        await idempotency.ask(process, "running", body=b"2")
    idempotency.may_go_on.set()
    await first
    assert len(idempotency.operations) == 3


async def test_a_request_that_is_being_worked_on_has_to_wait(idempotency: IdempotencyEnvironment) -> None:
    process = idempotency.process()
    idempotency.may_go_on.clear()
    first = asyncio.create_task(idempotency.ask(process))
    await idempotency.world.clock.sleep(1)
    with pytest.raises(InFlight) as farm:
        await idempotency.ask(process)
    assert farm.value.retry_after_s == 1
    with pytest.raises(InFlight) as elsewhere:
        await idempotency.ask(idempotency.process())
    assert 25 <= elsewhere.value.retry_after_s <= TIME_LIMIT_S
    idempotency.may_go_on.set()
    assert await first == idempotency.answer
    assert (await idempotency.ask(process)).headers[-1] == REPLAYED
    assert len(idempotency.operations) == 1


async def test_of_requests_that_come_at_once_one_is_carried_out(idempotency: IdempotencyEnvironment) -> None:
    processes = [idempotency.process() for _ in range(2)]
    outcomes = await asyncio.gather(
        *(idempotency.ask(processes[number % 2]) for number in range(6)), return_exceptions=True
    )
    assert len(idempotency.operations) == 1
    assert all(isinstance(outcome, Response | InFlight) for outcome in outcomes)
    assert idempotency.answer in outcomes


@pytest.mark.parametrize("failing", ["answer", "error"])
async def test_our_own_failure_frees_the_key_for_another_try_of_the_same_operation(
    idempotency: IdempotencyEnvironment, failing: str
) -> None:
    good = idempotency.answer
    if failing == "answer":
        idempotency.answer = Response(503, b"{}")
        assert (await idempotency.ask(idempotency.process())).status == 503
    else:
        idempotency.error = Unavailable("not now: try again.")
        with pytest.raises(Unavailable):
            await idempotency.ask(idempotency.process())
    idempotency.answer, idempotency.error = good, None
    assert await idempotency.ask(idempotency.process()) == good
    assert (await idempotency.ask(idempotency.process())).headers[-1] == REPLAYED
    assert len(idempotency.operations) == 2
    assert len(set(idempotency.operations)) == 1


async def test_a_rejection_that_was_answered_is_replayed_and_one_that_was_raised_is_validated_again(
    idempotency: IdempotencyEnvironment,
) -> None:
    process = idempotency.process()
    idempotency.answer = Response(409, b"{}")
    assert [(await idempotency.ask(process, "a")).status for _ in range(2)] == [409, 409]
    assert len(idempotency.operations) == 1
    idempotency.error = Invalid("size", "is negative", remedy="use more")
    for _ in range(2):
        with pytest.raises(Invalid):
            await idempotency.ask(process, "b")
    assert len(idempotency.operations) == 3
    with pytest.raises(KeyReused):
        await idempotency.ask(process, "b", body=b"2")
    idempotency.error = None
    assert (await idempotency.ask(process, "b")).status == 409
    assert len(set(idempotency.operations[1:])) == 1, "it was one operation all the time"


async def test_an_answer_with_a_secret_is_not_stored_and_a_repeat_is_told_and_runs_nothing(
    idempotency: IdempotencyEnvironment,
) -> None:
    process = idempotency.process()
    idempotency.answer = Response(201, b'{"token":"sesame"}')
    assert await idempotency.ask(process, keep=False) == idempotency.answer
    for again in (process, idempotency.process()):
        with pytest.raises(ResponseNotStored, match="was already processed"):
            await idempotency.ask(again, keep=False)
    assert len(idempotency.operations) == 1
    records = await idempotency.store.read(STREAM, f"{idempotency.operations[0]}/0")
    assert len(records.entries) == 2
    assert not any(b"sesame" in bytes(entry.data) for entry in records.entries)


@pytest.mark.parametrize("key", ["", "x" * 256, "a b", "ä", "a\n", "\x7f"])
async def test_a_key_that_is_none_is_told_by_its_header_and_runs_nothing(
    idempotency: IdempotencyEnvironment, key: str
) -> None:
    with pytest.raises(Malformed, match="Idempotency-Key is not 1 to 255 visible ASCII characters"):
        await idempotency.ask(idempotency.process(), key)
    assert not idempotency.operations


@pytest.mark.parametrize("key", ["x", "~" * 255, '"quoted"'])
async def test_every_key_of_visible_characters_is_taken(idempotency: IdempotencyEnvironment, key: str) -> None:
    assert await idempotency.ask(idempotency.process(), key) == idempotency.answer


async def test_nothing_is_run_that_could_not_be_written_down_first(idempotency: IdempotencyEnvironment) -> None:
    with pytest.raises(StorageFull):
        await idempotency.ask(idempotency.process(FullDisk(idempotency.store, space=0)))
    assert not idempotency.operations


async def test_what_was_done_is_answered_even_if_the_answer_cannot_be_kept(idempotency: IdempotencyEnvironment) -> None:
    process = idempotency.process(FullDisk(idempotency.store, space=1))
    assert await idempotency.ask(process) == idempotency.answer
    assert await idempotency.ask(idempotency.process(only=True)) == idempotency.answer
    assert len(set(idempotency.operations)) == 1


async def test_m27_the_hundredth_failing_repeat_costs_as_many_reads_and_writes_as_the_fifth(
    idempotency: IdempotencyEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = Counter[str]()

    def counted(name: str) -> Any:
        inner = getattr(idempotency.store, name)

        async def call(*arguments: Any, **options: Any) -> Any:
            calls[name] += 1
            return await inner(*arguments, **options)

        return call

    for name in ("append", "read", "read_back"):
        monkeypatch.setattr(idempotency.store, name, counted(name))
    process, answer, costs = idempotency.process(only=True), idempotency.answer, []
    idempotency.answer = Response(503)
    for number in range(100):
        if number == 60:
            process = idempotency.process(only=True)  # after a restart
        calls.clear()
        assert (await idempotency.ask(process)).status == 503
        costs.append(dict(calls))
    assert costs[4] == costs[59] == costs[60] == costs[99]
    assert sum(costs[99].values()) <= 6
    idempotency.answer = answer
    assert await idempotency.ask(process) == answer
    assert (await idempotency.ask(process)).headers[-1] == REPLAYED
    assert len(idempotency.operations) == 101
    with pytest.raises(KeyReused):
        await idempotency.ask(process, body=b"2")


async def test_m27_a_caller_stores_only_so_many_bytes_of_responses_a_day_and_no_request_is_executed_twice(
    idempotency: IdempotencyEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "STORED_BYTES", 1_000)
    process, body = idempotency.process(), b"x" * 300
    idempotency.answer = Response(201, body)
    for number in range(6):
        await idempotency.ask(process, f"k{number}")
    await idempotency.ask(process, "k0", who="bert")
    for number in range(3):
        assert (await idempotency.ask(process, f"k{number}")).body == body
    for number in range(3, 6):
        with pytest.raises(ResponseNotStored):
            await idempotency.ask(process, f"k{number}")
    assert (await idempotency.ask(process, "k0", who="bert")).body == body, "others have their own space"
    assert len(idempotency.operations) == 7
    await idempotency.world.clock.sleep(86_400)
    await idempotency.ask(process, "k6")
    assert (await idempotency.ask(process, "k6")).body == body
