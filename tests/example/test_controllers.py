"""The controllers of the example service on the simulated machine: what they wait for, and what they make of it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta

from msgspec.structs import replace

from remuda.operations.kinds import Operation, OperationSpec, Phase
from remuda.reconcile.ports import ControllerSettings
from remuda.reconcile.resync import ResyncSettings
from remuda.store.objects import Metadata
from remuda.store.sqlite.store import SqliteStore
from tests.example.app import LiveryApp, build, registry
from tests.example.kinds import MOUNT, Ledger, Mount, MountSpec, Stall, Yard
from tests.example.laws import check_ledger, snapshot
from tests.example.pasture import SimPasture
from tests.example.ports import Ports
from tests.example.rules import new_mount, new_yard
from tests.example.wire import MetadataWrite, YardSpecWire, YardWrite
from tests.kit.simulation.runner import World, simulate
from tests.kit.simulation.store import open_simulated

YARD_ID = "c0000000-0000-4000-8000-00000000000a"
OPERATION_ID = "c0000000-0000-4000-8000-00000000000b"


@dataclass(frozen=True)
class Scene:
    """A yard with one mount, whose operation is whatever a test wants it to be."""

    world: World
    store: SqliteStore
    app: LiveryApp
    pasture: SimPasture

    async def prepare(self) -> Mount:
        """Store what a process leaves that dies between the last step of an operation and its end."""
        yard = await self.prepare_stall()
        spec = MountSpec(yard=yard.name, breed="mule", paddock="home", operation=OPERATION_ID)
        return await self.store.create(new_mount(yard, "bella", spec, creator="me"))

    async def prepare_stall(self) -> Yard:
        """Store what a process leaves that dies after the first step."""
        clock = self.world.clock
        wanted = YardWrite(metadata=MetadataWrite(name="yard"), spec=YardSpecWire(stalls=1))
        yard = await self.store.create(new_yard(YARD_ID, "organization", "project", wanted, creator="me"))
        spec = OperationSpec(
            saga="another",
            subject_kind=MOUNT.qualified,
            subject="bella",
            actor="me",
            input="{}",
            deadline=clock.now() + timedelta(hours=1),
            process="another",
        )
        await self.store.create(Operation(metadata=Metadata(name=OPERATION_ID), spec=spec))
        await self.app.stalls.take(yard.name, OPERATION_ID)
        return yard

    async def turn(self, phase: Phase) -> None:
        """Bring the operation into another phase."""
        await self.store.update_status((await self.store.get(Operation, OPERATION_ID)).moved(phase))

    async def wait(self) -> None:
        """Let time pass."""
        await self.world.clock.sleep(20)


@asynccontextmanager
async def scene(world: World) -> AsyncIterator[Scene]:
    """Open the stage: other processes may live, and full scans are far away."""
    store = open_simulated(world, registry())
    pasture = SimPasture(world.clock, world.randomness)
    app = build(
        Ports(
            store=store,
            log=store,
            clock=world.clock,
            randomness=world.randomness,
            pasture=pasture,
            is_alone=False,
            control=ControllerSettings(blocked_every_s=10_000, resync=ResyncSettings(interval_s=10_000)),
        )
    )
    await app.start()
    yield Scene(world, store, app, pasture)
    await app.stop()
    await store.close()


def test_nothing_is_made_while_the_operation_is_open_and_its_end_wakes_the_mount() -> None:
    async def scenario(world: World) -> None:
        async with scene(world) as stage:
            await stage.prepare()
            await stage.wait()
            assert not stage.pasture.log
            await stage.turn("done")
            await stage.wait()
            assert [what for what, _ in stage.pasture.log] == ["turned out"]
            (row,) = (await stage.store.list(Stall)).items
            assert row.spec.life == "confirmed"

    simulate(scenario, 10)


def test_a_mount_whose_operation_was_undone_goes_and_never_grazed() -> None:
    async def scenario(world: World) -> None:
        async with scene(world) as stage:
            await stage.prepare()
            await stage.turn("undone")
            await stage.wait()
            assert not (await stage.store.list(Mount)).items
            assert not stage.pasture.log

    simulate(scenario, 10)


def test_what_an_abandoned_operation_left_waits_for_somebody_to_remove_it() -> None:
    async def scenario(world: World) -> None:
        async with scene(world) as stage:
            mount = await stage.prepare()
            await stage.turn("abandoned")
            await stage.wait()
            assert not stage.pasture.log
            await stage.store.delete(Mount, mount.name, uid=mount.uid)
            await stage.wait()
            assert not (await stage.store.list(Mount)).items
            assert (await stage.store.get(Ledger, YARD_ID)).spec.used == 0

    simulate(scenario, 10)


def test_a_stall_that_was_lost_is_taken_again_before_anything_is_made() -> None:
    async def scenario(world: World) -> None:
        async with scene(world) as stage:
            await stage.prepare()
            await stage.app.stalls.give_back(YARD_ID, OPERATION_ID)
            await stage.turn("done")
            await stage.wait()
            seen = await snapshot(stage.store)
            assert seen.rows[OPERATION_ID].spec.life == "confirmed"
            check_ledger(seen, seen.ledgers[YARD_ID])
            assert len(stage.pasture.mounts) == 1

    simulate(scenario, 10)


def test_an_intent_whose_operation_is_over_and_left_nothing_is_closed() -> None:
    async def scenario(world: World) -> None:
        async with scene(world) as stage:
            await stage.prepare_stall()
            await stage.turn("abandoned")
            assert (await stage.store.get(Ledger, YARD_ID)).spec.used == 1
            await world.clock.sleep(700)
            head = await stage.store.get(Ledger, YARD_ID)
            assert (head.spec.used, head.spec.intents) == (0, ())

    simulate(scenario, 10)


def test_a_yard_that_is_too_full_for_its_limit_says_so_and_takes_nobody_more() -> None:
    async def scenario(world: World) -> None:
        async with scene(world) as stage:
            await stage.prepare()
            await stage.turn("done")
            yard = await stage.store.get(Yard, YARD_ID)
            await stage.store.update(replace(yard, spec=replace(yard.spec, stalls=0)))
            await stage.wait()
            (condition,) = (await stage.store.get(Yard, YARD_ID)).status.conditions
            assert (condition.status, condition.reason) == ("False", "TooFull")
            assert (await stage.store.get(Ledger, YARD_ID)).spec.limit == 1

    simulate(scenario, 10)
