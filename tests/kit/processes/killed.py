"""Real processes with a store of their own."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[3]


@contextmanager
def victim(path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process that writes to the store in `path` without end; when this returns, it has begun to."""
    command = [sys.executable, "-m", "tests.kit.processes.writer", str(path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.peek(1), "the victim ended before it wrote anything"  # type: ignore[attr-defined]  # a pipe is buffered
            yield process
        finally:
            process.kill()


def kill(process: subprocess.Popen[bytes]) -> dict[str, int]:
    """Kill a victim as it writes; return the last write that each of its writers was told of."""
    process.kill()
    assert process.stdout is not None
    lines = process.stdout.read().decode().splitlines(keepends=True)
    words = [line.split() for line in lines if line.endswith("\n")]
    return {name: int(number) for name, number in words}
