"""The checker itself: it must accept what can be explained, and reject what cannot."""

import itertools
import random

import pytest

from tests.kit.proofs.linearizability.checker import UNKNOWN, Call, linearize
from tests.kit.proofs.linearizability.model import (
    OK,
    REFUSED,
    Allocate,
    Change,
    Confirm,
    Expire,
    LedgerModel,
    Op,
    Read,
    Release,
    SetLimit,
)

Told = tuple[Op, object, int, int | None]


def history(*told: Told) -> list[Call[Op]]:
    return [Call(op, result, called, returned) for op, result, called, returned in told]


def holds(limit: int, *told: Told) -> bool:
    return linearize(history(*told), LedgerModel(limit)) is not None


def test_calls_that_follow_each_other_are_in_that_order() -> None:
    told: list[Told] = [
        (Allocate(2), OK, 0, 1),
        (Read(), (3, 2), 2, 3),
        (Change(2, 3), OK, 4, 5),
        (Allocate(1), REFUSED, 6, 7),
        (SetLimit(2), REFUSED, 8, 9),
        (Release(3), OK, 10, 11),
        (SetLimit(0), OK, 12, 13),
        (Read(), (0, 0), 14, 15),
    ]
    order = linearize(history(*told), LedgerModel(3))
    assert order is not None
    assert [call.op for call in order] == [op for op, *_ in told]


def test_calls_at_the_same_time_are_in_whichever_order_explains_them() -> None:
    assert holds(1, (Allocate(1), REFUSED, 0, 10), (Allocate(1), OK, 1, 9), (Read(), (1, 0), 2, 8))
    assert holds(1, (Release(1), OK, 2, 10), (Allocate(1), OK, 0, 1), (Allocate(1), OK, 3, 9))


@pytest.mark.parametrize(
    ("defect", "limit", "told"),
    [
        ("two get what one may", 1, [(Allocate(1), OK, 0, 3), (Allocate(1), OK, 1, 2)]),
        ("a read forgets what was told before", 5, [(Allocate(1), OK, 0, 1), (Read(), (5, 0), 2, 3)]),
        ("a read sees what begins later", 5, [(Read(), (5, 1), 0, 1), (Allocate(1), OK, 2, 3)]),
        ("two reads see the world go back", 5, [
            (Allocate(1), OK, 0, 9), (Read(), (5, 1), 1, 2), (Read(), (5, 0), 3, 4)
        ]),
        ("what fits is refused", 5, [(Allocate(1), REFUSED, 0, 1)]),
        ("what was released stays counted", 1, [
            (Allocate(1), OK, 0, 1), (Release(1), OK, 2, 3), (Allocate(1), REFUSED, 4, 5)
        ]),
        ("it is released twice", 9, [(Allocate(2), OK, 0, 1), (Release(2), OK, 2, 3), (Read(), (9, -2), 4, 5)]),
        ("a limit goes below what is used", 5, [(Allocate(3), OK, 0, 1), (SetLimit(2), OK, 2, 3)]),
        ("a change goes over the limit", 3, [(Allocate(1), OK, 0, 1), (Change(1, 4), OK, 2, 3)]),
        ("a change is half done", 9, [(Allocate(1), OK, 0, 1), (Change(1, 4), OK, 2, 3), (Read(), (9, 5), 4, 5)]),
        ("a smaller one is refused", 3, [(Allocate(3), OK, 0, 1), (Change(3, 2), REFUSED, 2, 3)]),
        ("a dead caller's is counted twice", 9, [
            (Allocate(1, "dead"), UNKNOWN, 0, None), (Read(), (9, 2), 2, 3)
        ]),
        ("a dead caller's comes before it was asked for", 9, [
            (Read(), (9, 1), 0, 1), (Allocate(1, "dead"), UNKNOWN, 2, None)
        ]),
        ("a dead caller's release is carried out after all", 9, [
            (Allocate(2), OK, 0, 1), (Release(2, "dead"), UNKNOWN, 2, None), (Confirm("dead"), OK, 3, 4),
            (Read(), (9, 0), 5, 6),
        ]),
        ("a dead caller's release is rolled back", 9, [
            (Allocate(2), OK, 0, 1), (Release(2, "dead"), UNKNOWN, 2, None), (Read(), (9, 0), 3, 4),
            (Confirm("dead"), OK, 5, 6),
        ]),
        ("nobody's is rolled back", 9, [
            (Allocate(2), OK, 0, 1), (Expire("dead"), UNKNOWN, 2, None), (Read(), (9, 0), 3, 4)
        ]),
    ],
    ids=lambda value: value.replace(" ", "-") if isinstance(value, str) else "",
)  # fmt: skip
def test_a_history_that_nothing_explains_is_rejected(defect: str, limit: int, told: list[Told]) -> None:
    assert not holds(limit, *told), defect


