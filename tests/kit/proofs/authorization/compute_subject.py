"""Compute as the subject of its matrix: instances in every place, its doors, and clouds in which everything is instant.

Controllers are at work, so that there is something for the verbs to act on; before anything is asked, they have come to
rest, so that whatever changes was the caller's doing.
"""

from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

from remuda.compute.app import TABLE
from remuda.compute.kinds import KINDS, ComputeInstance, ProjectPolicy
from remuda.http.server.server import HttpServer, ListenAddress
from remuda.kernel.clock import SystemClock
from remuda.kernel.randomness import SystemRandomness
from remuda.region.kinds import KINDS as REGION_KINDS
from tests.kit.asgi.reference import response_contract
from tests.kit.compute.environment import INSTANCES, ComputeEnvironment, run_compute, running
from tests.kit.proofs.authorization.compute_callers import CALLERS
from tests.kit.proofs.authorization.compute_operations import DEBIAN, POWER, ROWS, ComputeRow
from tests.kit.proofs.authorization.compute_rule import GoneTarget
from tests.kit.proofs.authorization.identity_credentials import IdentityCredentials, furnish
from tests.kit.proofs.authorization.matrix import ABSENT, PLACES, Caller, Row, Scope, Target
from tests.kit.proofs.authorization.region_rule import RegionTarget
from tests.kit.proofs.authorization.region_subject import REGIONS, be_generous, settings
from tests.kit.proofs.authorization.service_methods import ServiceMethodTransport
from tests.kit.proofs.authorization.transports import ApiTransport, Request, SocketTransport, Transport
from tests.kit.simulation.disk import memory_directory

GONE = "gone"
_LONG_ENOUGH = 4
"""So many looks in a row that find nothing changed are more than anything waits that will go on by itself."""


