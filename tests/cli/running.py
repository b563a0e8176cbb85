"""`remuda up` as a process of its own."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

READY = re.compile(r"^Remuda is ready at (http://\S+) \(data in (.+)\)\. Stop it with Ctrl-C\.\n$")


@dataclass(frozen=True)
class Running:
    process: subprocess.Popen[str]
    url: str

    def stop(self, how: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """Send a signal; return the exit code and the log."""
        self.process.send_signal(how)
        _, log = self.process.communicate(timeout=30)
        return self.process.returncode, log


def up(data: Path, listen: str = "127.0.0.1:0") -> subprocess.Popen[str]:
    command = [sys.executable, "-c", "import sys; from remuda.cli import main; sys.exit(main())", "up"]
    return subprocess.Popen(
        [*command, "--data", str(data), "--listen", listen],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@contextmanager
def running(data: Path) -> Iterator[Running]:
    """Start it and wait until it says that it is ready."""
    with up(data) as process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            ready = READY.match(said)
            assert ready, said
            yield Running(process, ready[1])
        finally:
            process.kill()


def refused(data: Path, listen: str = "127.0.0.1:0") -> str:
    """Start it where it cannot run; return the one sentence it says."""
    with up(data, listen) as process:
        out, error = process.communicate(timeout=30)
    assert (process.returncode, out) == (1, "")
    assert error.count("\n") == 1
    return error.strip()
