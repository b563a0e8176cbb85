"""The livery in a process of its own, as production has it: `python -m tests.example.process DATA SECONDS MOST`.

It says its port, and serves until it is told to stop. Its pasture is a directory beside DATA and outlives it. SECONDS
is how much patience it has with clients, and MOST how many connections it takes.
"""

import asyncio
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import uvloop

from remuda.http.ratelimit import RateLimit
from remuda.http.server.connection import ConnectionLimits
from remuda.http.server.server import ListenAddress
from remuda.kernel.clock import SystemClock
from remuda.kernel.randomness import SystemRandomness
from remuda.process import Settings, run
from tests.example.app import registry
from tests.example.stone import StonePasture
from tests.kit.asgi.process_client import ask
from tests.kit.asgi.validating import LINE
from tests.kit.hosting import PREFIX, hosted

_ROOT = Path(__file__).parents[2]
_PATIENCE_S, _CONNECTIONS = 30.0, 10_000
_LOOK_AGAIN_S, _LOOK_EVERY_S = 0.1, 0.2


@dataclass(frozen=True)
class Standing:
    """A livery that runs."""

    process: subprocess.Popen[str]
    port: int

    @property
    def server(self) -> str:
        """Where the process answers."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """Where the livery answers."""
        return self.server + PREFIX

    def memory(self) -> int:
        """Return how many bytes of memory the process has in use."""
        pages = Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(pages) * resource.getpagesize()

    def metrics(self) -> dict[str, float]:
        """Return every series with its value."""
        lines = ask(f"{self.server}/metrics").text.splitlines()
        pairs = [line.rpartition(" ") for line in lines if not line.startswith("#")]
        return {series: float(value) for series, _, value in pairs}

    def stop(self) -> int:
        """Stop it in order, and return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=60)


def pasture_of(data: Path, *, latency_s: float = 0.005) -> StonePasture:
    """Return the pasture of the livery whose data are here."""
    return StonePasture(data.with_name(f"{data.name}-pasture"), SystemClock(), SystemRandomness(), latency_s=latency_s)


@contextmanager
def standing(
    data: Path, *, patience_s: float = _PATIENCE_S, connections: int = _CONNECTIONS, log: Path | None = None
) -> Iterator[Standing]:
    """Run the livery until it is stopped, killed, or the block ends."""
    command = [sys.executable, "-m", "tests.example.process", str(data), str(patience_s), str(connections)]
    told = log or data.with_suffix(".log")
    with told.open("ab") as lines:
        process = subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.PIPE, stderr=lines, text=True)
    with process:
        try:
            assert process.stdout is not None
            yield Standing(process, int(process.stdout.readline()))
        finally:
            process.kill()
    assert LINE not in told.read_text(errors="replace"), f"an answer was in no document: see {told}"


async def main(data: Path, patience_s: float, connections: int) -> None:
    patience = ConnectionLimits(
        head_s=patience_s,
        body_stall_s=patience_s,
        read_stall_s=patience_s,
        linger_s=min(1.0, patience_s),
        connections=connections,
    )
    await run(
        Settings(data=data, listen=ListenAddress("127.0.0.1", 0), connection_limits=patience),
        announce=lambda address: print(address.port, flush=True),  # noqa: T201  how it is found
        services=hosted(
            lambda _: pasture_of(data),
            rate=RateLimit(quota=1_000_000),
            look_again_s=_LOOK_AGAIN_S,
            look_every_s=_LOOK_EVERY_S,
        ),
        kinds=registry(),
    )


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])))
