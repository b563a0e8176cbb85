import asyncio

import pytest

from remuda.http.idempotency import STREAM
from remuda.http.responses import Response
from remuda.kernel.errors import InFlight, Invalid, KeyReused, Malformed, ResponseNotStored, StorageFull, Unavailable
from remuda.kernel.ids import is_id
from tests.kit.sample_api.idempotency import REPLAYED, TIME_LIMIT_S, Bed, FullDisk, in_a_bed


def test_the_same_request_is_carried_out_once_and_answered_alike() -> None:
    async def test(bed: Bed) -> None:
        process = bed.process()
        first, second = [await bed.ask(process) for _ in range(2)]
        third = await bed.ask(bed.process())
        assert first == bed.answer
        assert second == third == Response(201, bed.answer.body, (*bed.answer.headers, REPLAYED))
        assert len(bed.operations) == 1
        assert is_id(bed.operations[0])

    in_a_bed(test)


def test_without_a_key_each_request_is_an_operation_of_its_own_and_leaves_no_record() -> None:
    async def test(bed: Bed) -> None:
        process = bed.process()
        assert [await bed.ask(process, None) for _ in range(2)] == [bed.answer] * 2
        assert len(set(bed.operations)) == 2
        assert all(map(is_id, bed.operations))

    in_a_bed(test)


def test_keys_of_different_callers_are_different_keys() -> None:
    async def test(bed: Bed) -> None:
        process = bed.process()
        for who, key in (("anna", "k"), ("bert", "k"), ("an", "nak"), ("anna", "k2")):
            assert await bed.ask(process, key, who=who) == bed.answer
        assert len(set(bed.operations)) == 4

    in_a_bed(test)


def test_an_operation_is_the_same_for_one_caller_and_key_and_another_without_a_key() -> None:
    async def test(bed: Bed) -> None:
        process, other = bed.process(), bed.process()
        await bed.ask(process, "k", who="anna")
        assert bed.operations == [process.operation("k", who="anna")] == [other.operation("k", who="anna")]
        others = [("k", "bert"), ("k2", "anna"), (None, "anna"), (None, "anna")]
        assert len({*bed.operations, *(process.operation(key, who=who) for key, who in others)}) == 5
        with pytest.raises(Malformed):
            process.operation("ä", who="anna")

    in_a_bed(test)


def test_another_request_under_the_key_is_refused_whatever_became_of_the_first() -> None:
    async def test(bed: Bed) -> None:
        process = bed.process()
        for key, answer in (("done", bed.answer), ("failed", Response(503))):
            bed.answer = answer
            await bed.ask(process, key)
            with pytest.raises(KeyReused):
                await bed.ask(process, key, body=b"2")
        bed.may_go_on.clear()
        first = asyncio.create_task(bed.ask(process, "running"))
        await bed.world.clock.sleep(1)
        with pytest.raises(KeyReused):
            await bed.ask(process, "running", body=b"2")
        bed.may_go_on.set()
        await first
        assert len(bed.operations) == 3

    in_a_bed(test)


def test_a_request_that_is_being_worked_on_has_to_wait() -> None:
    async def test(bed: Bed) -> None:
        process = bed.process()
        bed.may_go_on.clear()
        first = asyncio.create_task(bed.ask(process))
        await bed.world.clock.sleep(1)
        with pytest.raises(InFlight) as here:
            await bed.ask(process)
        assert here.value.retry_after_s == 1
        with pytest.raises(InFlight) as elsewhere:
            await bed.ask(bed.process())
        assert 25 <= elsewhere.value.retry_after_s <= TIME_LIMIT_S
        bed.may_go_on.set()
        assert await first == bed.answer
        assert (await bed.ask(process)).headers[-1] == REPLAYED
        assert len(bed.operations) == 1

    in_a_bed(test)


