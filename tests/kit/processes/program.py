"""`remuda up` as a process of its own.

It is forked from a process that has imported everything (`tests.kit.processes.forked`), unless a test asks for a cold
start.
"""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from remuda.datadir import DataDirectory
from tests.kit.processes.forked import Forked, start

READY = re.compile(r"^Remuda is ready at (https?://\S+) \(data in (.+)\)\. Stop it with Ctrl-C\.\n$")
CODE = "import sys; from remuda.cli import main; sys.exit(main())"
UNPRIVILEGED = f"""
import ctypes
version_3, nothing = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
assert ctypes.CDLL(None).capset(version_3, nothing) == 0
{CODE}
"""
"""The same without capabilities: the modes of files then count for root, too."""
REMUDA = [sys.executable, "-c", CODE]


@dataclass(frozen=True)
class Running:
    process: Forked | subprocess.Popen[str]
    url: str
    data: Path
    said: str
    """What it said before it was ready."""

    @property
    def metrics_url(self) -> str:
        return DataDirectory(self.data).metrics_at()

    def metrics(self, **options: Any) -> httpx2.Response:
        """Read its metrics."""
        return httpx2.get(self.metrics_url, **options)

    @property
    def credentials(self) -> Mapping[str, Any]:
        """What scripts find."""
        found: Mapping[str, Any] = json.loads((self.data / "credentials.json").read_text())
        return found

    def stop(self, how: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """Send a signal; return the exit code and the log."""
        self.process.send_signal(how)
        _, log = self.process.communicate(timeout=120)
        return self.process.wait(), log


def up(
    data: Path,
    listen: str | None = "127.0.0.1:0",
    *more: str,
    environment: Mapping[str, str] | None = None,
    stdout: Any = subprocess.PIPE,
) -> Forked:
    """Start it. Its metrics get a free port, unless the environment says otherwise: many run at once."""
    environment = {"REMUDA_METRICS__LISTEN": "127.0.0.1:0", **(environment or {})}
    return start(CODE, *_words(data, listen, *more), environment=environment, stdout=stdout)


def _words(data: Path, listen: str | None, *more: str) -> list[str]:
    where = [] if listen is None else ["--listen", listen]
    return ["up", "--data", str(data), *where, *more]


@contextmanager
def running(
    data: Path, *more: str, listen: str | None = "127.0.0.1:0", environment: Mapping[str, str] | None = None
) -> Iterator[Running]:
    """Start it and wait until it says that it is ready."""
    with up(data, listen, *more, environment=environment) as process:
        yield from _until_ready(process, data)


@contextmanager
def running_cold(data: Path) -> Iterator[Running]:
    """Start it as a user does, and wait until it says that it is ready."""
    command = [*REMUDA, *_words(data, "127.0.0.1:0")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        yield from _until_ready(process, data)


def _until_ready(process: Forked | subprocess.Popen[str], data: Path) -> Iterator[Running]:
    try:
        assert process.stdout is not None
        said = []
        while not (ready := READY.match(line := process.stdout.readline())):
            assert line, f"it ended: {process.communicate()}"
            said.append(line)
        yield Running(process, ready[1], data, "".join(said))
    finally:
        process.kill()


def refused(data: Path, listen: str = "127.0.0.1:0", *more: str, environment: Mapping[str, str] | None = None) -> str:
    """Start it where it cannot run; return the one sentence it says."""
    with up(data, listen, *more, environment=environment) as process:
        out, error = process.communicate(timeout=120)
    assert (process.returncode, out) == (1, ""), error
    assert error.count("\n") == 1, error
    return error.strip()


def remuda(
    *words: str, environment: Mapping[str, str] | None = None, stdout: Any = subprocess.PIPE, code: str = CODE
) -> subprocess.CompletedProcess[str]:
    """Run another command."""
    with start(code, *words, environment=environment, stdout=stdout) as process:
        out, error = process.communicate(timeout=120)
        return subprocess.CompletedProcess(words, process.wait(), out, error)
