"""The whole of identity on a real API server, in real time: its kinds, two processes, and customers at random."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from remuda.http.ratelimit import RateLimit
from remuda.identity.app import TABLE, IdentityApp
from remuda.identity.kinds.users import User, UserSpec, membership_id, user_id
from remuda.identity.ports import IdentityPorts
from remuda.identity.rbac.roles import role_id
from remuda.identity.settings import IdentitySettings
from remuda.kernel.clock import SystemClock
from remuda.kernel.errors import AlreadyExists
from remuda.kernel.randomness import SeededRandomness, SystemRandomness
from remuda.store.kubernetes.client import kubeconfig
from remuda.store.kubernetes.store import KubernetesStore, open_kubernetes_store
from remuda.store.objects import Metadata
from tests.kit.asgi.client import Client
from tests.kit.asgi.contract import Reply
from tests.kit.asgi.reference import response_contract
from tests.kit.asgi.validating import Validated
from tests.kit.identity.login import ISSUER, nobody_answers, nothing_published
from tests.kit.identity.resource_api import registry
from tests.kit.sim_identity.guests import Guests
from tests.kit.sim_identity.invariants import check_always
from tests.kit.sim_identity.setup import CROWD, ROOT, Pace
from tests.kit.sim_identity.system import IdentitySystem
from tests.kit.simulation.checks import check_log
from tests.kit.simulation.faults import FaultMenu, assert_all_fired
from tests.kit.simulation.store import SEALER
from tests.kubernetes.cluster import Cluster, OwnCluster
from tests.kubernetes.harness import settings_for

pytestmark = pytest.mark.kubernetes

REGISTRY = registry()
SETTINGS = IdentitySettings(issuer=ISSUER, platform_administrators=(ROOT,), intent_lifetime=timedelta(seconds=5))
TIMEOUT_S = 20.0
ORGANIZATIONS = "/api/v1/organizations"
PACE = Pace(pause_s=0.3, look_every_s=1.0, rest_s=120.0)
RATES = {
    "watch.dropped": 0.05,
    "watch.doubled": 0.1,
    "watch.gone": 0.05,
    "control.restart": 0.3,
    "leader.two": 0.6,
}
SEEDS, BOOTS, CUSTOMERS, ACTS = 2, 2, 4, 10
_COLLECTOR_LOOKS_EVERY_S = 35


@pytest.fixture(scope="module")
def identity_cluster(cluster: Cluster) -> Cluster:
    """The API server with identity's kinds, of which the garbage collector knows."""
    if cluster.define(REGISTRY):
        if isinstance(cluster, OwnCluster):
            cluster.plane.restart("controller-manager")
        else:
            time.sleep(_COLLECTOR_LOOKS_EVERY_S)
    return cluster


async def opened(cluster: Cluster, namespace: str) -> KubernetesStore:
    settings = settings_for(namespace)
    at_once = replace(settings, reader=replace(settings.reader, slice_objects=1000))
    return await open_kubernetes_store(kubeconfig(cluster.kubeconfig), REGISTRY, SEALER, settings=at_once)


@dataclass(frozen=True)
class Process:
    """Identity with a store of its own, as in a process of its own."""

    app: IdentityApp
    door: Validated

    async def ask(self, token: str | None, method: str, path: str, body: Any = None, form: Any = None) -> Reply:
        """Ask it for something."""
        return await Client(app=self.door, token=token).send(method, path, body=body, form=form)

    async def told(self, token: str, method: str, path: str, body: Any = None) -> Any:
        """Ask it for something that it gives."""
        reply = await self.ask(token, method, path, body)
        assert reply.status < 300, (method, path, reply)
        return reply.json if reply.body else None

    async def root(self) -> str:
        """Return the token of somebody who may do everything."""
        metadata, store = Metadata(name=user_id(ROOT)), self.app.ports.store
        try:
            user = await store.create(User(metadata=metadata, spec=UserSpec(subject=ROOT)))
        except AlreadyExists:
            user = await store.get(User, user_id(ROOT))
        issued = await self.app.tokens.tokens.issue_for_operator(user, operator="test", lifetime=timedelta(hours=1))
        return issued.token.reveal()


@asynccontextmanager
async def process(cluster: Cluster, namespace: str) -> AsyncIterator[Process]:
    """Run one for the time of a block."""
    store = await opened(cluster, namespace)
    ports = IdentityPorts(
        store=store,
        log=store,
        clock=SystemClock(),
        randomness=SystemRandomness(),
        sealer=SEALER,
        fetch=nobody_answers,
        find_txt=nothing_published,
        settings=SETTINGS,
        is_only_process=False,
        rate=RateLimit(quota=1_000_000),
    )
    app = IdentityApp(ports)
    await app.start()
    try:
        transport = Validated(app.api, response_contract(TABLE))
        yield Process(app, transport)
        transport.assert_documented()
    finally:
        await app.stop()
        await store.close()


async def eventually(sentence: str, condition: Callable[[], Awaitable[bool]]) -> None:
    """Return when the condition holds; fail with the sentence when time is up."""
    deadline = time.monotonic() + TIMEOUT_S
    while not await condition():
        assert time.monotonic() < deadline, f"not within {TIMEOUT_S:g} s: {sentence}"
        await asyncio.sleep(0.02)


