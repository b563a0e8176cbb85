import asyncio

import pytest

from remuda.http.idempotency import STREAM
from remuda.http.responses import Response
from remuda.kernel.errors import InFlight, Invalid, KeyReused, Malformed, ResponseNotStored, StorageFull, Unavailable
from remuda.kernel.ids import is_id
from tests.kit.sample_api.idempotency import REPLAYED, TIME_LIMIT_S, FullDisk, IdempotencyEnvironment, run_idempotency


def test_the_same_request_is_carried_out_once_and_answered_alike() -> None:
    async def test(sample: IdempotencyEnvironment) -> None:
        process = sample.process()
        first, second = [await sample.ask(process) for _ in range(2)]
        third = await sample.ask(sample.process())
        assert first == sample.answer
        assert second == third == Response(201, sample.answer.body, (*sample.answer.headers, REPLAYED))
        assert len(sample.operations) == 1
        assert is_id(sample.operations[0])

    run_idempotency(test)


def test_without_a_key_each_request_is_an_operation_of_its_own_and_leaves_no_record() -> None:
    async def test(sample: IdempotencyEnvironment) -> None:
        process = sample.process()
        assert [await sample.ask(process, None) for _ in range(2)] == [sample.answer] * 2
        assert len(set(sample.operations)) == 2
        assert all(map(is_id, sample.operations))

    run_idempotency(test)


def test_keys_of_different_callers_are_different_keys() -> None:
    async def test(sample: IdempotencyEnvironment) -> None:
        process = sample.process()
        for who, key in (("anna", "k"), ("bert", "k"), ("an", "nak"), ("anna", "k2")):
            assert await sample.ask(process, key, who=who) == sample.answer
        assert len(set(sample.operations)) == 4

    run_idempotency(test)


def test_an_operation_is_the_same_for_one_caller_and_key_and_another_without_a_key() -> None:
    async def test(sample: IdempotencyEnvironment) -> None:
        process, other = sample.process(), sample.process()
        await sample.ask(process, "k", who="anna")
        assert sample.operations == [process.operation("k", who="anna")] == [other.operation("k", who="anna")]
        others = [("k", "bert"), ("k2", "anna"), (None, "anna"), (None, "anna")]
        assert len({*sample.operations, *(process.operation(key, who=who) for key, who in others)}) == 5
        with pytest.raises(Malformed):
            process.operation("ä", who="anna")

    run_idempotency(test)


def test_another_request_under_the_key_is_refused_whatever_became_of_the_first() -> None:
    async def test(sample: IdempotencyEnvironment) -> None:
        process = sample.process()
        for key, answer in (("done", sample.answer), ("failed", Response(503))):
            sample.answer = answer
            await sample.ask(process, key)
            with pytest.raises(KeyReused):
                await sample.ask(process, key, body=b"2")
        sample.may_go_on.clear()
        first = asyncio.create_task(sample.ask(process, "running"))
        await sample.world.clock.sleep(1)
        with pytest.raises(KeyReused):
            await sample.ask(process, "running", body=b"2")
        sample.may_go_on.set()
        await first
        assert len(sample.operations) == 3

    run_idempotency(test)


def test_a_request_that_is_being_worked_on_has_to_wait() -> None:
    async def test(sample: IdempotencyEnvironment) -> None:
        process = sample.process()
        sample.may_go_on.clear()
        first = asyncio.create_task(sample.ask(process))
        await sample.world.clock.sleep(1)
        with pytest.raises(InFlight) as farm:
            await sample.ask(process)
        assert farm.value.retry_after_s == 1
        with pytest.raises(InFlight) as elsewhere:
            await sample.ask(sample.process())
        assert 25 <= elsewhere.value.retry_after_s <= TIME_LIMIT_S
        sample.may_go_on.set()
        assert await first == sample.answer
        assert (await sample.ask(process)).headers[-1] == REPLAYED
        assert len(sample.operations) == 1

    run_idempotency(test)