class ComputeSubject:
    """Compute, with everybody and everything in it."""

    rows: Sequence[Row] = ROWS
    callers: Sequence[Caller] = CALLERS

    def __init__(self, compute: ComputeEnvironment, credentials: IdentityCredentials, *, is_real: bool = False) -> None:
        self.compute, self.credentials, self._is_real = compute, credentials, is_real
        self.transports: dict[str, Transport] = {
            "api": ApiTransport(compute.asgi, response_contract(TABLE), credentials),
            "port": ServiceMethodTransport(TABLE, compute.app.services, credentials),
        }
        self._instances: dict[tuple[str, Scope], str] = {}
        """The instance of each state in each place."""
        self._names: dict[str, str] = {}
        """What each instance is called."""
        self._networks: dict[Scope, str] = {}
        self._has_images = False
        self._counter = count()
        self._is_at_rest = False

    async def request(self, row: Row, target: Target) -> Request:
        """Return a request about this target."""
        assert isinstance(row, ComputeRow)
        self._has_images = row in POWER
        values = {"name": f"n{next(self._counter)}", "kept": "kept"}
        values["regionID"] = REGIONS[target.region] if isinstance(target, RegionTarget) else REGIONS["open"]
        if target.named is not None:
            values |= {"organizationID": target.named.organization, "projectID": target.named.project}
        if row.thing == "networkID":
            values["networkID"] = ABSENT if target.holder is None else await self._network(target.holder)
        elif row.thing:
            state = GONE if isinstance(target, GoneTarget) else row.state
            values["instanceID"] = ABSENT if target.holder is None else await self._find(state, target.holder)
            values["kept"] = self._names.get(values["instanceID"], "kept")
        await self._rest()
        return Request(row=row, values=values, query=(*target.query, *row.query))

    def use_up(self, scope: Scope) -> None:
        """Forget what is in a place, but for what is gone: nobody changes that."""
        self._instances = {key: name for key, name in self._instances.items() if key[1] != scope or key[0] == GONE}
        self._is_at_rest = False

    async def state(self) -> Any:
        """Return what changes with anything that compute and region have stored, and with the cloud's images."""
        stored = self.compute.store.change_counter([kind.type for kind in (*KINDS, *REGION_KINDS)])
        images = self.compute.region.north.provider.images
        assert images is not None, "the simulated cloud has images"
        count = len(await images.images()) if self._has_images else 0
        return (await self._standing() if self._is_real else stored), count

    async def _standing(self) -> Any:
        """Return what stands. In real time nobody waits until what was given up is gone to the last trace."""
        instances = (await self.compute.store.list(ComputeInstance)).items
        policies = (await self.compute.store.list(ProjectPolicy)).items
        power = [(each.uid, each.status.power_state) for each in instances if not each.is_deleting]
        return power, [(each.uid, each.metadata.generation) for each in (*instances, *policies) if not each.is_deleting]

    async def shown(self, row: Row, scope: Scope) -> str:
        """Return the id of something that a list must show to who may see this place."""
        assert row.operation == "list_instances"
        return await self._find("running", scope)

    async def _find(self, state: str, scope: Scope) -> str:
        if (state, scope) not in self._instances:
            self._is_at_rest = False
            self._instances[state, scope] = await self._make(state, scope)
        return self._instances[state, scope]

    async def _make(self, state: str, scope: Scope) -> str:
        compute, name = self.compute, f"i{next(self._counter)}"
        spec: dict[str, Any] = {"organizationId": scope.organization, "projectId": scope.project, "imageId": DEBIAN}
        if state == "protected":
            spec["protection"] = {"deletion": True}
        made = await compute.instance(await self._network(scope), name, **spec)
        self._names[made] = name
        await compute.until(made, "provisioned")
        if state == "stopped":
            assert (await compute.root.post(f"{INSTANCES}/{made}/stop")).status == 202
        if state == GONE:
            assert (await compute.root.delete(f"{INSTANCES}/{made}")).status == 202
            await compute.until_gone(made)
        return made

    async def _network(self, scope: Scope) -> str:
        if scope not in self._networks:
            where = {"organizationId": scope.organization, "projectId": scope.project}
            made = await self.compute.region.network(f"net{next(self._counter)}", **where)
            await self.compute.region.until(f"/api/v2/networks/{made}", "provisioned")
            self._networks[scope] = made
            self._is_at_rest = False
        return self._networks[scope]

    async def _rest(self) -> None:
        """Wait until nothing changes any more by itself."""
        quiet = 0
        while not self._is_at_rest:
            before = await self.state()
            await self.compute.clock.sleep(0.05 if self._is_real else 0.5)
            quiet = quiet + 1 if await self.state() == before else 0
            self._is_at_rest = quiet > _LONG_ENOUGH


async def _furnished(compute: ComputeEnvironment, **rest: Any) -> ComputeSubject:
    credentials = await furnish(compute.region.identity)
    for organization in {place.organization for place in PLACES}:
        await be_generous(compute.region, organization)
    return ComputeSubject(compute, credentials, **rest)


def in_compute(scenario: Callable[[ComputeSubject], Coroutine[Any, Any, None]]) -> None:
    """Run a scenario on compute, with everybody there, in simulated time."""

    async def furnished(compute: ComputeEnvironment) -> None:
        await scenario(await _furnished(compute))

    run_compute(furnished, is_instant=True, regional={"settings": settings()})


@asynccontextmanager
async def on_socket() -> AsyncIterator[ComputeSubject]:
    """Run compute on a socket while the block runs, in real time."""
    clock, randomness = SystemClock(), SystemRandomness()
    with memory_directory() as directory:
        async with running(directory, regional={"settings": settings()}) as compute:
            subject = await _furnished(compute, is_real=True)
            server = HttpServer(compute.app.api, clock=clock, randomness=randomness, count_closed=lambda _: None)
            transport = SocketTransport(
                f"http://{await server.start(ListenAddress('127.0.0.1', 0))}", TABLE, subject.credentials
            )
            subject.transports["socket"] = transport
            try:
                yield subject
            finally:
                await transport.close()
                compute.app.ports.closing.set()
                server.hurry()
                await server.stop()
