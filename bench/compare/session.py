"""One turn of one program: its commands, its starts, and in between the same requests over and over.

A turn repeats its work in short cycles, and of each measure the best cycle counts: other users of the machine can only
slow a cycle down, and for most measures the best one differs least from turn to turn. Only what the contract of the API
names is sent and read, so that both revisions understand it, and besides that `limit`.
"""

import asyncio
import json
import statistics
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from bench.compare.client import Client, Request, Response
from bench.compare.program import ComparisonError, Program, Server, serve

__all__ = ["FULL", "QUICK", "UNITS", "Sizes", "run_session"]

ResultT = TypeVar("ResultT")

HELP_CPU, HELP_WALL = "remuda --help: CPU", "remuda --help: wall"
NETWORK_CPU = "network create until provisioned: CPU"
INSTANCE_CPU = "instance create until provisioned: CPU"
INSTANCE_WALL = "instance create until provisioned: wall each"
POST_P50, POST_P99 = "POST of an instance: p50", "POST of an instance: p99"
GET_CPU = "GET of an instance: CPU"
PAGE_CPU, LIST_CPU = "LIST of a page of 100 instances: CPU", "LIST of all instances: CPU"
PUT_CPU = "PUT of an instance until provisioned: CPU"
DELETE_CPU = "DELETE of an instance until gone: CPU"
MEMORY = "resident memory after the run"

UNITS = {
    HELP_CPU: "ms",
    HELP_WALL: "ms",
    "first start until ready: CPU": "s",
    "first start until ready: wall": "s",
    "next start until ready: CPU": "s",
    "next start until ready: wall": "s",
    NETWORK_CPU: "ms",
    INSTANCE_CPU: "ms",
    INSTANCE_WALL: "ms",
    POST_P50: "ms",
    POST_P99: "ms",
    GET_CPU: "µs",
    PAGE_CPU: "µs",
    LIST_CPU: "µs",
    PUT_CPU: "ms",
    DELETE_CPU: "ms",
    MEMORY: "MiB",
}
"""The unit of each measure. Of all of them less is better."""

_ADMINISTRATOR = "admin@remuda.local"
_PAGE = 100
_READERS = 4
"""Connections that read: few, because opening one costs as much as some requests."""
_LOOK_S = 0.1
_MAX_LOOKS = 600
_QUIET_S = 0.002
"""A process that uses no more CPU than this from one look to the next has nothing to do."""
_POLL_S = 0.005
_POLLED_S = 120.0
_OK = frozenset({200, 201, 202, 204})
_GONE = 404


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """The amount of work in one turn."""

    commands: int
    starts: int
    cycles: int
    networks: int
    """Networks, instances, gets and lists are those of one cycle."""
    instances: int
    gets: int
    lists: int


FULL = Sizes(commands=5, starts=2, cycles=10, networks=5, instances=100, gets=200, lists=20)
QUICK = Sizes(commands=3, starts=1, cycles=3, networks=5, instances=60, gets=200, lists=20)


def run_session(program: Program, directory: Path, sizes: Sizes, *, seed: int) -> dict[str, float]:
    """Run one turn of a program in an empty directory; return the value of each measure."""
    help_wall, help_cpu = zip(*(program.timed("--help", seed=seed) for _ in range(sizes.commands)), strict=True)
    values = {HELP_WALL: min(help_wall) * 1e3, HELP_CPU: min(help_cpu) * 1e3}
    data = directory / "data"
    first = [_started(program, directory / f"first-{number}", seed=seed) for number in range(sizes.starts - 1)]
    with serve(program, data, seed=seed) as server:
        first.append(server)
        token = program.run(
            "token", "issue", "--subject", _ADMINISTRATOR, "--reason", "benchmark", "--data", str(data), seed=seed
        )
        values |= asyncio.run(_Session(server, token.strip(), sizes).run())
    following = [_started(program, data, seed=seed) for _ in range(sizes.starts)]
    return values | _start_values("first", first) | _start_values("next", following)


