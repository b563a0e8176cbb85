"""`kill -9` of `remuda up` while customers use identity at random, and during its very first start.

What customers were told holds after each kill, and when everything has come to rest nothing is half done. REMUDA_KILLS
says how often it is killed.
"""

import asyncio
import os
import random
import re
import signal
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from remuda.app import registry
from remuda.identity.app import TABLE
from remuda.identity.operator_requests import seal_request
from remuda.identity.operator_tokens import new_request
from remuda.identity.settings import IdentitySettings
from remuda.kernel.clock import SystemClock
from remuda.kernel.errors import Unavailable
from remuda.kernel.randomness import SystemRandomness
from remuda.kernel.sealing import Sealer, load_keyring
from remuda.store.objects import ResourceT
from remuda.store.sqlite.store import open_store
from tests.kit.asgi.contract import Reply
from tests.kit.asgi.reference import response_contract
from tests.kit.processes.forked import Forked, start
from tests.kit.processes.program import CODE, READY
from tests.kit.sim_identity.customer import Customer
from tests.kit.sim_identity.expectations import Expecting
from tests.kit.sim_identity.history import claims_of
from tests.kit.sim_identity.invariants import check_always
from tests.kit.sim_identity.members import Members
from tests.kit.sim_identity.quiescence import unrest
from tests.kit.sim_identity.readers import Readers
from tests.kit.sim_identity.snapshot import IdentitySnapshots
from tests.kit.sim_identity.spenders import Spenders
from tests.kit.sim_identity.tenants import Tenants
from tests.kit.simulation.faults import FaultMenu

KILLS = int(os.environ.get("REMUDA_KILLS", "3"))
FIRST_STARTS = 2 + KILLS // 10
MAX_LIFE_S, MAX_START_S = 0.8, 0.5
CUSTOMERS = 6
REST_S = 60.0
ROOT = "admin@remuda.local"
PASSWORD = re.compile(r"^ {4}(\S{23})$", re.MULTILINE)
ENVIRONMENT = {
    "REMUDA_SERVER__PUBLIC_URL": "http://remuda.test",
    "REMUDA_IDENTITY__INTENT_LIFETIME": "3s",
    "REMUDA_IDENTITY__DEVICE_CODE_LIFETIME": "1s",
    "REMUDA_SERVER__RATE_LIMIT": "1000000",
}
SETTINGS = IdentitySettings(intent_lifetime=timedelta(seconds=3))


class RealMachine:
    """This machine."""

    clock, randomness, faults, is_down = SystemClock(), SystemRandomness(), FaultMenu(0), False

    async def open(self) -> Any:
        """Nobody but the process opens its store."""
        raise NotImplementedError

    async def close(self, store: Any) -> None:
        """Nobody closes it."""
        raise NotImplementedError


class Outside(Expecting):
    """Identity in a process that may be gone at any moment."""

    root_subject = ROOT

    def __init__(self, data: Path) -> None:
        super().__init__(RealMachine(), SETTINGS)
        self.history.subjects |= {ROOT}
        self._data = data
        self._http: httpx2.AsyncClient | None = None
        self._root: tuple[str, Mapping[str, Any]] | None = None

    @asynccontextmanager
    async def _at(self, url: str) -> AsyncIterator[None]:
        """Ask whoever answers here."""
        async with httpx2.AsyncClient(base_url=f"{url}/identity", timeout=120, trust_env=False) as self._http:
            yield
        self.history.settle()

    def client(self, token: str | None) -> "Caller":
        assert self._http is not None, "there is somebody to ask"
        return Caller(self._http, token)

    async def root(self) -> str:
        if self._root is None or not self.is_in_time(self._root[1]):
            asked = new_request(
                clock=self.machine.clock,
                randomness=self.machine.randomness,
                subject=ROOT,
                lifetime=timedelta(minutes=30),
                operator="test",
                reason="to see",
            )
            sealed = seal_request(asked, self._sealer()).reveal()
            reply = await self.client(None).send("POST", "/api/v1/operator/tokens", body={"request": sealed})
            if reply.status != 200:
                raise Unavailable("nobody answers")
            self._root = reply.json["accessToken"], claims_of(reply.json["accessToken"])
        return self._root[0]

    async def read(self, kind: type[ResourceT]) -> Sequence[ResourceT]:  # noqa: ARG002  only the process can
        return ()

    def is_undoing(self, subject: str) -> bool:  # noqa: ARG002  nobody can tell from outside
        return True

    async def use(self, url: str, process: Forked, life_s: float) -> None:
        """Let customers act at random for so long, and kill the process then."""
        asyncio.get_running_loop().call_later(life_s, process.kill)
        async with self._at(url):
            await asyncio.gather(*[self._act(process) for _ in range(CUSTOMERS)])

    async def _act(self, process: Forked) -> None:
        crowd: list[Customer] = [role(self) for role in (Tenants, Members, Spenders, Readers)]
        while process.poll() is None:
            try:
                await crowd[self.machine.randomness.randrange(len(crowd))].act()  # type: ignore[attr-defined]  # everybody in it acts
            except Unavailable:
                await self.machine.clock.sleep(0.05)

    async def look(self) -> list[str]:
        """Hold the guarantees against what a process left, and return what is not at rest."""
        store = open_store(self._data / "remuda.db", registry(), self._sealer())
        try:
            seen = await IdentitySnapshots(store).take()
            check_always(seen, self.history)
            return unrest(seen, self.history, self.machine.clock.now(), is_cleared=False)
        finally:
            await store.close()

    async def try_all(self, url: str) -> None:
        """See that every token is good exactly if it should be."""
        async with self._at(url):
            await Readers(self).try_all()

    def _sealer(self) -> Sealer:
        return Sealer(load_keyring(self._data / "keys.json"))


