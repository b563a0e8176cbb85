"""Identity on a real socket, with its controllers at work, on a loop and a thread of its own: what is fuzzed."""

import asyncio
import base64
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from typing import Any

import requests
import uvloop

from remuda.identity.operator_passwords import PasswordRequest
from remuda.identity.operator_requests import request_of, seal_request
from remuda.identity.operator_tokens import new_request
from remuda.kernel.randomness import SystemRandomness
from tests.kit.identity.environment import ROOT, IdentityEnvironment
from tests.kit.identity.launch import running, serving
from tests.kit.simulation.disk import memory_directory
from tests.kit.simulation.store import SEALER

ORGANIZATIONS = "/api/v1/organizations"
CLIENTS = "/api/v1/oauth2clients"
DOMAIN = "claimed.example.com"
CALLBACK = "https://app.example.com/callback"
_TIMEOUT_S = 30


@dataclass(frozen=True)
class IdentitySetup:
    """What stays: nothing that is made up takes it away."""

    organization: str
    project: str
    group: str
    client: str
    secret: str
    claiming: str
    """Another organization, which claims `DOMAIN`."""

    @property
    def ids(self) -> frozenset[str]:
        """What it is made of."""
        return frozenset({self.organization, self.project, self.group, self.client, self.claiming})


@dataclass(frozen=True)
class IdentityTarget:
    """Identity, as seen from another thread."""

    url: str
    loop: asyncio.AbstractEventLoop
    identity: IdentityEnvironment
    setup: IdentitySetup
    session: requests.Session = field(default_factory=requests.Session)
    _counter: Iterator[int] = field(default_factory=count)

    @property
    def headers(self) -> dict[str, str]:
        """What one sends who may do everything."""
        return {"Authorization": f"Bearer {self.identity.root}"}

    @property
    def other_headers(self) -> Mapping[str, dict[str, str]]:
        """What some operations are sent instead: only a client or a service may look into tokens."""
        known = base64.b64encode(f"{self.setup.client}:{self.setup.secret}".encode()).decode()
        return {"introspect_token": {"Authorization": f"Basic {known}"}}

    def call(self, method: str, path: str, body: Any = None) -> requests.Response:
        """Send a request of our own, as one who may do everything."""
        return self.session.request(method, self.url + path, json=body, headers=self.headers, timeout=_TIMEOUT_S)

    def make(self, thing: str) -> str:
        """Make something that a path can be about, and return its id."""
        if thing == "suspensionID":
            made = self.call("POST", "/api/v1/suspensions", {"subject": self.person()})
            assert made.status_code == 201, made.text
            return str(made.json()["id"])
        name, inside = f"lent{next(self._counter)}", f"{ORGANIZATIONS}/{self.setup.organization}"
        makers: dict[str, tuple[str, Any]] = {
            "organizationID": (ORGANIZATIONS, {"organizationType": "adhoc"}),
            "projectID": (f"{inside}/projects", {"groupIDs": [self.setup.group]}),
            "groupid": (f"{inside}/groups", {"roleIDs": [], "serviceAccountIDs": []}),
            "userID": (f"{inside}/users", {"subject": self.person(), "state": "active", "groupIDs": []}),
            "serviceAccountID": (f"{inside}/serviceaccounts", {"groupIDs": []}),
            "providerID": (f"{inside}/oauth2providers", {"issuer": "https://idp.example.com", "clientID": "us"}),
            "allocationID": (
                f"{inside}/projects/{self.setup.project}/allocations",
                {"kind": "things.example.org", "id": name, "allocations": []},
            ),
            "clientID": (CLIENTS, {"redirectUris": [CALLBACK]}),
        }
        path, spec = makers[thing]
        made = self.call("POST", path, {"metadata": {"name": name}, "spec": spec})
        assert made.status_code in {201, 202}, made.text
        return str(made.json()["metadata"]["id"])

    def person(self) -> str:
        """Return the address of somebody new."""
        return f"person{next(self._counter)}@example.com"

    def known_person(self) -> str:
        """Return the address of a user."""
        subject = self.person()
        spec = {"subject": subject, "state": "active", "groupIDs": []}
        made = self.call("POST", f"{ORGANIZATIONS}/{self.setup.organization}/users", {"spec": spec})
        assert made.status_code == 201, made.text
        return subject

    def sealed(self) -> str:
        """Return what an operator at the machine sends, which is good once."""
        asked = new_request(
            clock=self.identity.clock,
            randomness=SystemRandomness(),
            subject=ROOT,
            lifetime=timedelta(minutes=1),
            operator="fuzz",
            reason="",
        )
        return seal_request(asked, SEALER).reveal()

    def sealed_password_request(self) -> str:
        """Return the same for a password link."""
        asked = request_of(
            PasswordRequest,
            clock=self.identity.clock,
            randomness=SystemRandomness(),
            subject=ROOT,
            operator="fuzz",
            reason="",
        )
        return seal_request(asked, SEALER).reveal()


@contextmanager
def serving_identity() -> Iterator[IdentityTarget]:
    """Run identity while the block runs."""
    ready: Future[tuple[IdentityTarget, asyncio.Event]] = Future()
    thread = threading.Thread(target=_run, args=(ready,), name="identity")
    thread.start()
    try:
        target, stop = ready.result(_TIMEOUT_S)
        try:
            yield target
        finally:
            target.session.close()
            target.loop.call_soon_threadsafe(stop.set)
    finally:
        thread.join(_TIMEOUT_S)


def _run(ready: "Future[tuple[IdentityTarget, asyncio.Event]]") -> None:
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_serve(ready))
    except BaseException as error:
        if ready.done():
            raise
        ready.set_exception(error)


async def _serve(ready: "Future[tuple[IdentityTarget, asyncio.Event]]") -> None:
    stop = asyncio.Event()
    with memory_directory() as directory:
        async with running(directory) as identity, serving(identity) as address:
            setup = await _setup(identity)
            target = IdentityTarget(f"http://{address}", asyncio.get_running_loop(), identity, setup)
            ready.set_result((target, stop))
            await stop.wait()


async def _setup(identity: IdentityEnvironment) -> IdentitySetup:
    organization = await identity.organization("setup")
    group = await identity.group(organization, "user")
    body = {"metadata": {"name": "app"}, "spec": {"redirectUris": [CALLBACK]}}
    made = (await identity.client(identity.root).post(CLIENTS, body)).json
    return IdentitySetup(
        organization=organization,
        project=await identity.project(organization, group),
        group=group,
        client=made["metadata"]["id"],
        secret=made["status"]["clientSecret"],
        claiming=await _claiming(identity),
    )


async def _claiming(identity: IdentityEnvironment) -> str:
    """Make an organization that claims a domain for a provider of its own."""
    organization, root = await identity.organization("claiming"), identity.client(identity.root)
    path, named = f"{ORGANIZATIONS}/{organization}", {"metadata": {"name": "claiming"}}
    spec = {"issuer": "https://idp.example.com", "clientID": "us"}
    provider = (await root.post(f"{path}/oauth2providers", {**named, "spec": spec})).json["metadata"]["id"]
    claim = {"organizationType": "domain", "domain": DOMAIN, "providerScope": "organization", "providerID": provider}
    assert (await root.put(path, {**named, "spec": claim})).status == 200
    return organization
