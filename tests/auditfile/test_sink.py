"""The audit file: every record once and in order, whatever crashes; what was changed in it is found."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import msgspec
import pytest
from structlog.testing import capture_logs

from remuda.auditfile.chain import Chain, ChainLine, Link
from remuda.auditfile.file import AuditFile
from remuda.auditfile.sink import AuditSink, copying
from remuda.auditfile.verification import BadLine, IntactLines, verify
from remuda.kernel.clock import SystemClock
from remuda.kernel.errors import Invalid, Unavailable
from remuda.kernel.sealing import Keyring, Sealer, SealingKey
from remuda.store.logs import Record
from remuda.store.sqlite.store import SqliteStore
from tests.kit.sample_api.collections import sample_store

T = TypeVar("T")
OLD_KEY, NEW_KEY = SealingKey("old", b"o" * 32), SealingKey("new", b"n" * 32)
SEALER = Sealer(Keyring(OLD_KEY))


async def at_once(work: Callable[[], T]) -> T:
    return work()


class Fixture:
    """A sink over a store, with its file."""

    def __init__(self, store: SqliteStore, directory: Path, sealer: Sealer = SEALER) -> None:
        self.store, self.path, self.head = store, directory / "audit.jsonl", directory / "head.json"
        self.chain = Chain(sealer)

    @property
    def sink(self) -> AuditSink:
        file = AuditFile(self.path, self.head, self.chain)
        return AuditSink(log=self.store, file=file, clock=SystemClock(), run_blocking=at_once)

    async def happen(self, *numbers: int, stream: str = "audit") -> None:
        for number in numbers:
            data = msgspec.Raw(msgspec.json.encode({"number": number}))
            await self.store.append([Record(stream=stream, subject=f"organization/{number % 2}", data=data)])

    async def copy(self) -> None:
        """Copy what has happened, as a process does from its start to its end."""
        sink = self.sink
        await sink.copy(await sink.resume())

    @property
    def lines(self) -> list[ChainLine]:
        return [msgspec.json.decode(line, type=ChainLine) for line in self.path.read_bytes().splitlines()]

    @property
    def numbers(self) -> list[int]:
        return [msgspec.json.decode(line.record)["number"] for line in self.lines]

    def verified(self, *files: Path, first: int = 1) -> IntactLines | BadLine:
        return verify(self.chain, files or (self.path,), self.chain.read_head(self.head), first=first)

    def problem(self, *files: Path) -> str:
        found = self.verified(*files)
        assert isinstance(found, BadLine), found
        return str(found).removeprefix(f"{self.path}:")

    def edit(self, change: Callable[[list[bytes]], list[bytes]]) -> None:
        self.path.write_bytes(b"".join(change(self.path.read_bytes().splitlines(keepends=True))))


@asynccontextmanager
async def opened(directory: Path) -> AsyncIterator[Fixture]:
    async with sample_store(directory) as store:
        yield Fixture(store, directory)


async def test_m27_every_record_is_in_the_file_once_and_in_order(tmp_path: Path) -> None:
    async with opened(tmp_path) as fixture:
        await fixture.happen(1, 2)
        await fixture.happen(99, stream="timeline")
        await fixture.happen(3)
        await fixture.copy()
        await fixture.copy()
        await fixture.happen(*range(4, 1200))
        await fixture.copy()
        assert fixture.numbers == list(range(1, 1200))
        assert fixture.verified() == IntactLines(1, 1199, is_last_partial=False)
        first = fixture.lines[0]
        assert (first.sequence, first.subject, first.previous) == (1, "organization/1", "0" * 64)
        assert fixture.path.stat().st_mode & 0o777 == 0o600


async def test_the_last_records_are_written_when_the_process_ends(tmp_path: Path) -> None:
    async with opened(tmp_path) as fixture:
        async with copying(fixture.sink):
            await fixture.happen(1)
            await asyncio.sleep(0)
            await fixture.happen(2)
        assert fixture.numbers == [1, 2]


@pytest.mark.parametrize("kept", [1, 40, -2])
async def test_after_a_crash_in_a_line_the_line_is_written_again(tmp_path: Path, kept: int) -> None:
    async with opened(tmp_path) as fixture:
        await fixture.happen(1)
        await fixture.copy()
        before = fixture.path.read_bytes(), fixture.head.read_bytes()
        await fixture.happen(2, 3)
        await fixture.copy()
        whole = fixture.path.read_bytes()
        fixture.path.write_bytes(whole[: len(before[0]) + kept] if kept > 0 else whole[:kept])
        fixture.head.write_bytes(before[1])  # it is written after the lines
        assert isinstance(fixture.verified(), IntactLines), "a crash is no manipulation"
        await fixture.copy()
        assert fixture.path.read_bytes() == whole
        assert fixture.verified() == IntactLines(1, 3, is_last_partial=False)


async def test_after_a_crash_before_the_head_was_written_no_record_is_written_twice(tmp_path: Path) -> None:
    async with opened(tmp_path) as fixture:
        await fixture.happen(1)
        await fixture.copy()
        head = fixture.head.read_bytes()
        await fixture.happen(2, 3)
        await fixture.copy()
        fixture.head.write_bytes(head)
        await fixture.happen(4)
        await fixture.copy()
        assert fixture.numbers == [1, 2, 3, 4]
        fixture.head.unlink()
        await fixture.copy()
        assert fixture.numbers == [1, 2, 3, 4]
        assert fixture.verified() == IntactLines(1, 4, is_last_partial=False)


async def test_a_failed_append_is_repeated_without_a_gap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(tmp_path) as fixture:
        await fixture.happen(1, 2)
        sink, write = fixture.sink, os.write
        cursor = await sink.resume()
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", lambda file, content: write(file, bytes(content)[:50]) and fail())
            with pytest.raises(Unavailable, match="No space left"):
                await sink.copy(cursor)
        assert fixture.path.stat().st_size == 50
        await sink.copy(await sink.resume())
        assert fixture.numbers == [1, 2]
        assert fixture.verified() == IntactLines(1, 2, is_last_partial=False)


def fail() -> int:
    raise OSError(28, "No space left on device")


async def test_a_renamed_file_is_followed_by_a_new_one_with_the_same_chain(tmp_path: Path) -> None:
    async with opened(tmp_path) as fixture:
        rotated = tmp_path / "audit.jsonl.1"
        await fixture.happen(1, 2)
        sink = fixture.sink
        cursor = await sink.copy(await sink.resume())
        fixture.path.rename(rotated)
        await fixture.happen(3)
        await sink.copy(cursor)
        assert fixture.numbers == [3]
        assert fixture.verified(rotated, fixture.path) == IntactLines(1, 3, is_last_partial=False)
        assert fixture.verified() == BadLine(fixture.path, 1, "records 1 to 2 are missing before it")
        assert fixture.verified(first=3) == IntactLines(3, 3, is_last_partial=False)
        assert fixture.verified(first=2) == BadLine(fixture.path, 1, "record 2 is missing before it")
        assert "record 1 is here and record 3 was to be" in str(fixture.verified(rotated, fixture.path, first=3))
        fixture.path.rename(tmp_path / "audit.jsonl.2")
        await fixture.happen(4)
        await fixture.copy()
        assert fixture.verified(rotated, fixture.path) == BadLine(fixture.path, 1, "record 3 is missing before it")


async def test_m27_what_was_done_to_a_file_is_found_and_the_first_bad_line_is_named(tmp_path: Path) -> None:
    async with opened(tmp_path) as fixture:
        await fixture.happen(*range(1, 8))
        await fixture.copy()
        whole = fixture.path.read_bytes()

        def problem_after(change: Callable[[list[bytes]], list[bytes]]) -> str:
            fixture.path.write_bytes(whole)
            fixture.edit(change)
            return fixture.problem()

        changed = "the line was changed, or is not of this installation"
        assert problem_after(lambda lines: replaced(lines, 2, b'"number":3', b'"number":9')) == f"3: {changed}"
        assert problem_after(lambda lines: [*lines[:4], b"{}\n", *lines[5:]]) == f"5: {changed}"
        assert problem_after(lambda lines: [*lines[:1], b"\n", *lines[1:]]) == f"2: {changed}"
        assert problem_after(lambda lines: [*lines[:3], *lines[5:]]) == "4: records 4 to 5 are missing before it"
        moved = problem_after(lambda lines: [*lines[:2], lines[3], lines[2], *lines[4:]])
        assert moved == "3: record 3 is missing before it"
        repeated = problem_after(lambda lines: [*lines[:4], *lines[3:]])
        assert repeated == "5: record 4 is here and record 5 was to be: a line was moved or repeated"
        assert problem_after(lambda lines: lines[2:]) == "1: records 1 to 2 are missing before it"
        assert problem_after(lambda lines: lines[:5]) == "6: records 6 to 7 are cut off at the end"
        assert problem_after(lambda lines: lines[:6]) == "7: record 7 is cut off at the end"
        assert problem_after(lambda lines: [*lines[:6], lines[6][:30]]) == "7: record 7 is cut off at the end"
        assert problem_after(lambda _: []) == "1: records 1 to 7 are cut off at the end"
        assert problem_after(lambda lines: [lines[0], lines[1][:-1], *lines[2:]]) == f"2: {changed}"


def replaced(lines: list[bytes], index: int, old: bytes, new: bytes) -> list[bytes]:
    return [line.replace(old, new) if number == index else line for number, line in enumerate(lines)]


async def test_lines_that_were_cut_off_are_not_hidden_by_those_that_follow(tmp_path: Path) -> None:
    async with opened(tmp_path) as fixture:
        await fixture.happen(*range(1, 6))
        await fixture.copy()
        fixture.edit(lambda lines: lines[:3])
        await fixture.happen(6)
        with capture_logs() as log:
            await fixture.copy()
        assert [(line["event"], line["expected"], line["found"]) for line in log] == [("audit file was changed", 5, 3)]
        assert fixture.problem() == "4: records 4 to 5 are missing before it"


async def test_a_file_that_another_program_writes_to_is_not_written_over(tmp_path: Path) -> None:
    async with opened(tmp_path) as fixture:
        await fixture.happen(1)
        sink = fixture.sink
        cursor = await sink.copy(await sink.resume())
        with fixture.path.open("ab") as file:
            file.write(b"something else\n")
        await fixture.happen(2)
        with pytest.raises(Unavailable, match="changed by another program"):
            await sink.copy(cursor)
        with capture_logs():
            await sink.copy(await sink.resume())
        assert fixture.problem().startswith("2: the line was changed")
        assert b'"number":2' in fixture.path.read_bytes()


async def test_a_rotation_of_the_sealing_keys_leaves_the_chain_intact(tmp_path: Path) -> None:
    async with opened(tmp_path) as fixture:
        await fixture.happen(1)
        await fixture.copy()
        rotated = Keyring(OLD_KEY).rotated(NEW_KEY).without({"old"})
        fixture.chain = Chain(Sealer(rotated))
        await fixture.happen(2)
        await fixture.copy()
        assert fixture.verified() == IntactLines(1, 2, is_last_partial=False)


async def test_with_other_keys_no_line_is_authentic(tmp_path: Path) -> None:
    async with opened(tmp_path) as fixture:
        await fixture.happen(1)
        await fixture.copy()
        other = Chain(Sealer(Keyring(NEW_KEY)))
        assert str(verify(other, [fixture.path], None)).startswith(f"{fixture.path}:1: the line was changed")
        with pytest.raises(Invalid, match="was changed, or written with other keys"):
            other.read_head(fixture.head)


async def test_a_head_that_was_set_back_is_found(tmp_path: Path) -> None:
    async with opened(tmp_path) as fixture:
        await fixture.happen(1, 2)
        await fixture.copy()
        fixture.head.write_bytes(fixture.head.read_bytes().replace(b'"sequence":2', b'"sequence":1'))
        with pytest.raises(Invalid, match="was changed"):
            fixture.verified()


async def test_after_a_restored_backup_new_records_follow_the_lines_that_the_store_does_not_have(
    tmp_path: Path,
) -> None:
    (tmp_path / "restored").mkdir()
    async with opened(tmp_path) as fixture:
        await fixture.happen(1, 2)
        await fixture.store.back_up(tmp_path / "restored" / "prairie.db")
        await fixture.happen(3, 4, 5)
        await fixture.copy()
    async with sample_store(tmp_path / "restored") as store:
        fixture.store = store
        await fixture.happen(6)
        await fixture.copy()
        await fixture.happen(7)
        await fixture.copy()
        assert fixture.numbers == [1, 2, 3, 4, 5, 6, 7]
        assert fixture.verified() == IntactLines(1, 7, is_last_partial=False)
        assert fixture.chain.read_head(fixture.head) != Link()