class Caller:
    """Sends requests over a socket; where nobody answers, that is 503."""

    def __init__(self, http: httpx2.AsyncClient, token: str | None) -> None:
        self._http, self._token = http, token

    async def send(
        self,
        method: str,
        path: str,
        *,
        query: Any = (),
        body: Any = None,
        form: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        sent = dict(headers or {}) | ({"authorization": f"Bearer {self._token}"} if self._token else {})
        options: dict[str, Any] = {"json": body} if body is not None else {"data": form} if form is not None else {}
        try:
            answer = await self._http.request(method, path, params=dict(query), headers=sent, **options)
        except httpx2.HTTPError:
            return Reply(503, {}, b"{}")
        reply = Reply(answer.status_code, dict(answer.headers), answer.content)
        response_contract(TABLE).check(method, path, reply)
        return reply


@contextmanager
def starting(data: Path) -> Iterator[Forked]:
    """Start it, and end it at the latest when the block ends."""
    words = ("up", "--data", str(data), "--listen", "127.0.0.1:0")
    with (data.parent / "log").open("a") as log:
        process = start(CODE, *words, environment=ENVIRONMENT, stderr=log)
    with process:
        try:
            yield process
        finally:
            process.kill()


def until_ready(process: Forked) -> tuple[str, str]:
    """Return where it answers, and what it said before."""
    assert process.stdout is not None
    said = ""
    for line in process.stdout:
        if ready := READY.match(line):
            return ready[1], said
        said += line
    raise AssertionError(f"it ended: {said}")


def check_credentials(data: Path, url: str) -> None:
    """What scripts need is in the file, and good."""
    found = httpx2.Response(200, content=(data / "credentials.json").read_bytes()).json()
    path = f"/api/v1/organizations/{found['organizationId']}/projects/{found['projectId']}"
    headers = {"Authorization": f"Bearer {found['token']}"}
    assert httpx2.get(f"{url}/identity{path}", headers=headers).status_code == 200


def test_identity_that_is_killed_again_and_again_keeps_what_it_told(tmp_path: Path) -> None:
    draws, data = random.Random(), tmp_path / "data"
    outside = Outside(data)
    for _ in range(KILLS):
        with starting(data) as process:
            url, _ = until_ready(process)
            check_credentials(data, url)
            asyncio.run(outside.use(url, process, draws.uniform(0.05, MAX_LIFE_S)))
        asyncio.run(outside.look())
    ends, left = time.monotonic() + REST_S, ["it was not looked at"]
    while left:
        assert time.monotonic() < ends, f"no rest: {left}"
        with starting(data) as process:
            url, _ = until_ready(process)
            asyncio.run(outside.try_all(url))
            time.sleep(2)
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=120) == 0
        left = asyncio.run(outside.look())
    assert outside.history.known["organization"], "somebody was served"
    assert outside.history.tokens, "somebody was given a token"


@pytest.mark.parametrize("number", range(FIRST_STARTS))
def test_a_first_start_that_is_killed_at_any_moment_is_finished_by_the_next(tmp_path: Path, number: int) -> None:
    draws, data, passwords = random.Random(), tmp_path / "data", []
    for _ in range(2):
        with starting(data) as process:
            time.sleep(draws.uniform(0.02, MAX_START_S))
            process.kill()
            assert process.stdout is not None
            passwords += PASSWORD.findall(process.stdout.read())
    with starting(data) as process:
        url, said = until_ready(process)
        passwords += PASSWORD.findall(said)
        check_credentials(data, url)
        new = f"{number} and eleven more"
        form = {"email": ROOT, "password": passwords[-1], "new_password": new, "repeated_password": new}
        chosen = httpx2.post(f"{url}/identity/oauth2/v2/password", data=form)
        assert chosen.status_code == 200, "whoever read the last password can log in"
