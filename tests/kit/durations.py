"""Recorded durations of test files, which decide the order in which workers take them.

A worker that begins with the longest files waits for no other at the end. The durations are in `tests/durations.json`,
seconds by file, apart for the usual and the thorough cases. With RECORD_DURATIONS set, a run replaces what is
recorded of the files that it runs: `make prove` does so for the thorough cases, `make durations` for the usual ones.
"""

import json
import os
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import pytest

RECORD = "RECORD_DURATIONS"
_SHORTEST_S = 0.2
"""A file that takes less is not recorded: its place does not matter."""
_SHOWN = 10


class Durations:
    """Seconds by file, apart for the usual and the thorough cases."""

    def __init__(self, usual: Mapping[str, float] | None = None, thorough: Mapping[str, float] | None = None) -> None:
        self.usual = defaultdict[str, float](float, usual or {})
        self.thorough = defaultdict[str, float](float, thorough or {})

    @classmethod
    def read(cls, path: Path) -> "Durations":
        """Return those of a JSON file, or none if there is no such file."""
        return cls(**json.loads(path.read_text())) if path.exists() else cls()

    def slowest(self, count: int) -> list[tuple[str, float]]:
        """Return the files that take the longest, the longest first."""
        total = {file: self.usual[file] + self.thorough[file] for file in {*self.usual, *self.thorough}}
        return sorted(total.items(), key=lambda each: -each[1])[:count]

    def record(self, path: Path) -> None:
        """Replace what a JSON file says of the files measured here, and keep the rest of it."""
        known = Durations.read(path)
        merged = {"usual": known.usual | self.usual, "thorough": known.thorough | self.thorough}
        path.write_text(json.dumps({name: _worth_it(each) for name, each in merged.items()}, indent=1) + "\n")


def _worth_it(seconds: Mapping[str, float]) -> dict[str, float]:
    return {file: round(seconds[file], 1) for file in sorted(seconds) if seconds[file] >= _SHORTEST_S}


def longest_first(items: list[pytest.Item], recorded: Durations) -> None:
    """Sort the cases that are going to run: file by file, the longest file first."""
    seconds = defaultdict[str, float](float)
    for file, is_thorough in {(file_of(each.nodeid), _is_thorough(each)) for each in items}:
        seconds[file] += (recorded.thorough if is_thorough else recorded.usual)[file]
    items.sort(key=lambda item: -seconds[file_of(item.nodeid)])


def _is_thorough(item: pytest.Item) -> bool:
    return item.get_closest_marker("thorough") is not None


def file_of(case: str) -> str:
    """Return the file of a case, by the id of the case."""
    return case.partition("::")[0]


class DurationReport:
    """Plugin that measures the files of a run, shows the slowest, and records all if that is asked for."""

    def __init__(self, path: Path) -> None:
        self._path, self._measured = path, Durations()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add a phase of a test to its file."""
        kind = self._measured.thorough if "thorough" in report.keywords else self._measured.usual
        kind[file_of(report.nodeid)] += report.duration

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show the slowest files of a run of many."""
        slowest = self._measured.slowest(_SHOWN + 1)
        if len(slowest) > _SHOWN:
            terminalreporter.section(f"{_SHOWN} slowest files")
            for file, seconds in slowest[:_SHOWN]:
                terminalreporter.line(f"{seconds:7.1f} s  {file}")
        if os.environ.get(RECORD):
            self._measured.record(self._path)
