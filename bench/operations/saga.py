"""A saga of two steps, each of which is one durable write, and a saga whose second step fails."""

from dataclasses import dataclass
from typing import Any

import msgspec

from bench.kinds import MACHINE, Machine, Pool, machine
from remuda.kernel.clock import SystemClock
from remuda.kernel.errors import NotFound, RemudaError, Unavailable
from remuda.kernel.randomness import SystemRandomness
from remuda.operations.kinds import Operation
from remuda.operations.reporter import Timeline
from remuda.operations.saga import BoundSaga, Saga, Step, Work
from remuda.operations.service import Operations
from remuda.store.contract import Store
from remuda.store.objects import Metadata

__all__ = ["BUILD", "BUILD_IN_VAIN", "Order", "Setup", "operations_on", "run_saga"]


class Order(msgspec.Struct, frozen=True):
    """What is asked for."""

    number: int


@dataclass
class Setup:
    """What the steps reach the world through, and how much they wrote there."""

    store: Store
    writes: int = 0


async def _make_pool(setup: Setup, work: Work[Order]) -> None:
    await setup.store.create(Pool(metadata=Metadata(name=work.id)))
    setup.writes += 1


async def _drop_pool(setup: Setup, work: Work[Order]) -> None:
    try:
        pool = await setup.store.get(Pool, work.id)
    except NotFound:
        return
    await setup.store.delete(Pool, pool.name, uid=pool.uid)
    setup.writes += 1


async def _make_machine(setup: Setup, work: Work[Order]) -> None:
    await setup.store.create(machine(work.input.number))
    setup.writes += 1


async def _drop_machine(setup: Setup, work: Work[Order]) -> None:
    try:
        made = await setup.store.get(Machine, machine(work.input.number).name)
    except NotFound:
        return
    await setup.store.delete(Machine, made.name, uid=made.uid)
    setup.writes += 1


async def _fail(_setup: Setup, _work: Work[Order]) -> None:
    raise Unavailable("There is no capacity: try again.")


def _subject(order: Order) -> tuple[str, str]:
    return MACHINE.qualified, machine(order.number).name


_POOL = Step(name="pool", do=_make_pool, undo=_drop_pool)
BUILD = Saga(
    name="bench.build",
    input_type=Order,
    subject=_subject,
    steps=(_POOL, Step(name="machine", do=_make_machine, undo=_drop_machine)),
)
"""Makes a pool and a machine."""

BUILD_IN_VAIN = Saga(
    name="bench.build-in-vain",
    input_type=Order,
    subject=_subject,
    steps=(_POOL, Step(name="machine", do=_fail, undo=_drop_machine)),
)
"""Makes a pool, fails to make a machine, and takes the pool back."""


def operations_on(setup: Setup) -> Operations:
    """Return what runs the sagas, with a timeline as in production."""
    return Operations(
        setup.store,
        [BoundSaga(saga, setup) for saga in (BUILD, BUILD_IN_VAIN)],
        clock=SystemClock(),
        randomness=SystemRandomness(),
        reporter=Timeline(),
    )


async def run_saga(operations: Operations, saga: Saga[Any, Order], number: int, *, id: str) -> Operation | None:  # noqa: A002  as `run` has it
    """Run a saga once; return its record, or nothing if it was undone."""
    try:
        return await operations.run(saga, id=id, actor="bench", input=Order(number))
    except RemudaError:
        return None
