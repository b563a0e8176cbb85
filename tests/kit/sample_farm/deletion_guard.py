"""Deletion guard over the sample farm."""

from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any

from remuda.reconcile.deletion_guard import MASS_DELETION, PROJECT_LABEL, DeletionGuard, DeletionGuardSettings
from remuda.reconcile.results import ReconcileContext
from tests.kit.sample_farm.controller import Animal, Farm, animal, farm
from tests.kit.simulation.runner import World, simulate

SETTINGS = DeletionGuardSettings(window=timedelta(minutes=10))


def in_simulation(scenario: Callable[[Farm], Coroutine[Any, Any, None]]) -> None:
    async def run(world: World) -> None:
        async with farm(world) as environment:
            await scenario(environment)

    simulate(run, 3)


def breaker(environment: Farm, settings: DeletionGuardSettings = SETTINGS) -> DeletionGuard:
    return DeletionGuard("animals", Animal, ports=environment.ports(), settings=settings)


def run_of(environment: Farm) -> ReconcileContext:
    ports = environment.ports()
    return ReconcileContext(
        controller="animals", key="k", cause="resync", registry=ports.store.registry, randomness=ports.randomness
    )


async def populate(environment: Farm, project: str, count: int) -> list[Animal]:
    labels = {PROJECT_LABEL: project} if project else {}
    return [
        await environment.store.create(
            animal(f"{project or 'none'}-{number}", labels=labels, finalizers=("a.example.org/x",))
        )
        for number in range(count)
    ]


async def allowed(guard: DeletionGuard, environment: Farm, herd: list[Animal]) -> int:
    """Return how many of them may be destroyed, one after the other."""
    verdicts = [await guard.admit_deletion(each, run_of(environment)) for each in herd]
    assert {verdict.reason for verdict in verdicts if verdict} <= {MASS_DELETION}
    return verdicts.count(None)
