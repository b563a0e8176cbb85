import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

from remuda.http.answers import JSON, Answer
from remuda.http.idempotency import STREAM, Idempotency
from remuda.kernel.errors import AnswerNotKept, InFlight, Invalid, KeyReused, Malformed, StorageFull, Unavailable
from remuda.kernel.ids import is_id
from remuda.store.logs import LogPage, Record
from remuda.store.sqlite.store import SqliteStore
from tests.contract.kinds import REGISTRY
from tests.sim.runner import World, simulate
from tests.sim.store import open_simulated

REPLAYED = (b"idempotency-replayed", b"true")
TIME_LIMIT_S = 30.0


class Bed:
    """A store, a process or several on it, and a piece of work that counts."""

    def __init__(self, world: World, store: SqliteStore) -> None:
        self.world, self.store = world, store
        self.operations: list[str] = []
        self.answer = Answer(201, b'{"id":"\xc3\xa9"}', (JSON, (b"etag", b'"x"')))
        self.error: Exception | None = None
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()

    def process(self, log: Any = None, *, only: bool = False) -> Idempotency:
        return Idempotency(
            log or self.store,
            clock=self.world.clock,
            randomness=self.world.randomness,
            time_limit_s=TIME_LIMIT_S,
            is_only_process=only,
        )

    async def work(self, operation: str) -> Answer:
        self.operations.append(operation)
        await self.may_go_on.wait()
        if self.error is not None:
            raise self.error
        return self.answer

    async def ask(
        self, process: Idempotency, key: str | None = "k", *, who: str = "anna", body: bytes = b"1", keep: bool = True
    ) -> Answer:
        return await process.once(key, who=who, fingerprint=body, keep=keep, work=self.work)


def in_a_bed(test: Callable[[Bed], Coroutine[Any, Any, None]]) -> None:
    async def scenario(world: World) -> None:
        store = open_simulated(world, REGISTRY)
        try:
            await test(Bed(world, store))
        finally:
            await store.close()

    simulate(scenario, 5)


def test_the_same_request_is_carried_out_once_and_answered_alike() -> None:
    async def test(bed: Bed) -> None:
        process = bed.process()
        first, second = [await bed.ask(process) for _ in range(2)]
        third = await bed.ask(bed.process())
        assert first == bed.answer
        assert second == third == Answer(201, bed.answer.body, (*bed.answer.headers, REPLAYED))
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


def test_another_request_under_the_key_is_refused_whatever_became_of_the_first() -> None:
    async def test(bed: Bed) -> None:
        process = bed.process()
        for key, answer in (("done", bed.answer), ("failed", Answer(503))):
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
        assert all(isinstance(outcome, Answer | InFlight) for outcome in outcomes)
        assert bed.answer in outcomes

    in_a_bed(test)


def test_what_a_dead_process_began_is_run_again_under_the_same_operation() -> None:
    async def test(bed: Bed) -> None:
        bed.may_go_on.clear()
        dying = asyncio.create_task(bed.ask(bed.process()))
        await bed.world.clock.sleep(1)
        dying.cancel()
        bed.may_go_on.set()
        heir = bed.process()
        with pytest.raises(InFlight):
            await bed.ask(heir)
        await bed.world.clock.sleep(TIME_LIMIT_S)
        assert await bed.ask(heir) == bed.answer
        assert (await bed.ask(bed.process())).headers[-1] == REPLAYED
        assert len(bed.operations) == 2
        assert len(set(bed.operations)) == 1

    in_a_bed(test)


def test_of_two_heirs_one_runs_it_again() -> None:
    async def test(bed: Bed) -> None:
        bed.may_go_on.clear()
        dying = asyncio.create_task(bed.ask(bed.process()))
        await bed.world.clock.sleep(TIME_LIMIT_S + 1)
        dying.cancel()
        heirs = [asyncio.create_task(bed.ask(bed.process())) for _ in range(2)]
        await bed.world.clock.sleep(1)
        bed.may_go_on.set()
        outcomes = await asyncio.gather(*heirs, return_exceptions=True)
        assert len(bed.operations) == 2
        assert bed.answer in outcomes

    in_a_bed(test)


def test_where_only_one_process_can_be_the_heir_need_not_wait() -> None:
    async def test(bed: Bed) -> None:
        bed.may_go_on.clear()
        dying = asyncio.create_task(bed.ask(bed.process(only=True)))
        await bed.world.clock.sleep(1)
        dying.cancel()
        bed.may_go_on.set()
        assert await bed.ask(bed.process(only=True)) == bed.answer
        assert len(set(bed.operations)) == 1

    in_a_bed(test)


def test_a_request_that_was_cut_off_in_this_process_can_be_sent_again_at_once() -> None:
    async def test(bed: Bed) -> None:
        process = bed.process()
        bed.may_go_on.clear()
        cut = asyncio.create_task(bed.ask(process))
        await bed.world.clock.sleep(1)
        cut.cancel()
        await asyncio.gather(cut, return_exceptions=True)
        bed.may_go_on.set()
        assert await bed.ask(process) == bed.answer
        assert len(set(bed.operations)) == 1

    in_a_bed(test)


@pytest.mark.parametrize("failing", ["answer", "error"])
def test_our_own_failure_frees_the_key_for_another_try_of_the_same_operation(failing: str) -> None:
    async def test(bed: Bed) -> None:
        good = bed.answer
        if failing == "answer":
            bed.answer = Answer(503, b"{}")
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
        bed.answer = Answer(409, b"{}")
        assert [(await bed.ask(process, "a")).status for _ in range(2)] == [409, 409]
        assert len(bed.operations) == 1
        bed.error = Invalid("size", "is negative", remedy="use more")
        for _ in range(2):
            with pytest.raises(Invalid):
                await bed.ask(process, "b")
        assert len(bed.operations) == 3

    in_a_bed(test)


def test_an_answer_with_a_secret_is_not_stored_and_a_repeat_is_told_and_runs_nothing() -> None:
    async def test(bed: Bed) -> None:
        process = bed.process()
        bed.answer = Answer(201, b'{"token":"sesame"}')
        assert await bed.ask(process, keep=False) == bed.answer
        for again in (process, bed.process()):
            with pytest.raises(AnswerNotKept, match="was carried out, and its answer"):
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


class FullDisk:
    """A log that has no room, from a certain record on."""

    def __init__(self, log: SqliteStore, *, room: int) -> None:
        self._log, self._room = log, room

    async def append(self, records: Sequence[Record]) -> None:
        if self._room <= 0:
            raise StorageFull("/data")
        self._room -= 1
        await self._log.append(records)

    async def read(self, stream: str, subject: str, *, after: int = 0, limit: int = 100) -> LogPage:
        return await self._log.read(stream, subject, after=after, limit=limit)


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
