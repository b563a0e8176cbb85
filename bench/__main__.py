"""The command: `python -m bench NAME... [--json] [--quick] [--only GROUP] [--backend BACKEND]`.

`python -m bench compare REV` compares this checkout with another revision; `python -m bench compare --help` says how.
"""

import argparse
import logging
import os
import sys

import structlog

from bench.groups import BACKENDS, GROUPS, chosen, measures
from bench.report import show_json, show_table
from remuda.process import prepare_interpreter


def main() -> int:
    """Run benchmarks; return 1 if some goal is missed."""
    if sys.argv[1:2] == ["compare"]:
        # The client of a comparison has nothing of ours loaded, so this process, which has, becomes another one.
        os.execv(sys.executable, [sys.executable, "-m", "bench.compare", *sys.argv[2:]])
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="+", choices=list(GROUPS), metavar="NAME", help=f"one of {', '.join(GROUPS)}")
    parser.add_argument("--json", action="store_true", help="print one JSON object a line")
    parser.add_argument("--quick", action="store_true", help="smaller sizes, the same measures")
    parser.add_argument("--backend", choices=BACKENDS, default="sqlite", help="where the store keeps its objects")
    parser.add_argument("--only", metavar="GROUP", help="one group of measures, by the name of its module")
    asked = parser.parse_args()
    groups = chosen(asked.names, backend=asked.backend, only=asked.only)
    if not groups:
        there = ", ".join(f"{name} {group}" for name, group in chosen(asked.names, backend=asked.backend, only=None))
        parser.error(f"there is no such group on {asked.backend}: there is {there or 'none at all'}")
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    prepare_interpreter()
    found = measures(groups, is_quick=asked.quick)
    return 0 if (show_json if asked.json else show_table)(found) else 1


if __name__ == "__main__":
    sys.exit(main())
