"""The comparison of two revisions: its statistics, its report, its client, and that it imports nothing of ours."""

import asyncio
import json
import math
import random
import subprocess
import sys
from pathlib import Path

import pytest

from bench.compare.client import Client, Request
from bench.compare.ratios import Comparison, compare
from bench.compare.report import as_json, as_text

ROOT = Path(__file__).parents[2]


def compared(ratios: list[float], *, measure: str = "work") -> Comparison:
    return compare(measure, "ms", [2 * ratio for ratio in ratios], [2.0] * len(ratios))


def test_the_interval_is_students_over_the_logarithms() -> None:
    found = compared([math.exp(0.1), math.exp(0.2), math.exp(0.3)])
    margin = 4.303 * 0.1 / math.sqrt(3)
    assert found.ratio == pytest.approx(math.exp(0.2))
    assert (found.low, found.high) == pytest.approx((math.exp(0.2 - margin), math.exp(0.2 + margin)))
    assert found.spread == pytest.approx(math.expm1(0.1))
    assert (found.base, found.current) == pytest.approx((2.0, 2 * math.exp(0.2)))


def test_only_values_of_the_same_turn_are_compared() -> None:
    drifting = [1.0, 2.0, 4.0, 8.0]
    found = compare("work", "ms", [value * 1.1 for value in drifting], drifting)
    assert (found.low, found.ratio, found.high) == pytest.approx((1.1, 1.1, 1.1))
    with pytest.raises(ValueError, match="longer"):
        compare("work", "ms", [1.0, 2.0], [1.0, 2.0, 3.0])


@pytest.mark.parametrize("turns", [2, 3, 10, 40])
def test_nineteen_of_twenty_intervals_have_the_true_ratio(turns: int) -> None:
    chance, tries, true = random.Random(turns), 2_000, 1.2
    found = [compared([true * math.exp(chance.gauss(0, 0.1)) for _ in range(turns)]) for _ in range(tries)]
    covered = sum(each.low <= true <= each.high for each in found) / tries
    assert 0.935 <= covered <= 0.965


@pytest.mark.parametrize(
    ("ratios", "is_slower", "is_faster"),
    [
        ([1.10, 1.11, 1.12], True, False),
        ([1.02, 1.021, 1.022], False, False),
        ([0.8, 1.1, 1.4], False, False),
        ([0.99, 0.991, 0.992], False, True),
    ],
)
def test_a_verdict_needs_the_whole_interval(ratios: list[float], *, is_slower: bool, is_faster: bool) -> None:
    found = compared(ratios)
    assert (found.is_slower, found.is_faster) == (is_slower, is_faster)


def test_the_report_names_what_is_slower_and_what_is_faster() -> None:
    found = [
        compared([1.2, 1.21, 1.22], measure="creates"),
        compared([0.7, 0.71, 0.72], measure="reads"),
        compared([0.9, 1.0, 1.1], measure="lists"),
    ]
    text = as_text(found, revision="main", turns=3)
    assert "above 1.03: creates.\n" in text
    assert text.endswith("below 1: reads.")
    lines = [json.loads(line) for line in as_json(found).splitlines()]
    assert [(line["measure"], line["holds"], line["faster"]) for line in lines] == [
        ("creates", False, False),
        ("reads", True, True),
        ("lists", True, False),
    ]
    usual = {"bench", "measure", "ours", "limit", "unit", "ratio", "goal", "holds"}
    assert all(usual < line.keys() and line["bench"] == "compare" for line in lines)


async def test_the_client_reads_both_forms_of_a_body_and_keeps_the_order() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := (await reader.readuntil(b"\r\n\r\n") if not reader.at_eof() else b""):
            path = head.split(b" ")[1]
            if path == b"/chunked":
                writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n[\r\n2\r\n1]\r\n0\r\n\r\n")
            elif path == b"/empty":
                writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
            else:
                writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: %d\r\n\r\n%b" % (len(path), path))

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        client = Client(server.sockets[0].getsockname()[1], "token")
        paths = ["/chunked", "/empty", *(f"/{number}" for number in range(10))]
        found = await asyncio.wait_for(client.send_all([Request("GET", path) for path in paths], connections=2), 120)
    assert found[0].json() == [1]
    assert [(each.status, each.body.decode()) for each in found[1:]] == [
        (204, ""),
        *((404, path) for path in paths[2:]),
    ]


def test_nothing_of_ours_is_imported() -> None:
    program = "import sys, bench.compare.__main__; print(sorted(n for n in sys.modules if n.startswith('remuda')))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True, text=True)
    assert done.stdout == "[]\n"