def test_of_requests_that_come_at_once_one_is_carried_out() -> None:
    async def test(sample: IdempotencyEnvironment) -> None:
        processes = [sample.process() for _ in range(2)]
        outcomes = await asyncio.gather(
            *(sample.ask(processes[number % 2]) for number in range(6)), return_exceptions=True
        )
        assert len(sample.operations) == 1
        assert all(isinstance(outcome, Response | InFlight) for outcome in outcomes)
        assert sample.answer in outcomes

    run_idempotency(test)


@pytest.mark.parametrize("failing", ["answer", "error"])
def test_our_own_failure_frees_the_key_for_another_try_of_the_same_operation(failing: str) -> None:
    async def test(sample: IdempotencyEnvironment) -> None:
        good = sample.answer
        if failing == "answer":
            sample.answer = Response(503, b"{}")
            assert (await sample.ask(sample.process())).status == 503
        else:
            sample.error = Unavailable("not now: try again.")
            with pytest.raises(Unavailable):
                await sample.ask(sample.process())
        sample.answer, sample.error = good, None
        assert await sample.ask(sample.process()) == good
        assert (await sample.ask(sample.process())).headers[-1] == REPLAYED
        assert len(sample.operations) == 2
        assert len(set(sample.operations)) == 1

    run_idempotency(test)


def test_a_refusal_that_was_answered_is_replayed_and_one_that_was_raised_is_judged_again() -> None:
    async def test(sample: IdempotencyEnvironment) -> None:
        process = sample.process()
        sample.answer = Response(409, b"{}")
        assert [(await sample.ask(process, "a")).status for _ in range(2)] == [409, 409]
        assert len(sample.operations) == 1
        sample.error = Invalid("size", "is negative", remedy="use more")
        for _ in range(2):
            with pytest.raises(Invalid):
                await sample.ask(process, "b")
        assert len(sample.operations) == 3
        with pytest.raises(KeyReused):
            await sample.ask(process, "b", body=b"2")
        sample.error = None
        assert (await sample.ask(process, "b")).status == 409
        assert len(set(sample.operations[1:])) == 1, "it was one operation all the time"

    run_idempotency(test)


def test_an_answer_with_a_secret_is_not_stored_and_a_repeat_is_told_and_runs_nothing() -> None:
    async def test(sample: IdempotencyEnvironment) -> None:
        process = sample.process()
        sample.answer = Response(201, b'{"token":"sesame"}')
        assert await sample.ask(process, keep=False) == sample.answer
        for again in (process, sample.process()):
            with pytest.raises(ResponseNotStored, match="was processed, and its response"):
                await sample.ask(again, keep=False)
        assert len(sample.operations) == 1
        records = await sample.store.read(STREAM, f"{sample.operations[0]}/0")
        assert len(records.entries) == 2
        assert not any(b"sesame" in bytes(entry.data) for entry in records.entries)

    run_idempotency(test)


@pytest.mark.parametrize("key", ["", "x" * 256, "a b", "ä", "a\n", "\x7f"])
def test_a_key_that_is_none_is_told_by_its_header_and_runs_nothing(key: str) -> None:
    async def test(sample: IdempotencyEnvironment) -> None:
        with pytest.raises(Malformed, match="Idempotency-Key is not 1 to 255 visible ASCII characters"):
            await sample.ask(sample.process(), key)
        assert not sample.operations

    run_idempotency(test)


@pytest.mark.parametrize("key", ["x", "~" * 255, '"quoted"'])
def test_every_key_of_visible_characters_is_taken(key: str) -> None:
    async def test(sample: IdempotencyEnvironment) -> None:
        assert await sample.ask(sample.process(), key) == sample.answer

    run_idempotency(test)


def test_nothing_is_run_that_could_not_be_written_down_first() -> None:
    async def test(sample: IdempotencyEnvironment) -> None:
        with pytest.raises(StorageFull):
            await sample.ask(sample.process(FullDisk(sample.store, room=0)))
        assert not sample.operations

    run_idempotency(test)


def test_what_was_done_is_answered_even_if_the_answer_cannot_be_kept() -> None:
    async def test(sample: IdempotencyEnvironment) -> None:
        process = sample.process(FullDisk(sample.store, room=1))
        assert await sample.ask(process) == sample.answer
        assert await sample.ask(sample.process(only=True)) == sample.answer
        assert len(set(sample.operations)) == 1

    run_idempotency(test)
