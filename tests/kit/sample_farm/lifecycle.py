"""Lifecycle of an animal, provisioned and deprovisioned as a test says."""

from collections.abc import Callable, Coroutine
from typing import Any

import msgspec

from remuda.kernel.conditions import Condition, find_condition
from remuda.reconcile.lifecycle import Lifecycle, LifecycleSettings, Outcome, ReconcileFunction
from remuda.reconcile.results import Done, ReconcileContext, Result
from remuda.store.sqlite.store import SqliteStore
from tests.kit.sample_farm.controller import (
    ANIMAL,
    FINALIZER,
    Animal,
    Farm,
    farm,
)
from tests.kit.simulation.runner import World, simulate


class ScriptedSteps:
    """Provisions and deprovisions as a test tells it."""

    def __init__(self, farm: Farm, *, deadline_s: float = 600, step_s: float = 45) -> None:
        self.farm = farm
        self.calls: list[str] = []
        self.run: ReconcileContext | None = None
        self.says: Result | Outcome[Animal] | Exception = Done()
        self.takes_s = 0.0
        self.life = Lifecycle(
            Animal,
            provision=self._step("provision"),
            deprovision=self._step("deprovision"),
            finalizer=FINALIZER,
            ports=farm.ports(),
            settings=LifecycleSettings(deadline_s=deadline_s, step_s=step_s),
        )

    def _step(self, verb: str) -> ReconcileFunction[Animal]:
        async def step(resource: Animal, _: ReconcileContext) -> Result | Outcome[Animal]:
            assert FINALIZER in resource.metadata.finalizers
            self.calls.append(verb)
            await self.farm.world.clock.sleep(self.takes_s)
            if isinstance(self.says, Exception):
                raise self.says
            return self.says

        return step

    async def look(
        self, key: str = "bella", says: Result | Outcome[Animal] | Exception | None = None, *, failures: int = 0
    ) -> Result:
        self.says = self.says if says is None else says
        ports = self.farm.ports()
        self.run = ReconcileContext(
            controller="t",
            key=key,
            cause="event",
            registry=ports.store.registry,
            randomness=ports.randomness,
            failures=failures,
        )
        return await self.life(key, self.run)

    async def get(self) -> Animal:
        return await self.farm.store.get(Animal, "bella")


def in_simulation(scenario: Callable[[Farm, ScriptedSteps], Coroutine[Any, Any, None]]) -> None:
    async def run(world: World) -> None:
        async with farm(world) as environment:
            await scenario(environment, ScriptedSteps(environment))

    simulate(run, 2)


def condition(resource: Animal, type_: str = "Available") -> Condition:
    found = find_condition(resource.status.conditions, type_)
    assert found is not None
    return found


def said(resource: Animal, type_: str = "Available") -> tuple[str, str, str]:
    found = condition(resource, type_)
    return found.status, found.reason, found.message


async def timeline(environment: Farm) -> list[dict[str, Any]]:
    assert isinstance(environment.store, SqliteStore)
    page = await environment.store.read("timeline", f"{ANIMAL.qualified}/bella")
    return [msgspec.json.decode(entry.data) for entry in page.entries]