def test_of_requests_that_come_at_once_one_is_carried_out() -> None:
    async def test(bed: Bed) -> None:
        processes = [bed.process() for _ in range(2)]
        outcomes = await asyncio.gather(
            *(bed.ask(processes[number % 2]) for number in range(6)), return_exceptions=True
        )
        assert len(bed.operations) == 1
        assert all(isinstance(outcome, Response | InFlight) for outcome in outcomes)
        assert bed.answer in outcomes

    in_a_bed(test)


@pytest.mark.parametrize("failing", ["answer", "error"])
def test_our_own_failure_frees_the_key_for_another_try_of_the_same_operation(failing: str) -> None:
    async def test(bed: Bed) -> None:
        good = bed.answer
        if failing == "answer":
            bed.answer = Response(503, b"{}")
            assert (await bed.ask(bed.process())).status == 503
        else:
            bed.error = Unavailable("not now: try again.")
            with pytest.raises(Unavailable):
                await bed.ask(bed.process())
        bed.answer, bed.error = good, None
        assert await bed.ask(bed.process()) == good
        assert (await bed.ask(bed.process())).headers[-1] == REPLAYED
        assert len(bed.operations) == 2
        assert len(set(bed.operations)) == 1

    in_a_bed(test)


def test_a_refusal_that_was_answered_is_replayed_and_one_that_was_raised_is_judged_again() -> None:
    async def test(bed: Bed) -> None:
        process = bed.process()
        bed.answer = Response(409, b"{}")
        assert [(await bed.ask(process, "a")).status for _ in range(2)] == [409, 409]
        assert len(bed.operations) == 1
        bed.error = Invalid("size", "is negative", remedy="use more")
        for _ in range(2):
            with pytest.raises(Invalid):
                await bed.ask(process, "b")
        assert len(bed.operations) == 3
        with pytest.raises(KeyReused):
            await bed.ask(process, "b", body=b"2")
        bed.error = None
        assert (await bed.ask(process, "b")).status == 409
        assert len(set(bed.operations[1:])) == 1, "it was one operation all the time"

    in_a_bed(test)


def test_an_answer_with_a_secret_is_not_stored_and_a_repeat_is_told_and_runs_nothing() -> None:
    async def test(bed: Bed) -> None:
        process = bed.process()
        bed.answer = Response(201, b'{"token":"sesame"}')
        assert await bed.ask(process, keep=False) == bed.answer
        for again in (process, bed.process()):
            with pytest.raises(ResponseNotStored, match="was processed, and its response"):
                await bed.ask(again, keep=False)
        assert len(bed.operations) == 1
        records = await bed.store.read(STREAM, f"{bed.operations[0]}/0")
        assert len(records.entries) == 2
        assert not any(b"sesame" in bytes(entry.data) for entry in records.entries)

    in_a_bed(test)


@pytest.mark.parametrize("key", ["", "x" * 256, "a b", "ä", "a\n", "\x7f"])
def test_a_key_that_is_none_is_told_by_its_header_and_runs_nothing(key: str) -> None:
    async def test(bed: Bed) -> None:
        with pytest.raises(Malformed, match="Idempotency-Key is not 1 to 255 visible ASCII characters"):
            await bed.ask(bed.process(), key)
        assert not bed.operations

    in_a_bed(test)


@pytest.mark.parametrize("key", ["x", "~" * 255, '"quoted"'])
def test_every_key_of_visible_characters_is_taken(key: str) -> None:
    async def test(bed: Bed) -> None:
        assert await bed.ask(bed.process(), key) == bed.answer

    in_a_bed(test)


def test_nothing_is_run_that_could_not_be_written_down_first() -> None:
    async def test(bed: Bed) -> None:
        with pytest.raises(StorageFull):
            await bed.ask(bed.process(FullDisk(bed.store, room=0)))
        assert not bed.operations

    in_a_bed(test)


def test_what_was_done_is_answered_even_if_the_answer_cannot_be_kept() -> None:
    async def test(bed: Bed) -> None:
        process = bed.process(FullDisk(bed.store, room=1))
        assert await bed.ask(process) == bed.answer
        assert await bed.ask(bed.process(only=True)) == bed.answer
        assert len(set(bed.operations)) == 1

    in_a_bed(test)
