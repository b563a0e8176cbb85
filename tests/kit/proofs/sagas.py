"""The generic proofs: what holds for every operation there will ever be.

`cases(proof)` yields them for one saga, each a scenario with a name; a test module parametrizes over them::

    CASES = [case for proof in PROOFS for case in cases(proof)]

    @pytest.mark.parametrize("case", CASES, ids=str)
    def test_operations_end_as_done_or_as_never_begun(case: Case) -> None:
        case.run()

    def test_every_saga_is_proven() -> None:
        assert_all_proven(sagas(), PROOFS)

The oracle: an operation ends as done or as never begun, in store, ledger and provider alike, and none is left open.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from structlog.testing import capture_logs

from remuda.operations.saga import Sagas
from tests.kit.proofs.crashing_store import MOMENTS
from tests.kit.proofs.saga_crashes import crash_everywhere, crash_in_recovery
from tests.kit.proofs.saga_environment import Proof
from tests.kit.proofs.saga_failures import (
    fail_step,
    fail_undo,
    repeat_request,
    repeat_request_after_failure,
    repeat_step,
    repeat_undo,
    run_clean,
)
from tests.kit.proofs.saga_hooks import Point, points
from tests.kit.proofs.saga_races import cancel_at, meet_at, meet_freely, meet_in_undoing, meet_then_fail, overtake_at
from tests.kit.simulation.runner import World, simulate

__all__ = ["Case", "Proof", "assert_all_proven", "cases"]


@dataclass(frozen=True)
class Case:
    """One proof of one saga."""

    name: str
    prove: Callable[[], None]

    def run(self) -> None:
        """Prove it. The log of what goes wrong on purpose is kept off the screen, where it would take most time."""
        with capture_logs():
            self.prove()

    def __str__(self) -> str:
        return self.name


def cases(proof: Proof) -> Iterator[Case]:
    """Yield everything that is to be proven of a saga."""
    for name, run in _cases(proof):
        yield Case(f"{proof.saga.name}: {name}", run)


def assert_all_proven(sagas: Sagas, proofs: Iterable[Proof]) -> None:
    """Fail, naming each saga that has no proof."""
    proven = [proof.saga for proof in proofs]
    missing = [saga.name for saga in sagas if saga not in proven]
    assert not missing, f"sagas without a proof: {', '.join(missing)}"


def _cases(proof: Proof) -> Iterator[tuple[str, Callable[[], None]]]:
    saga = proof.saga
    doing, undoing = list(points(saga, "do")), list(points(saga, "undo"))
    yield "nothing happens", _once(proof, run_clean)
    yield "the request is repeated", _once(proof, repeat_request)
    for point in doing:
        yield f"it fails {point}", _once(proof, fail_step, point)
        yield f"it fails {point}, and the request is repeated", _once(proof, repeat_request_after_failure, point)
        yield f"the caller goes away {point}", _once(proof, cancel_at, point)
        yield f"another runs {point}", _once(proof, meet_at, point)
        yield f"another runs {point}, then it fails", _once(proof, meet_then_fail, point)
        yield f"it is overtaken {point}", _once(proof, overtake_at, point)
    for point in undoing:
        yield f"it fails {point}", _once(proof, fail_undo, point)
        yield f"another runs {point}", _once(proof, meet_in_undoing, point)
    for step in saga.steps:
        yield f"{step.name} is done twice", _once(proof, repeat_step, Point("do", step.name, "after"))
        yield f"{step.name} is undone twice", _once(proof, repeat_undo, Point("undo", step.name, "after"))
    yield "two run at once", lambda: _simulate(lambda world: meet_freely(world, proof), seeds=20)
    for moment in MOMENTS:
        yield f"it crashes {moment} any write", partial(crash_everywhere, proof, moment)
        for point in doing:
            yield (
                f"it fails {point} and crashes {moment} any write",
                partial(crash_everywhere, proof, moment, point),
            )
        yield f"it crashes again {moment} any write of recovery", partial(crash_in_recovery, proof, moment)


def _once(proof: Proof, scenario: Callable[..., Awaitable[None]], point: Point | None = None) -> Callable[[], None]:
    async def run(world: World) -> None:
        await (scenario(world, proof) if point is None else scenario(world, proof, point))

    return lambda: _simulate(run, seeds=1)


def _simulate(scenario: Callable[[World], Awaitable[None]], *, seeds: int) -> None:
    async def run(world: World) -> None:
        await scenario(world)

    simulate(run, range(seeds))
