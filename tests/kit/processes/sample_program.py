"""The sample API in a process of its own, as in production: `... sample_program DATA S N [BYTES [TLS]]`.

It prints its port, and serves until it is stopped. S is the time limit of connections in seconds, N their number, and
BYTES the memory for requests and responses; then they are not validated, which would need memory, too. TLS is the
directory of the files that `server_files` writes.
"""

import asyncio
import resource
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import httpx2
import uvloop

from remuda.datadir import DataDirectory
from remuda.http.api import Api
from remuda.http.buffer_shares import DEFAULT_BYTES
from remuda.http.ratelimit import RateLimit
from remuda.http.server.exposition import MetricsSettings
from remuda.http.server.health import Mounted
from remuda.http.server.limits import ConnectionLimits
from remuda.http.server.server import ListenAddress
from remuda.http.server.tls import TlsSettings
from remuda.http.watch import WatchPorts
from remuda.process import ProcessPorts, ProcessServices, Settings, run
from tests.kit.asgi.api_ports import api_ports
from tests.kit.asgi.contract import contract_of
from tests.kit.asgi.validating import LINE, Validated
from tests.kit.certificates import written_files
from tests.kit.sample_api.server import SampleAuthenticator
from tests.kit.sample_api.service import TABLE, SampleService
from tests.kit.sample_kinds import REGISTRY

PREFIX = "/sample"
_ROOT = Path(__file__).parents[3]


@dataclass(frozen=True)
class SampleProcess:
    """A running process."""

    process: subprocess.Popen[str]
    port: int
    metrics_url: str

    @property
    def server(self) -> str:
        """Address of the process."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """Address of the sample API."""
        return self.server + PREFIX

    def memory(self) -> int:
        """Return how many bytes of memory the process has in use."""
        pages = Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(pages) * resource.getpagesize()

    def metrics(self) -> dict[str, float]:
        """Return every series with its value."""
        lines = httpx2.get(self.metrics_url).text.splitlines()
        pairs = [line.rpartition(" ") for line in lines if not line.startswith("#")]
        return {series: float(value) for series, _, value in pairs}

    def stop(self) -> int:
        """Stop it in order, and return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=60)


@contextmanager
def sample_process(
    data: Path, *, limit_s: float, connections: int, buffers: int | None = None, tls: Path | None = None
) -> Iterator[SampleProcess]:
    """Run the sample API until the process is stopped, or the block ends. TLS needs a limit of buffers."""
    options = [str(each) for each in (data, limit_s, connections, buffers, tls) if each is not None]
    command = [sys.executable, "-m", "tests.kit.processes.sample_program", *options]
    log = data.with_suffix(".log")
    with log.open("ab") as lines:
        process = subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.PIPE, stderr=lines, text=True)
    with process:
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline())
            yield SampleProcess(process, port, DataDirectory(data).metrics_at())
        finally:
            process.kill()
    assert LINE not in log.read_text(errors="replace"), f"a response is undocumented: see {log}"


@asynccontextmanager
async def services(ports: ProcessPorts, *, is_validated: bool) -> AsyncIterator[ProcessServices]:
    """Mount the sample API."""
    watch = WatchPorts(clock=ports.clock, closing=ports.closing)
    given = api_ports(
        ports.store,
        SampleAuthenticator(),
        clock=ports.clock,
        randomness=ports.randomness,
        watch=watch,
        quota=1_000_000,
        buffers=ports.buffer_shares,
    )
    plain = Api(TABLE, SampleService(ports.store), given)
    api = Validated(plain, contract_of(TABLE)) if is_validated else plain
    yield ProcessServices(mounted=[Mounted(PREFIX, TABLE, api)], checks=[])


async def main(data: Path, limit_s: float, connections: int, buffers: int | None, tls: Path | None) -> None:
    local = ListenAddress("127.0.0.1", 0)
    limits = ConnectionLimits(
        head_s=limit_s,
        body_stall_s=limit_s,
        read_stall_s=limit_s,
        linger_s=min(1.0, limit_s),
        connections=connections,
    )
    await run(
        Settings(
            data=data,
            listen=local,
            connection_limits=limits,
            buffered_bytes=DEFAULT_BYTES if buffers is None else buffers,
            rate=RateLimit(quota=1_000_000),
            metrics=MetricsSettings(listen=local),
            tls=None if tls is None else TlsSettings(written_files(tls)),
        ),
        announce=lambda address: print(address.port, flush=True),  # noqa: T201  how it is found
        services=partial(services, is_validated=buffers is None),
        kinds=REGISTRY,
    )


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        buffers = int(sys.argv[4]) if sys.argv[4:] else None
        tls = Path(sys.argv[5]) if sys.argv[5:] else None
        runner.run(main(Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), buffers, tls))
