from datetime import UTC, datetime

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from remuda.kernel.conditions import Condition, find_condition, set_condition

condition = st.builds(
    Condition,
    type=st.sampled_from(["Available", "Healthy", "Progressing"]),
    status=st.sampled_from(["True", "False", "Unknown"]),
    reason=st.sampled_from(["Provisioning", "Provisioned"]),
    message=st.sampled_from(["", "all is well"]),
    last_transition_time=st.datetimes(timezones=st.just(UTC)),
    observed_generation=st.none() | st.integers(1, 3),
)
conditions = st.lists(condition, unique_by=lambda each: each.type).map(tuple)


def types(some: tuple[Condition, ...]) -> list[str]:
    return [each.type for each in some]


@given(conditions, condition)
def test_the_new_statement_is_found_and_its_time_moves_only_on_a_flip(
    before: tuple[Condition, ...], new: Condition
) -> None:
    old = find_condition(before, new.type)
    kept = old is not None and old.status == new.status
    time = old.last_transition_time if old is not None and kept else new.last_transition_time
    after = set_condition(before, new)
    assert find_condition(after, new.type) == msgspec.structs.replace(new, last_transition_time=time)


@given(conditions, condition)
def test_others_and_the_order_stay(before: tuple[Condition, ...], new: Condition) -> None:
    after = set_condition(before, new)
    assert types(after) == types(before) + [new.type] * (new.type not in types(before))
    assert [each for each in after if each.type != new.type] == [each for each in before if each.type != new.type]


@given(conditions, condition, st.datetimes(timezones=st.just(UTC)))
def test_saying_the_same_later_gives_the_identical_tuple(
    before: tuple[Condition, ...], new: Condition, later: datetime
) -> None:
    after = set_condition(before, new)
    assert set_condition(after, msgspec.structs.replace(new, last_transition_time=later)) is after


def test_the_stored_form_has_camel_case_keys_and_no_empty_generation() -> None:
    time = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    new = Condition(type="Available", status="True", reason="Provisioned", message="", last_transition_time=time)
    assert msgspec.json.decode(msgspec.json.encode(new)) == {
        "type": "Available",
        "status": "True",
        "reason": "Provisioned",
        "message": "",
        "lastTransitionTime": "2026-01-02T03:04:05Z",
    }


@given(condition)
def test_a_condition_survives_its_stored_form_and_unknown_fields(some: Condition) -> None:
    stored = msgspec.to_builtins(some) | {"fieldOfALaterRelease": 1}
    assert msgspec.convert(stored, Condition) == some