def test_an_api_server_accepts_every_kind_of_identity(identity_cluster: Cluster) -> None:
    for kind in REGISTRY.kinds:
        assert identity_cluster.request("GET", f"/apis/{kind.api_version}/{kind.plural}?limit=1")["kind"].endswith(
            "List"
        )


async def test_what_one_process_makes_holds_in_another_and_what_it_revokes_does_not(identity_cluster: Cluster) -> None:
    namespace = identity_cluster.namespace()
    async with process(identity_cluster, namespace) as one, process(identity_cluster, namespace) as other:
        root = await one.root()
        body: Any = {"metadata": {"name": "acme"}, "spec": {"organizationType": "adhoc"}}
        acme = (await one.told(root, "POST", ORGANIZATIONS, body))["metadata"]["id"]
        home = f"{ORGANIZATIONS}/{acme}"
        spec: Any = {"roleIDs": [role_id("administrator")], "serviceAccountIDs": [], "userIDs": []}
        made = await one.told(root, "POST", f"{home}/groups", {"metadata": {"name": "crew"}, "spec": spec})
        group = made["metadata"]["id"]
        body = {"metadata": {"name": "lab"}, "spec": {"groupIDs": [group]}}
        project = (await one.told(root, "POST", f"{home}/projects", body))["metadata"]["id"]
        body = {"spec": {"subject": "ann@acme.test", "state": "active", "groupIDs": [group]}}
        user = await one.told(root, "POST", f"{home}/users", body)
        assert user["metadata"]["id"] == membership_id(acme, user_id("ann@acme.test"))
        body = {"metadata": {"name": "robot"}, "spec": {"groupIDs": [group]}}
        robot = await one.told(root, "POST", f"{home}/serviceaccounts", body)
        account, first = robot["metadata"]["id"], robot["status"]["accessToken"]

        async def is_answered(token: str, path: str, status: int) -> bool:
            return (await other.ask(token, "GET", path)).status == status

        await eventually("the token is good there", lambda: is_answered(first, f"{home}/projects/{project}", 200))
        rotated = await other.told(first, "POST", f"{home}/serviceaccounts/{account}/rotate")
        second = rotated["status"]["accessToken"]
        assert await is_answered(first, "/api/version", 401), "refused at once where it was rotated"

        async def is_refused_here() -> bool:
            return (await one.ask(first, "GET", "/api/version")).status == 401

        await eventually("the old token is refused here", is_refused_here)
        await eventually("the new token is good here", lambda: _is_good(one, second))
        await other.told(root, "DELETE", f"{home}/serviceaccounts/{account}")
        await eventually("the token of a deleted account is refused here", lambda: _is_bad(one, second))
        await one.told(root, "DELETE", home)
        await eventually("the organization is gone, with all in it", lambda: is_answered(root, home, 404))
        await eventually("nothing is left", lambda: _is_empty(other))


async def _is_good(process: Process, token: str) -> bool:
    return (await process.ask(token, "GET", "/api/version")).status == 200


async def _is_bad(process: Process, token: str) -> bool:
    return (await process.ask(token, "GET", "/api/version")).status == 401


async def _is_empty(process: Process) -> bool:
    names = ("projects", "groups", "organizationusers", "serviceaccounts", "quotas", "allocations")
    kinds = [kind.type for kind in REGISTRY.kinds if kind.plural in names]
    return not any([(await process.app.ports.store.list_names(kind)).items for kind in kinds])


class ApiServer:
    """An API server as the machine: it stays when our processes go."""

    is_down = False

    def __init__(self, cluster: Cluster, seed: int) -> None:
        self.clock, self.randomness = SystemClock(), SeededRandomness(seed)
        self.faults = FaultMenu(seed, RATES)
        self._cluster, self._namespace = cluster, cluster.namespace()

    async def open(self) -> KubernetesStore:
        """Open a store as a process does."""
        return await opened(self._cluster, self._namespace)

    async def close(self, store: KubernetesStore) -> None:
        """Release it."""
        await store.close()


async def trouble(system: IdentitySystem, machine: ApiServer) -> None:
    """Let things happen, each as the menu says."""
    while system.is_serving:
        await machine.clock.sleep(0.3)
        if machine.faults.fires("control.restart"):
            await system.restart_control()


async def live(cluster: Cluster, seed: int) -> IdentitySystem:
    """Serve, come again, and come to rest."""
    machine = ApiServer(cluster, seed)
    crowd = {role: share for role, share in CROWD.items() if role is not Guests}
    system = IdentitySystem(machine, PACE, settings=SETTINGS, crowd=crowd)
    with capture_logs() as lines:
        for _ in range(BOOTS):
            await system.boot(processes=2 if machine.faults.fires("leader.two") else 1)
            await system.serve(customers=CUSTOMERS, acts=ACTS, trouble=lambda: trouble(system, machine))
            await system.halt()
        machine.faults.stop()
        await system.boot(is_calm=True)
        await system.come_to_rest()
        check_always(await system.see(), system.history)
        await system.try_all_tokens()
        await system.clear_the_way()
        await system.come_to_rest(is_cleared=True)
        await system.halt()
    check_log(lines)
    return system


async def test_identity_keeps_its_promises_on_an_api_server(identity_cluster: Cluster) -> None:
    environments = [await live(identity_cluster, seed) for seed in range(SEEDS)]
    assert_all_fired([system.machine.faults for system in environments])  # type: ignore[misc]  # ours are menus
    assert all(system.history.tokens for system in environments), "somebody was given a token"
