"""The generic proofs on the toy saga, and proof that they find what they look for."""

import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from remuda.kernel.errors import NotFound
from remuda.operations.saga import Sagas, Work
from remuda.store.objects import Metadata
from tests.kit.proofs.sagas import Case, Proof, assert_all_proven, cases
from tests.kit.sample_farm.saga import PITCH, PITCH_PROOF, Outfit, Pitch, Tent, TentSpec

PROOFS = [PITCH_PROOF]


@pytest.mark.parametrize("case", [case for proof in PROOFS for case in cases(proof)], ids=str)
def test_b03_an_operation_ends_as_done_or_as_never_begun(case: Case) -> None:
    case.run()


def test_every_saga_is_proven() -> None:
    assert_all_proven(Sagas([PITCH]), PROOFS)


async def strike_any_tent(outfit: Outfit, work: Work[Pitch]) -> None:
    with contextlib.suppress(NotFound):
        tent = await outfit.store.get(Tent, work.input.tent)
        await outfit.store.delete(Tent, tent.name, uid=tent.uid)


async def strike_what_must_be_there(outfit: Outfit, work: Work[Pitch]) -> None:
    tent = await outfit.store.get(Tent, work.input.tent)
    await outfit.store.delete(Tent, tent.name, uid=tent.uid)


async def cut_another_pole(outfit: Outfit, work: Work[Pitch]) -> None:
    await outfit.woods.cut(f"{work.id}-{len(outfit.woods.poles)}")


async def pitch_once(outfit: Outfit, work: Work[Pitch]) -> None:
    spec = TentSpec(colour=work.input.colour, operation=work.id)
    await outfit.store.create(Tent(metadata=Metadata(name=work.input.tent), spec=spec))


async def cut_the_camps_pole(outfit: Outfit, _work: Work[Pitch]) -> None:
    await outfit.woods.cut("the pole")


async def put_the_camps_pole_back(outfit: Outfit, _work: Work[Pitch]) -> None:
    await outfit.woods.put_back("the pole")


async def forget(_outfit: Outfit, _work: Work[Pitch]) -> None:
    pass


Effect = Callable[[Outfit, Work[Pitch]], Awaitable[None]]


def flawed(step: str, *, do: Effect | None = None, undo: Effect | None = None) -> Proof:
    steps = [
        replace(each, do=do or each.do, undo=undo or each.undo) if each.name == step else each for each in PITCH.steps
    ]
    return replace(PITCH_PROOF, saga=replace(PITCH, steps=tuple(steps)))


FLAWS = {
    "an undo that takes what another made": (
        flawed("pitch-tent", undo=strike_any_tent),
        "another runs before do pitch-tent, then it fails",
    ),
    "an undo that wants something to undo": (
        flawed("pitch-tent", undo=strike_what_must_be_there),
        "it fails before do pitch-tent",
    ),
    "an undo that cannot be repeated": (
        flawed("pitch-tent", undo=strike_what_must_be_there),
        "pitch-tent is undone twice",
    ),
    "an undo that does nothing": (flawed("take-place", undo=forget), "it fails after do take-place"),
    "an undo that is missed only after a crash": (flawed("cut-pole", undo=forget), "it crashes before any write"),
    "a step that makes another each time": (flawed("cut-pole", do=cut_another_pole), "cut-pole is done twice"),
    "a step that cannot be repeated": (flawed("pitch-tent", do=pitch_once), "pitch-tent is done twice"),
    "a name that two operations share": (
        flawed("cut-pole", do=cut_the_camps_pole, undo=put_the_camps_pole_back),
        "another runs after do cut-pole, then it fails",
    ),
}


@pytest.mark.parametrize("flaw", FLAWS)
def test_the_proofs_find(flaw: str) -> None:
    proof, revealing = FLAWS[flaw]
    (case,) = [case for case in cases(proof) if case.name == f"{PITCH.name}: {revealing}"]
    with pytest.raises(AssertionError):
        case.run()


def test_a_saga_without_a_proof_is_found() -> None:
    with pytest.raises(AssertionError, match=r"tent\.move"):
        assert_all_proven(Sagas([PITCH, replace(PITCH, name="tent.move")]), PROOFS)
