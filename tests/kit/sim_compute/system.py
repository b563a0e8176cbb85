"""The whole of identity, region and compute under trouble: processes that die and come again, over clouds that live on.

It is the system of region with compute in each process, and with instances in every snapshot.
"""

from contextlib import suppress
from typing import Any, cast

from remuda.app.services import identity_client, region_client
from remuda.compute.app import TABLE, ComputeApp
from remuda.compute.kinds import INSTANCE, WATCH_POSITION, ComputeInstance, ProjectPolicy
from remuda.compute.ports import ComputePorts
from remuda.identity.kinds.users import User, UserSpec, user_id
from remuda.kernel.errors import AlreadyExists, Unavailable
from remuda.operations.kinds import Operation
from remuda.reconcile.ports import ControllerSettings
from remuda.resources.conventions import RESOURCE_KIND
from remuda.store.contract import Store
from remuda.store.objects import Metadata
from tests.kit.asgi.client import Client
from tests.kit.asgi.reference import response_contract
from tests.kit.asgi.validating import Validated
from tests.kit.compute.environment import SERVICE
from tests.kit.faulty_watch import FlakyWatches
from tests.kit.identity.environment import ROOT
from tests.kit.sim_compute.history import ComputeHistory
from tests.kit.sim_compute.quiescence import INSTANCE_OPERATIONS, available, instances, unrest_of_instances
from tests.kit.sim_region.quiescence import unrest
from tests.kit.sim_region.snapshot import RegionSnapshot, RegionSnapshots
from tests.kit.sim_region.system import MAX_S, Process, RegionSystem, Work
from tests.kit.simulation.machine import SimMachine

_LOOK_EVERY_S, _BACKOFF_FACTOR = 5.0, 1.1
_BLOCKED_S = ControllerSettings().blocked_within_s[1]


class ComputeProcess(Process):
    """One process: all three services over the same store."""

    def __init__(self, system: "ComputeSystem", *, watched: Store, is_alone: bool) -> None:
        super().__init__(system, watched=watched, is_alone=is_alone)
        given = self.region.ports
        self.compute = ComputeApp(
            ComputePorts(
                store=given.store,
                log=given.log,
                watched=watched,
                clock=given.clock,
                randomness=given.randomness,
                sealer=given.sealer,
                api=given.api,
                rate=given.rate,
                is_only_process=is_alone,
                reporter=given.reporter,
                run_blocking=given.run_blocking,
                authenticator=self.identity.authenticator,
                identity=identity_client(self.identity, SERVICE),
                region=region_client(self.identity, self.region, SERVICE),
            )
        )
        self.compute_door = Validated(self.compute.api, response_contract(TABLE))

    async def start(self) -> None:
        """Begin."""
        await super().start()
        await self.compute.start()

    async def stop(self) -> None:
        """End, with every answer as it is documented."""
        await self.compute.stop()
        await super().stop()
        self.compute_door.assert_documented()

    @property
    def drivers(self) -> list[Any]:
        """All controllers."""
        return [*super().drivers, *self.compute.running_controllers.values()]

    @property
    def repairs(self) -> dict[str, float]:
        """How often compute's monitor had to help, by what was wrong."""
        found = self.compute.ports.metrics.collect()
        samples = [each for metric in found for each in metric.samples]
        return {
            each.labels["checker"]: each.value
            for each in samples
            if each.name == "remuda_compute_repairs_total" and each.value
        }


class ComputeSnapshots(RegionSnapshots):
    """Sees instances and policies as well. What is at work on instances is apart: two may make the same one."""

    async def take(self) -> RegionSnapshot:
        """Return everything."""
        seen = await super().take()
        of_instances = {name: each for name, each in seen.operations.items() if _is_of_instance(each)}
        objects = {
            **seen.objects,
            "instance": await self._all(ComputeInstance),
            "policy": await self._all(ProjectPolicy),
            "operations": {name: each for name, each in seen.operations.items() if name not in of_instances},
            INSTANCE_OPERATIONS: of_instances,
        }
        return RegionSnapshot(objects, seen.rows, seen.images)


class ComputeSystem(RegionSystem):
    """All three services, through crashes."""

    history: ComputeHistory
    processes: list[ComputeProcess]  # type: ignore[assignment]  # only this system adds any

    memories = (*RegionSystem.memories, WATCH_POSITION)

    def __init__(self, machine: SimMachine) -> None:
        super().__init__(machine)
        self.history = ComputeHistory()

    def compute(self, token: str | None) -> Client:
        """Return a client of compute, of one of the processes."""
        return Client(app=cast("ComputeProcess", self._one_process()).compute_door, token=token)

    async def come_to_rest(self, *, is_empty: bool = False, meanwhile: Work | None = None) -> None:
        """Wait until everything is as it was promised to be, and then see that nothing moves any more."""
        clock, left, pause_s = self.machine.clock, ["it was not looked at"], _LOOK_EVERY_S
        deadline = clock.monotonic() + MAX_S
        while left:
            assert clock.monotonic() < deadline, f"no rest within {MAX_S:g} s: {'; '.join(left)}"
            await clock.sleep(pause_s)
            pause_s *= _BACKOFF_FACTOR
            if meanwhile is not None:
                await meanwhile()
            seen = await self.see()
            left = self.unrest(seen, is_empty=is_empty)
        if any(available(each).reason != "Provisioned" for each in instances(seen).values()):
            await clock.sleep(_BLOCKED_S)  # what keeps them may be another thing by now: so long they do not look
        await self._look_again()

    def unrest(self, seen: RegionSnapshot, *, is_empty: bool) -> list[str]:
        """Return what keeps everything from being at rest; if it `is_empty`, whatever is there does."""
        return [
            *unrest(without_instances(seen), is_empty=is_empty),
            *unrest_of_instances(seen, self.history, is_empty=is_empty),
        ]

    async def _boot(self, processes: int, *, is_calm: bool) -> bool:
        self.store = await self.machine.open()
        self.snapshots, self._root = ComputeSnapshots(self.store, self.clouds.clouds.values()), None
        watched = self.store if is_calm else cast("Store", FlakyWatches(self.store, self.machine.faults))
        self.processes = [ComputeProcess(self, watched=watched, is_alone=processes == 1) for _ in range(processes)]
        try:
            with suppress(AlreadyExists):
                await self.store.create(User(metadata=Metadata(name=user_id(ROOT)), spec=UserSpec(subject=ROOT)))
            for process in self.processes:
                await process.start()
        except Unavailable:
            return False
        return True


def _is_of_instance(operation: Operation) -> bool:
    return operation.spec.subject_kind == INSTANCE.qualified


def without_instances(seen: RegionSnapshot) -> RegionSnapshot:
    """Return what region and identity have by themselves: nothing is held for an instance there."""
    rows = {name: row for name, row in seen.row.items() if row.metadata.labels[RESOURCE_KIND] != INSTANCE.qualified}
    return RegionSnapshot({**seen.objects, "row": rows}, seen.rows, seen.images)
