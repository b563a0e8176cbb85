"""`remuda up` in a process of its own, over a simulated cloud in which nothing takes time."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from bench.cpu import of_process
from bench.region.catalogue import FLAVOR, IMAGE, TOML
from remuda.datadir import DataDirectory

__all__ = ["Process", "running", "serving"]

_ADMINISTRATOR = "admin@remuda.local"
_READY = "Remuda is ready at "
_CONFIGURATION = "remuda.toml"
_PROGRAM = str(Path(sys.executable).parent / "remuda")


@dataclass(frozen=True, slots=True)
class Process:
    """A process that serves."""

    pid: int
    port: int
    token: str
    """Whose requests it takes."""
    place: dict[str, Any]
    """What the first start made, as `credentials.json` has it."""
    started_s: float
    """How long it took until it said that it is ready."""
    started_cpu_s: float
    """How much CPU that was."""

    def post(self, path: str, name: str, spec: Any) -> bytes:
        """Return the request that makes something."""
        return self.request("POST", path, {"metadata": {"name": name}, "spec": spec})

    def request(self, method: str, path: str, content: Any) -> bytes:
        """Return a request as it goes over the wire."""
        body = msgspec.json.encode(content)
        lines = (
            f"{method} {path} HTTP/1.1",
            "Host: bench",
            f"Authorization: Bearer {self.token}",
            "Content-Type: application/json",
            f"Content-Length: {len(body)}",
        )
        return "\r\n".join((*lines, "", "")).encode() + body

    def network(self, name: str) -> bytes:
        """Return the request for a network."""
        named = {key: self.place[key] for key in ("organizationId", "projectId", "regionId")}
        return self.post("/region/api/v2/networks", name, named | {"prefix": "10.0.0.0/16", "dnsNameservers": []})

    def server(self, network: str, name: str) -> bytes:
        """Return the request for a server."""
        return self.post("/region/api/v2/servers", name, {"networkId": network, "flavorId": FLAVOR, "imageId": IMAGE})

    def instance(self, network: str, name: str) -> bytes:
        """Return the request for an instance."""
        named = {key: self.place[key] for key in ("organizationId", "projectId")}
        spec = named | {"networkId": network, "flavorId": FLAVOR, "imageId": IMAGE}
        return self.post("/compute/api/v2/instances", name, spec)

    def quotas(self, **quantities: int) -> bytes:
        """Return the request that sets quotas."""
        limits = [{"kind": kind, "quantity": quantity} for kind, quantity in quantities.items()]
        path = f"/identity/api/v1/organizations/{self.place['organizationId']}/quotas"
        return self.request("PUT", path, {"quotas": limits})


@contextmanager
def serving(directory: Path, *, settings: str = "") -> Iterator[Process]:
    """Have it run while the block does, with these settings; requests are those of a platform administrator."""
    with running(directory, settings=settings) as process:
        options = ["--data", str(directory), "--config", str(directory / _CONFIGURATION)]
        command = [_PROGRAM, "token", "issue", "--subject", _ADMINISTRATOR, "--lifetime", "1h", *options]
        issued = subprocess.run(command, check=True, capture_output=True, text=True)
        yield replace(process, token=issued.stdout.strip())


@contextmanager
def running(
    directory: Path, *, settings: str = "", listen: str = "127.0.0.1:0", log: Path = Path(os.devnull)
) -> Iterator[Process]:
    """Have it run while the block does, with these settings beside those that nothing is measured without.

    Requests are those of the service account whose token the first start has written.
    """
    catalogue, configuration = directory / "catalogue.toml", directory / _CONFIGURATION
    catalogue.write_text(TOML)
    configuration.write_text(
        f'[server]\nrate_limit = 1000000000\n[region]\ninstant = true\ncatalogue = "{catalogue}"\n{settings}'
    )
    command = [_PROGRAM, "up", "--data", str(directory), "--config", str(configuration), "--listen", listen]
    began = time.perf_counter()
    with (
        log.open("ab") as lines,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=lines, text=True) as process,
    ):
        assert process.stdout is not None
        ready = next(line for line in process.stdout if line.startswith(_READY))
        started_s, started_cpu_s = time.perf_counter() - began, of_process(process.pid)
        port = int(ready.removeprefix(_READY).split()[0].rpartition(":")[2])
        place = msgspec.json.decode(DataDirectory(directory).credentials.read_bytes())
        try:
            yield Process(process.pid, port, place["token"], place, started_s, started_cpu_s)
        finally:
            process.terminate()
            process.communicate()
    assert process.returncode == 0, "the server ended well"
