"""The validators on streams made by hand: each accepts a sound one and rejects the one that was doctored for it."""

import re
from collections.abc import Sequence
from typing import Literal

import pytest

from remuda.store.contract import Bookmark, Change, Event
from remuda.store.objects import Metadata
from tests.kit.proofs.store_contract import validators
from tests.kit.proofs.store_contract.validators import Write
from tests.kit.sample_kinds import Horse

NORTH, SOUTH = {"herd": "north"}, {"herd": "south"}
Type = Literal["added", "modified", "deleted"]


def change(of: Type, name: str, version: int, labels: dict[str, str] = NORTH, *, uid: str = "") -> Change[Horse]:
    metadata = Metadata(name=name, uid=uid or f"{name}-uid", labels=labels, resource_version=str(version))
    return Change(of, str(version), Horse(metadata=metadata))


def write(of: Type, name: str, version: int, began: int) -> Write:
    told = "" if of == "deleted" else str(version)
    return Write(type=of, name=name, uid=f"{name}-uid", version=told, began=began, ended=began)


SOUND = [
    change("added", "a", 1),
    change("added", "b", 2),
    change("modified", "a", 3, SOUTH),
    change("modified", "b", 4),
    change("modified", "a", 5),
    change("deleted", "b", 6),
]
WRITES = [
    write("added", "a", 1, 0),
    write("added", "b", 2, 1),
    write("modified", "a", 3, 2),
    write("modified", "b", 4, 3),
    write("modified", "a", 5, 4),
    write("deleted", "b", 6, 5),
]
NARROW = [
    change("added", "a", 1),
    change("added", "b", 2),
    change("deleted", "a", 3),
    change("modified", "b", 4),
    change("added", "a", 5),
    change("deleted", "b", 6),
]
RESUMED = {event.version: SOUND[place + 1 :] for place, event in enumerate(SOUND)}
MARKED: Sequence[Event[Horse]] = [*SOUND[:2], Bookmark("2"), *SOUND[2:], Bookmark("6")]


def rejected(sentence: str) -> pytest.RaisesExc[AssertionError]:
    return pytest.RaisesExc(AssertionError, match=re.escape(sentence))


def test_a_sound_stream_is_accepted_by_all() -> None:
    validators.unique(SOUND)
    validators.ordered(SOUND, WRITES)
    validators.reliable(SOUND, WRITES)
    validators.never_back(SOUND, WRITES)
    validators.filtered(NARROW, SOUND, NORTH)
    validators.resumable(SOUND, RESUMED)
    validators.bookmarkable(MARKED, {"2": SOUND[2:], "6": []})


def test_a_repeated_change_is_not_unique() -> None:
    with rejected("shown more than once: the changes at ['3']"):
        validators.unique([*SOUND, SOUND[2]])


def test_a_change_shown_before_an_earlier_one_is_not_ordered() -> None:
    swapped = [SOUND[1], SOUND[0], *SOUND[2:]]
    with rejected("a at 1 is shown after b at 2, begun later"):
        validators.ordered(swapped, WRITES)


def test_writes_at_the_same_time_may_be_shown_in_any_order() -> None:
    at_once = [Write(type="added", name=n, uid=f"{n}-uid", version=v, began=0, ended=1) for n, v in ("a1", "b2")]
    validators.ordered([SOUND[1], SOUND[0]], at_once)
    validators.ordered([SOUND[0], SOUND[1]], at_once)


def test_a_missing_change_is_not_reliable() -> None:
    with rejected("never shown: b modified at 4"):
        validators.reliable([*SOUND[:3], *SOUND[4:]], WRITES)


def test_a_missing_end_is_not_reliable() -> None:
    with rejected("never shown: b deleted at the end"):
        validators.reliable(SOUND[:-1], WRITES)


def test_a_change_of_another_type_is_not_reliable() -> None:
    with rejected("never shown: a modified at 3"):
        validators.reliable([*SOUND[:2], change("added", "a", 3), *SOUND[3:]], WRITES)


def test_an_invented_change_is_not_reliable() -> None:
    with rejected("shown but never written: ('modified', 'a', '9')"):
        validators.reliable([*SOUND, change("modified", "a", 9)], WRITES)


def test_an_invented_end_is_not_reliable() -> None:
    with rejected("shown but never written: ('deleted', 'a', '9')"):
        validators.reliable([*SOUND, change("deleted", "a", 9)], WRITES)


def test_an_object_seen_after_its_end_goes_back() -> None:
    with rejected("seen again after its end: ('modified', 'b', '4')"):
        validators.never_back([*SOUND[:3], SOUND[5], SOUND[3]], [])


def test_an_object_seen_before_its_beginning_goes_back() -> None:
    with rejected("seen before it was added: ('modified', 'a', '3')"):
        validators.never_back([SOUND[2], SOUND[0]], [])


def test_an_incarnation_that_comes_before_the_last_one_went_goes_back() -> None:
    with rejected("added while another incarnation is there: ('added', 'a', '7')"):
        validators.never_back([SOUND[0], change("added", "a", 7, uid="another")], [])


def test_two_states_of_one_object_in_the_wrong_order_go_back() -> None:
    with rejected("shown after a newer state: ('modified', 'a', '3')"):
        validators.never_back([*SOUND[:2], SOUND[4], SOUND[2]], WRITES)


@pytest.mark.parametrize(
    "doctored",
    [
        [*NARROW[:2], *NARROW[3:]],
        [*NARROW[:4], change("modified", "a", 5), NARROW[5]],
        [*NARROW[:2], change("modified", "a", 3), *NARROW[3:]],
        [*NARROW, change("added", "c", 7)],
    ],
    ids=["leaving is hidden", "entering is modified", "leaving is modified", "a stranger"],
)
def test_a_stream_that_shows_something_else_is_not_filtered(doctored: list[Change[Horse]]) -> None:
    with rejected("the filter shows something else than what carries it"):
        validators.filtered(doctored, SOUND, NORTH)


def test_an_object_that_leaves_in_its_new_state_is_not_filtered() -> None:
    with rejected("shown in a state that does not carry the labels: [('deleted', 'a', '3')]"):
        validators.filtered([*NARROW[:2], change("deleted", "a", 3, SOUTH), *NARROW[3:]], SOUND, NORTH)


def test_a_stream_that_repeats_or_skips_after_a_cut_is_not_resumable() -> None:
    for rest in (SOUND[2:], SOUND[4:]):
        with rejected("cut after ('modified', 'a', '3'), the stream goes on differently"):
            validators.resumable(SOUND, RESUMED | {"3": rest})


def test_a_stream_that_repeats_or_skips_after_a_bookmark_is_not_bookmarkable() -> None:
    for rest in (SOUND[1:], SOUND[3:]):
        with rejected("resumed from the bookmark at 2, the stream goes on differently"):
            validators.bookmarkable(MARKED, {"2": rest, "6": []})
