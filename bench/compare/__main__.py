"""The command `python -m bench compare REV [--turns N] [--quick] [--json]`."""

import argparse
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.compare.program import ComparisonError, Program, checkout, current_program
from bench.compare.ratios import Comparison, compare
from bench.compare.report import as_json, as_text
from bench.compare.session import FULL, QUICK, UNITS, Sizes, run_session

_DESCRIPTION = "Compare the CPU, wall time and memory of this checkout with those of another revision."
_TURNS, _QUICK_TURNS, _FEWEST_TURNS = 10, 3, 2
_UNUSABLE, _TERMINATED = 2, 143

Values = dict[str, list[float]]


def main() -> int:
    """Compare this checkout with a revision; return 1 if a measure got slower, and 2 if they cannot be compared."""
    parser = argparse.ArgumentParser(prog="python -m bench compare", description=_DESCRIPTION)
    parser.add_argument("revision", metavar="REV", help="the revision to compare this checkout with")
    parser.add_argument("--turns", type=int, help=f"turns of each program ({_TURNS}, or {_QUICK_TURNS} with --quick)")
    parser.add_argument("--quick", action="store_true", help="fewer turns with less work")
    parser.add_argument("--json", action="store_true", help="print one JSON object a line")
    asked = parser.parse_args()
    turns = asked.turns if asked.turns is not None else _QUICK_TURNS if asked.quick else _TURNS
    if turns < _FEWEST_TURNS:
        parser.error(f"--turns must be at least {_FEWEST_TURNS}: one turn has no spread")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(_TERMINATED))  # what runs is stopped, what was made is removed
    try:
        found = _compared(asked.revision, turns, QUICK if asked.quick else FULL)
    except ComparisonError as error:
        print(error, file=sys.stderr)
        return _UNUSABLE
    print(as_json(found) if asked.json else as_text(found, revision=asked.revision, turns=turns))
    return 1 if any(each.is_slower for each in found) else 0


def _compared(revision: str, turns: int, sizes: Sizes) -> list[Comparison]:
    with checkout(revision) as base:
        current = current_program()
        values: dict[Program, Values] = {program: {measure: [] for measure in UNITS} for program in (base, current)}
        for turn in range(turns):
            for program in _order(base, current, turn):
                print(f"turn {turn + 1} of {turns}: {program.name}", file=sys.stderr)
                for measure, value in _turn(program, sizes, turn).items():
                    values[program][measure].append(value)
    return [compare(measure, unit, values[current][measure], values[base][measure]) for measure, unit in UNITS.items()]


def _order(base: Program, current: Program, turn: int) -> Sequence[Program]:
    """Return who comes first in a turn: in every other one the current program, so that neither gains by it."""
    return (base, current) if turn % 2 == 0 else (current, base)


def _turn(program: Program, sizes: Sizes, turn: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="remuda-compare-") as directory:
        return run_session(program, Path(directory), sizes, seed=turn)


if __name__ == "__main__":
    sys.exit(main())
