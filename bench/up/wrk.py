"""Load by Debian's `wrk`, which costs the machine little and knows nothing of ours."""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import msgspec

from bench.cpu import of_process
from tools import debian_programs

__all__ = ["Answered", "wrk"]

_UNPACKED = Path(__file__).parents[2] / ".wrk"
_SCRIPT = """
done = function(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format(
    '\\n{"requests":%d,"failed":%d,"p50_us":%d,"p99_us":%d,"duration_us":%d}\\n',
    summary.requests,
    errors.connect + errors.read + errors.write + errors.status + errors.timeout,
    latency:percentile(50), latency:percentile(99), summary.duration))
end
"""


class _Summary(msgspec.Struct):
    requests: int
    failed: int
    p50_us: float
    p99_us: float
    duration_us: float


@dataclass(frozen=True, slots=True)
class Answered:
    """What a server did in one turn."""

    cpu_us: float
    """CPU of the server for each request, all its threads together."""
    p50_ms: float
    p99_ms: float
    rate: float
    """Requests in a second."""


def wrk(pid: int, port: int, path: str, headers: Sequence[str], *, clients: int, seconds: int = 1) -> Answered:
    """Have clients send a GET again and again, each its next when the last is answered; every answer is 2xx or 3xx."""
    program, script = _program()
    command = [str(program), "--threads", "1", "--connections", str(clients), "--duration", f"{seconds}s"]
    command += [part for each in headers for part in ("--header", each)]
    before = of_process(pid)
    done = subprocess.run(
        [*command, "--script", str(script), f"http://127.0.0.1:{port}{path}"],
        check=True,
        capture_output=True,
        text=True,
        env=debian_programs.environment(_UNPACKED),
    )
    used = of_process(pid) - before
    summary = msgspec.json.decode(done.stdout.splitlines()[-1], type=_Summary)
    assert summary.requests, done.stdout
    assert not summary.failed, f"{summary.failed} of {summary.requests} requests to {path} failed"
    return Answered(
        used * 1e6 / summary.requests,
        summary.p50_us / 1e3,
        summary.p99_us / 1e3,
        summary.requests * 1e6 / summary.duration_us,
    )


@cache
def _program() -> tuple[Path, Path]:
    """Return the program, unpacked if this machine lacks it, and the script that has it say what it found."""
    program = debian_programs.install("wrk", _UNPACKED)
    script = _UNPACKED / "summary.lua"
    script.parent.mkdir(exist_ok=True)
    script.write_text(_SCRIPT)
    return program, script
