"""`remuda up` as a process of its own."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

READY = re.compile(r"^Remuda is ready at (http://\S+) \(data in (.+)\)\. Stop it with Ctrl-C\.\n$")
UNPRIVILEGED = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []
"""Goes before a command: the modes of files then count for root, too."""
REMUDA = [sys.executable, "-c", "import sys; from remuda.cli import main; sys.exit(main())"]


@dataclass(frozen=True)
class Running:
    process: subprocess.Popen[str]
    url: str
    data: Path
    said: str
    """What it said before it was ready."""

    @property
    def credentials(self) -> Mapping[str, Any]:
        """What scripts find."""
        found: Mapping[str, Any] = json.loads((self.data / "credentials.json").read_text())
        return found

    def stop(self, how: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """Send a signal; return the exit code and the log."""
        self.process.send_signal(how)
        _, log = self.process.communicate(timeout=30)
        return self.process.returncode, log


def up(
    data: Path,
    listen: str | None = "127.0.0.1:0",
    *more: str,
    environment: Mapping[str, str] | None = None,
    stdout: Any = subprocess.PIPE,
) -> subprocess.Popen[str]:
    where = [] if listen is None else ["--listen", listen]
    return subprocess.Popen(
        [*REMUDA, "up", "--data", str(data), *where, *more],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **(environment or {})},
    )


@contextmanager
def running(
    data: Path, *more: str, listen: str | None = "127.0.0.1:0", environment: Mapping[str, str] | None = None
) -> Iterator[Running]:
    """Start it and wait until it says that it is ready."""
    with up(data, listen, *more, environment=environment) as process:
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
        out, error = process.communicate(timeout=30)
    assert (process.returncode, out) == (1, ""), error
    assert error.count("\n") == 1, error
    return error.strip()


def remuda(
    *words: str,
    environment: Mapping[str, str] | None = None,
    stdout: Any = subprocess.PIPE,
    before: Sequence[str] = (),
) -> subprocess.CompletedProcess[str]:
    """Run another command, with `before` before it."""
    return subprocess.run(
        [*before, *REMUDA, *words],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, **(environment or {})},
    )