def _started(program: Program, data: Path, *, seed: int) -> Server:
    with serve(program, data, seed=seed) as server:
        return server


def _start_values(start: str, servers: Sequence[Server]) -> dict[str, float]:
    return {
        f"{start} start until ready: wall": min(server.start_wall_s for server in servers),
        f"{start} start until ready: CPU": min(server.start_cpu_s for server in servers),
    }


class _Session:
    """The requests of one turn."""

    def __init__(self, server: Server, administrator: str, sizes: Sizes) -> None:
        credentials = json.loads((server.data / "credentials.json").read_text(encoding="utf-8"))
        self._server, self._sizes = server, sizes
        self._tenant = {key: credentials[key] for key in ("organizationId", "projectId")}
        self._region_id = credentials["regionId"]
        self._spec = {key: credentials[key] for key in ("flavorId", "imageId")}
        self._client = Client(server.port, credentials["token"])
        self._administrator = Client(server.port, administrator)
        self._found: defaultdict[str, list[float]] = defaultdict(list)

    async def run(self) -> dict[str, float]:
        """Send everything; return the value of each measure."""
        await self._raise_quotas()
        (network,) = await self._create_networks(["network"])
        await self._create_instances("standing", network, _PAGE)
        await self._until_quiet()
        await self._cycle("warm", network)
        self._found.clear()
        for number in range(self._sizes.cycles):
            await self._cycle(f"cycle-{number}", network)
        return {measure: min(found) for measure, found in self._found.items()} | {MEMORY: self._server.resident_mib()}

    async def _cycle(self, name: str, network: str) -> None:
        """Create, read, change and delete, and note what each took."""
        sizes, count = self._sizes, self._sizes.instances
        names = [f"{name}-{number}" for number in range(sizes.networks)]
        await self._measure(NETWORK_CPU, sizes.networks * 1e-3, lambda: self._create_networks(names))
        ids = await self._measure(INSTANCE_CPU, count * 1e-3, lambda: self._create_instances(name, network, count))
        await self._measure(GET_CPU, sizes.gets * 1e-6, lambda: self._get(ids))
        await self._measure(PAGE_CPU, sizes.lists * 1e-6, lambda: self._list(f"?limit={_PAGE}", _PAGE))
        await self._measure(LIST_CPU, sizes.lists * 1e-6, lambda: self._list("", _PAGE + count))
        await self._measure(PUT_CPU, count * 1e-3, lambda: self._describe(ids, name))
        await self._measure(DELETE_CPU, count * 1e-3, lambda: self._delete(ids))

    async def _measure(self, measure: str, parts: float, work: Callable[[], Awaitable[ResultT]]) -> ResultT:
        """Do some work while the server is at rest; note the CPU of each part until it is at rest again."""
        before = self._server.cpu_s()
        result = await work()
        self._found[measure].append((await self._until_quiet() - before) / parts)
        return result

    async def _until_quiet(self) -> float:
        """Return how much CPU the server had used when it had no more to do."""
        used = self._server.cpu_s()
        for _ in range(_MAX_LOOKS):
            await asyncio.sleep(_LOOK_S)
            before, used = used, self._server.cpu_s()
            if used - before <= _QUIET_S:
                return before
        raise ComparisonError("The server does not come to rest.")

    async def _raise_quotas(self) -> None:
        quotas = [{"kind": kind, "quantity": 10_000} for kind in ("servers", "networks")]
        path = f"/identity/api/v1/organizations/{self._tenant['organizationId']}/quotas"
        _check([await self._administrator.send(Request("PUT", path, {"quotas": quotas}))])

    async def _create_networks(self, names: Sequence[str]) -> list[str]:
        """Create networks one after the other: many at once compete for their project, and may get 409."""
        spec = {**self._tenant, "regionId": self._region_id, "prefix": "10.0.0.0/16", "dnsNameservers": []}
        bodies = ({"metadata": {"name": name}, "spec": spec} for name in names)
        wanted = [Request("POST", "/region/api/v2/networks", body) for body in bodies]
        ids = [_id(each) for each in _check(await self._client.send_all(wanted, connections=1))]
        await self._poll([f"/region/api/v2/networks/{each}" for each in ids], _is_provisioned)
        return ids

    async def _create_instances(self, name: str, network: str, count: int) -> list[str]:
        spec = {**self._tenant, **self._spec, "networkId": network}
        bodies = ({"metadata": {"name": f"{name}-{number}"}, "spec": spec} for number in range(count))
        wanted = [Request("POST", "/compute/api/v2/instances", body) for body in bodies]
        began = time.perf_counter()
        responses = _check(await self._client.send_all(wanted))
        ids = [_id(each) for each in responses]
        await self._poll([_path(each) for each in ids], _is_provisioned)
        self._found[INSTANCE_WALL].append((time.perf_counter() - began) / count * 1e3)
        percentiles = statistics.quantiles([each.seconds * 1e3 for each in responses], n=100, method="inclusive")
        self._found[POST_P50].append(percentiles[49])
        self._found[POST_P99].append(percentiles[98])
        return ids

    async def _get(self, ids: Sequence[str]) -> None:
        wanted = (Request("GET", _path(ids[number % len(ids)])) for number in range(self._sizes.gets))
        _check(await self._client.send_all(wanted, connections=_READERS))

    async def _list(self, query: str, expected: int) -> None:
        request = Request("GET", f"/compute/api/v2/instances{query}")
        responses = _check(await self._client.send_all([request] * self._sizes.lists, connections=_READERS))
        if (found := len(responses[0].json())) != expected:
            raise ComparisonError(f"GET {request.path} returned {found} instances, not {expected}.")

    async def _describe(self, ids: Sequence[str], name: str) -> None:
        """Give each instance a description; its name and all else stay."""
        bodies = (
            {"metadata": {"name": f"{name}-{number}", "description": "changed"}, "spec": self._spec}
            for number in range(len(ids))
        )
        wanted = [Request("PUT", _path(each), body) for each, body in zip(ids, bodies, strict=True)]
        _check(await self._client.send_all(wanted))
        await self._poll([_path(each) for each in ids], _is_provisioned)

    async def _delete(self, ids: Sequence[str]) -> None:
        _check(await self._client.send_all(Request("DELETE", _path(each)) for each in ids))
        await self._poll([_path(each) for each in ids], lambda response: response.status == _GONE)

    async def _poll(self, paths: Sequence[str], is_done: Callable[[Response], bool]) -> None:
        """Read each of these until it is done, one after the other, so that few requests are added."""
        ends = time.perf_counter() + _POLLED_S
        async with self._client.connected() as send:
            for path in paths:
                while not is_done(response := await send(Request("GET", path))):
                    if time.perf_counter() > ends:
                        raise ComparisonError(f"GET {path} still returns {response.status}: {response.body.decode()}")
                    await asyncio.sleep(_POLL_S)


def _path(identifier: str) -> str:
    return f"/compute/api/v2/instances/{identifier}"


def _id(response: Response) -> str:
    identifier: str = response.json()["metadata"]["id"]
    return identifier


def _is_provisioned(response: Response) -> bool:
    metadata: dict[str, Any] = _check([response])[0].json()["metadata"]
    if metadata["provisioningStatus"] == "error":
        raise ComparisonError(f"The server could not provision what was created: {response.body.decode()}")
    return bool(metadata["provisioningStatus"] == "provisioned")


def _check(responses: Iterable[Response]) -> list[Response]:
    """Return these responses if all are successful."""
    found = list(responses)
    for each in found:
        if each.status not in _OK:
            raise ComparisonError(f"The server returned {each.status}: {each.body.decode()}")
    return found