def test_what_a_dead_caller_asked_may_have_happened_or_not_and_may_be_rolled_back() -> None:
    dead: Told = (Allocate(1, "dead"), UNKNOWN, 0, None)
    assert holds(1, dead, (Allocate(1), OK, 2, 3))
    assert holds(1, dead, (Allocate(1), REFUSED, 2, 3))
    assert not holds(1, dead, (Allocate(1), REFUSED, 2, 3), (Allocate(1), OK, 4, 5))
    gone: Told = (Expire("dead"), UNKNOWN, 3, None)
    assert holds(1, dead, gone, (Allocate(1), REFUSED, 2, 3), (Allocate(1), OK, 4, 5))


def brute(calls: list[Call[Op]], limit: int) -> bool:
    """Try every order of every subset of what is uncertain."""
    model = LedgerModel(limit)
    certain = [call for call in calls if call.returned is not None]
    doubtful = [call for call in calls if call.returned is None]
    for size in range(len(doubtful) + 1):
        for some in itertools.combinations(doubtful, size):
            if any(explains(order, model) for order in itertools.permutations([*certain, *some])):
                return True
    return False


def explains(order: tuple[Call[Op], ...], model: LedgerModel) -> bool:
    state = model.start()
    for place, call in enumerate(order):
        if any(later.returned is not None and later.returned < call.called for later in order[place:]):
            return False
        stepped = model.step(state, call.op)
        if stepped is None or (call.returned is not None and stepped[0] != call.result):
            return False
        state = stepped[1]
    return True


def test_it_agrees_with_trying_everything() -> None:
    draw = random.Random(7)
    verdicts = {True: 0, False: 0}
    for _ in range(400):
        calls: list[Call[Op]] = []
        for number in range(draw.randint(2, 5)):
            op, result = draw.choice(
                [
                    (Allocate(1), OK),
                    (Allocate(1), REFUSED),
                    (Allocate(2), OK),
                    (Release(1), OK),
                    (Read(), (2, draw.randint(0, 2))),
                    (SetLimit(1), OK),
                    (Change(1, 2), OK),
                ]
            )
            called = draw.randint(0, 8) * 10 + number
            dies = draw.random() < 0.2
            calls.append(
                Call(op, UNKNOWN if dies else result, called, None if dies else called + draw.randint(1, 40))  # type: ignore[arg-type]  # whichever the model answers
            )
        verdict = linearize(calls, LedgerModel(2)) is not None
        assert verdict == brute(calls, 2), calls
        verdicts[verdict] += 1
    assert min(verdicts.values()) > 50, "both verdicts were reached often"


def test_many_equal_calls_at_once_are_validated_at_once_either_way() -> None:
    admitted: list[Call[Op]] = [Call(Allocate(1), OK, 0, 100 + number) for number in range(32)]
    refused: list[Call[Op]] = [Call(Allocate(1), REFUSED, 0, 200 + number) for number in range(96)]
    assert linearize([*admitted, *refused], LedgerModel(32)) is not None
    assert linearize([*admitted, *refused], LedgerModel(31)) is None
    assert linearize([*admitted, *refused], LedgerModel(33)) is None
