import asyncio
import os
from collections.abc import Iterator

import pytest

from remuda.http.server.access_log import LineWriter

LINE = b"x" * 99


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


async def test_lines_of_one_turn_are_written_together(pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    writes: list[bytes] = []

    def write(_descriptor: int, block: bytes) -> int:
        writes.append(bytes(block))
        return len(block)

    monkeypatch.setattr(os, "write", write)
    writer = LineWriter(pipe[1])
    for number in range(10):
        writer.write(b"line %d" % number)
    assert writes == []
    await asyncio.sleep(0)
    assert writes == [b"".join(b"line %d\n" % number for number in range(10))]


async def test_closing_loses_nothing(pipe: tuple[int, int]) -> None:
    writer = LineWriter(pipe[1])
    writer.write(b"one")
    writer.write(b"two")
    writer.close()
    assert os.read(pipe[0], 100) == b"one\ntwo\n"


async def test_a_reader_that_does_not_read_holds_nobody_up_and_is_told_what_it_missed(pipe: tuple[int, int]) -> None:
    writer = LineWriter(pipe[1], most_waiting=10_000)
    for _ in range(100):
        for _ in range(100):
            writer.write(LINE)
        await asyncio.sleep(0)
    os.set_blocking(pipe[0], False)
    read = b""
    for _ in range(10_000):
        try:
            read += os.read(pipe[0], 65_536)
        except BlockingIOError:
            if b"dropped" in read:
                break
            writer.write(LINE)
            await asyncio.sleep(0.01)
    lines = read.split(b"\n")
    whole = sum(line == LINE for line in lines)
    told = [line for line in lines if b"dropped" in line]
    assert 0 < whole < 10_000
    assert told[0].startswith(b'{"event":"log lines dropped","lines":')


async def test_a_line_longer_than_a_pipe_takes_at_once_arrives_whole(pipe: tuple[int, int]) -> None:
    writer = LineWriter(pipe[1])
    writer.write(b"y" * 50_000)
    await asyncio.sleep(0)
    assert os.read(pipe[0], 60_000) == b"y" * 50_000 + b"\n"


async def test_a_reader_that_is_gone_is_no_error() -> None:
    reading, writing = os.pipe()
    writer = LineWriter(writing)
    os.close(reading)
    writer.write(b"to nobody")
    await asyncio.sleep(0)
    writer.close()
    os.close(writing)
