"""A run of schemathesis in a process of its own: `fuzzed("identity")`, whatever was run before it and wherever.

What is made up follows what the process has imported (hypothesis takes constants from our modules), the order of sets
and what earlier runs left behind. Apart, all of that is always the same, so what passes here passes elsewhere; and the
memory that a run takes goes with it. A warning, an error in a thread and one that nobody could catch are findings, as
in any other test.

Environment: REMUDA_FUZZ_EXAMPLES sets how many examples an operation gets; REMUDA_FUZZ_SEED makes it another run than
the one that is always the same.
"""

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import structlog

from tests.fuzz.identity_lending import IdentityLending
from tests.fuzz.identity_target import serving_identity
from tests.fuzz.running import Report, run

ROOT = Path(__file__).parents[2]
EXAMPLES = int(os.environ.get("REMUDA_FUZZ_EXAMPLES", "5"))
SEED = int(os.environ["REMUDA_FUZZ_SEED"]) if "REMUDA_FUZZ_SEED" in os.environ else None


def fuzzed(name: str) -> Report:
    """Fuzz what has this name, and return what came of it."""
    with TemporaryDirectory() as directory:
        path = Path(directory) / "report"
        command = [sys.executable, "-W", "error", "-m", "tests.fuzz.apart", name, str(path)]
        # Requests go to this machine, whatever proxy there is; and then nobody looks for one at each request.
        environment = os.environ | {"PYTHONHASHSEED": "0", "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        report = pickle.loads(path.read_bytes())
    assert isinstance(report, Report)
    return report


def said(report: Report, file: str) -> str:
    """Return everything that was found, and how to find it again."""
    found = "\n\n".join(f"{title}\n{details}" for title, details in report.failures.items())
    seed = "" if SEED is None else f"REMUDA_FUZZ_SEED={SEED} "
    return f"{found}\n\nreplay: REMUDA_FUZZ_EXAMPLES={EXAMPLES} {seed}.venv/bin/pytest {file}"


def _identity() -> Report:
    with serving_identity() as target:
        return run(target, IdentityLending(target), examples=EXAMPLES, seed=SEED)


def _region() -> Report:
    # Imported here alone: what is imported above decides what is made up for the others, too.
    lending, target = (import_module(f"tests.fuzz.region_{name}") for name in ("lending", "target"))
    with target.serving_region() as region:
        return run(region, lending.RegionLending(region), examples=EXAMPLES, seed=SEED)


def _compute() -> Report:
    lending, target = (import_module(f"tests.fuzz.compute_{name}") for name in ("lending", "target"))
    with target.serving_compute() as compute:
        return run(compute, lending.ComputeLending(compute), examples=EXAMPLES, seed=SEED, is_whole=True)


_RUNS: Mapping[str, Callable[[], Report]] = {
    "identity": _identity,
    "region": _region,
    "compute": _compute,
}


def _main(name: str, path: str) -> None:
    structlog.configure(processors=[_unsaid])
    unseen: dict[str, str] = {}

    def see(told: Any) -> None:
        unseen.setdefault(f"an error that nobody caught: {told.exc_type.__name__}", repr(told))

    threading.excepthook = sys.unraisablehook = see
    report = _RUNS[name]()
    report.failures |= unseen
    Path(path).write_bytes(pickle.dumps(report))


def _unsaid(_logger: Any, _method: str, _event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    raise structlog.DropEvent


if __name__ == "__main__":
    _main(*sys.argv[1:])
