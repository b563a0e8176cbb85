"""Slices are all seeds together, and what only all seeds can cover is asserted by the last slice to end."""

from pathlib import Path

import pytest

from tests.kit.simulation.faults import FaultMenu
from tests.kit.simulation.slices import Coverage, is_slice, slice_name, sliced, without_slice

SLICES = [range(3), range(3, 5)]


@pytest.fixture(autouse=True)
def _own_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("REMUDA_SEED", "REMUDA_SEEDS"):
        monkeypatch.delenv(name, raising=False)


def test_slices_together_are_all_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sliced(160, length=40) == [range(40), range(40, 80), range(80, 120), range(120, 160)]
    for total in (1, 59, 60, 119, 120, 1000, 20000):
        monkeypatch.setenv("REMUDA_SEEDS", str(total))
        slices = sliced(60, length=60)
        assert [seed for each in slices for seed in each] == list(range(total))
        assert len(slices) == 1 or min(map(len, slices)) >= 60
    monkeypatch.setenv("REMUDA_SEED", "700")
    assert len(sliced(160, length=40)) == 1


def test_a_slice_is_known_by_the_id_of_its_case() -> None:
    case = f"tests/sim/test_x.py::test_y[{slice_name(range(40, 80))}]"
    assert is_slice(case)
    assert without_slice(case) == "tests/sim/test_x.py::test_y"
    assert not is_slice("tests/sim/test_x.py::test_y[seeds]")


def met(outcome: str, *, seeds: range, fired: str) -> tuple[Coverage, list[FaultMenu]]:
    """Return what a slice met: one outcome, and one of two faults that fired under each of its seeds."""
    coverage = Coverage()
    menus = [FaultMenu(seed, {"disk": 0.0, "power": 0.0}) for seed in seeds]
    for menu in menus:
        menu.at("disk", 1)
        menu.at("power", 1)
        menu.fires(fired)
    coverage.add(outcomes={outcome: 1}, operations=[f"use_{outcome}"])
    return coverage, menus


def test_the_last_slice_to_end_gets_what_all_of_them_met(tmp_path: Path) -> None:
    later, later_menus = met("b", seeds=SLICES[1], fired="power")
    assert later.unite(later_menus, SLICES[1], SLICES, tmp_path) is None
    first, first_menus = met("a", seeds=SLICES[0], fired="disk")
    whole = first.unite(first_menus, SLICES[0], SLICES, tmp_path)
    assert whole is not None
    assert (whole.seeds, whole.outcomes, whole.operations) == (5, {"a": 1, "b": 1}, {"use_a", "use_b"})
    whole.assert_covered(outcomes=["a", "b"], operations=["use_b"])
    with pytest.raises(AssertionError, match=r"never answered: \['c'\]"):
        whole.assert_covered(outcomes=["c"], operations=[])
    with pytest.raises(AssertionError, match=r"never succeeded: \['use_c'\]"):
        whole.assert_covered(outcomes=[], operations=["use_c"])


def test_a_fault_that_fired_in_no_slice_is_named(tmp_path: Path) -> None:
    whole = None
    for seeds in SLICES:
        coverage, menus = met("a", seeds=seeds, fired="disk")
        whole = coverage.unite(menus, seeds, SLICES, tmp_path)
    assert whole is not None
    with pytest.raises(AssertionError, match=r"never fired: power \(asked 0 times\)"):
        whole.assert_covered(outcomes=[], operations=[])


def test_one_seed_alone_is_held_to_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("REMUDA_SEED", "1")
    coverage, menus = met("a", seeds=range(1, 2), fired="disk")
    assert coverage.unite(menus, range(3), [range(3)], tmp_path) is None
