"""Faults are drawn by seed and name, counted, and missed when they never come."""

import pytest

from tests.kit.simulation.faults import Count, FaultMenu, assert_all_fired


def answers(menu: FaultMenu, name: str, calls: int = 50) -> list[bool]:
    return [menu.fires(name) for _ in range(calls)]


def test_the_same_seed_fires_alike_and_another_seed_does_not() -> None:
    assert answers(FaultMenu(1, {"slow": 0.5}), "slow") == answers(FaultMenu(1, {"slow": 0.5}), "slow")
    assert answers(FaultMenu(1, {"slow": 0.5}), "slow") != answers(FaultMenu(2, {"slow": 0.5}), "slow")


def test_one_fault_point_does_not_move_another() -> None:
    alone, together = FaultMenu(1, {"slow": 0.5}), FaultMenu(1, {"slow": 0.5, "lost": 0.5})
    mixed = []
    for _ in range(50):
        together.fires("lost")
        mixed.append(together.fires("slow"))
    assert mixed == answers(alone, "slow")


def test_a_fault_fires_at_exactly_the_nth_call() -> None:
    menu = FaultMenu(1)
    menu.at("lost", 3)
    assert answers(menu, "lost", 5) == [False, False, True, False, False]
    with pytest.raises(ValueError, match="already passed"):
        menu.at("lost", 5)


def test_a_name_outside_the_menu_never_fires() -> None:
    menu = FaultMenu(1, {"slow": 1.0})
    assert not any(answers(menu, "unheard of"))
    assert menu.planned == {"slow"}


def test_a_stopped_menu_neither_fires_nor_counts() -> None:
    menu = FaultMenu(1, {"slow": 1.0})
    assert menu.fires("slow")
    menu.stop()
    assert not any(answers(menu, "slow"))
    assert menu.counts == {"slow": Count(asked=1, fired=1)}


def test_a_fault_that_never_fired_in_any_run_is_named() -> None:
    first, second = (FaultMenu(seed, {"slow": 1.0, "lost": 1.0}) for seed in (1, 2))
    first.fires("slow")
    with pytest.raises(AssertionError, match=r"never fired: lost \(asked 0 times\)$"):
        assert_all_fired([first, second])
    second.fires("lost")
    assert_all_fired([first, second])
