"""Following a service in another process that is killed in the middle of it, and comes back."""

import asyncio
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx2

from remuda.clients.transport import remote
from remuda.http.client import Client
from remuda.identity.api import IdentityApi
from remuda.identity.app import TABLE as IDENTITY
from remuda.kernel.clock import SystemClock
from remuda.kernel.randomness import SystemRandomness
from tests.kit.both_transports import QUICK, Certified, Following, free_port
from tests.kit.identity.service_credentials import environment
from tests.kit.processes.program import Running, running


async def test_nothing_is_missed_when_the_other_process_is_killed_and_comes_back(tmp_path: Path) -> None:
    listen = f"127.0.0.1:{free_port()}"
    with _up(tmp_path, listen) as first:
        mine = _projects(first)
        async with _following(first) as following:
            before = set(await following.until_synced())
            seen = _make(mine, "seen")
            while (
                following.known.get(seen) is None or following.known[seen].metadata.provisioning_status != "provisioned"
            ):
                await following.next()
            hearing = asyncio.create_task(following.next())
            first.process.send_signal(signal.SIGKILL)
            await asyncio.to_thread(first.process.wait)
            assert not hearing.done(), "that a server is gone is nothing to be told"
            with _up(tmp_path, listen) as second:
                late = await asyncio.to_thread(_make, _projects(second), "late")
                await hearing
                while late not in following.known:
                    await following.next()
                assert set(following.known) == before | {seen, late}
                await asyncio.to_thread(second.stop)


def _status(project: Any) -> str:
    return str(project.metadata.provisioning_status)


@contextmanager
def _up(directory: Path, listen: str) -> Iterator[Running]:
    try:
        with running(directory / "data", listen=listen, environment=environment(directory)) as process:
            yield process
    except subprocess.TimeoutExpired as late:
        raise AssertionError("it does not stop") from late


@asynccontextmanager
async def _following(process: Running) -> AsyncIterator[Following]:
    clock, randomness = SystemClock(), SystemRandomness()
    async with Client(
        process.credentials["endpoints"]["identity"],
        credentials=Certified(),
        clock=clock,
        randomness=randomness,
        settings=QUICK,
    ) as client:
        following = Following(
            remote(IdentityApi, IDENTITY, client, clock=clock, randomness=randomness).watch_all_projects()
        )
        try:
            yield following
        finally:
            await following.close()


def _projects(process: Running) -> Any:
    """Return how to ask for the projects of the organization that a new system has."""
    found = process.credentials
    organization = f"{found['endpoints']['identity']}/api/v1/organizations/{found['organizationId']}"
    return f"{organization}/projects", {"Authorization": f"Bearer {found['token']}"}


def _make(where: Any, name: str) -> str:
    path, headers = where
    answer = httpx2.post(path, headers=headers, json={"metadata": {"name": name}, "spec": {"groupIDs": []}})
    assert answer.status_code == 202, answer.text
    return str(answer.json()["metadata"]["id"])
