"""The command: `python -m bench NAME [--json] [--quick] [--backend BACKEND]`."""

import argparse
import sys

from bench import store
from bench.report import show_json, show_table
from remuda.app import prepare_interpreter

BENCHES = {"store": store.measures}
BACKENDS = sorted(store.GROUPS)


def main() -> int:
    """Run a benchmark; return 1 if some goal is missed."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("name", choices=sorted(BENCHES), help="what to measure")
    parser.add_argument("--json", action="store_true", help="print one JSON object a line")
    parser.add_argument("--quick", action="store_true", help="smaller sizes, the same measures")
    parser.add_argument("--backend", choices=BACKENDS, default="sqlite", help="where the store keeps its objects")
    parser.add_argument("--only", metavar="GROUP", help="one group of measures, by the name of its module")
    asked = parser.parse_args()
    prepare_interpreter()
    found = BENCHES[asked.name](backend=asked.backend, is_quick=asked.quick, only=asked.only)
    return 0 if (show_json if asked.json else show_table)(found) else 1


if __name__ == "__main__":
    sys.exit(main())
