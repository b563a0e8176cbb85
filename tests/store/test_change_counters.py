"""What was changed last, for whoever keeps what was made of it: never told too early, in bounded memory."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.store.contract import Dependency, indexed, labelled, named
from remuda.store.derived import DerivedCache
from remuda.store.readside import change_feed as module
from remuda.store.readside.change_feed import ChangeCounters, CommittedChange
from remuda.store.readside.reads import committed_change
from remuda.store.readside.tables import ADDED, MODIFIED, Revision
from tests.kit.environment import options
from tests.kit.proofs.store_contract.steps import with_spec
from tests.kit.sample_kinds import CORRAL, HORSE, REGISTRY, Horse, HorseSpec, horse
from tests.kit.simulation.runner import World
from tests.kit.simulation.store import open_simulated

FEW = 8
NAMES, COLOURS, HERDS = ("a", "b", "c", "d"), ("bay", "grey", "roan"), ("north", "south", "east")
PARTS: list[Dependency] = [
    *(named(Horse, name) for name in NAMES),
    *(indexed(Horse, "colour", colour) for colour in COLOURS),
    *(labelled(Horse, "herd", herd) for herd in HERDS),
]
Write = tuple[str, str, str]
"""The name, the colour and the herd of a horse."""
WRITES = st.tuples(st.sampled_from(NAMES), st.sampled_from(COLOURS), st.sampled_from(HERDS))


def state(write: Write) -> Horse:
    name, colour, herd = write
    return horse(name, labels={"herd": herd}, spec=HorseSpec(colour=colour))


def parts_of(write: Write) -> set[Dependency]:
    name, colour, herd = write
    return {named(Horse, name), indexed(Horse, "colour", colour), labelled(Horse, "herd", herd)}


def change(write: Write, previous: Write | None = None) -> CommittedChange[Horse]:
    """Return a write as it lands: with the state before only if the horse is found otherwise since."""
    revision = Revision(1, write[0], ADDED if previous is None else MODIFIED, b"", None)
    before = None if previous in {None, write} else previous
    return committed_change(revision, state(write), before and state(before), fully_known=True)


@given(steps=st.lists(st.lists(WRITES, min_size=1, max_size=4) | st.sampled_from(["all", "others"]), max_size=30))
def test_whatever_changes_no_part_is_told_to_be_older_than_it_is(steps: list[list[Write] | str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_MAX_RECENT_ENTRIES", FEW)
        change_counts, present = ChangeCounters(REGISTRY.kinds), dict[str, Write]()
        change_counts.last(PARTS)
        for step in steps:
            before = {part: change_counts.last([part]) for part in PARTS}
            whole, everything = change_counts.last([Horse]), change_counts.last()
            changed: set[Dependency] = set()
            if isinstance(step, list):
                changes = []
                for write in step:
                    previous = present.get(write[0])
                    changed |= parts_of(write) | (parts_of(previous) if previous else set())
                    changes.append(change(write, previous))
                    present[write[0]] = write
                change_counts.change(HORSE, changes)
            elif step == "all":
                change_counts.change_all(HORSE)
                changed = set(PARTS)
            else:
                change_counts.change(CORRAL, [])
            assert change_counts.last() == everything + 1
            assert (change_counts.last([Horse]) > whole) == (step != "others")
            for part in PARTS:
                assert change_counts.last([part]) >= before[part]
                assert change_counts.last([part]) <= change_counts.last([Horse])
                assert part not in changed or change_counts.last([part]) == change_counts.last()


def test_a_part_that_was_changed_lately_is_told_exactly_and_others_stay() -> None:
    change_counts = ChangeCounters(REGISTRY.kinds)
    assert change_counts.last(PARTS) == 0
    change_counts.change(HORSE, [change(("a", "bay", "north"))])
    assert [part for part in PARTS if change_counts.last([part])] == [
        part for part in PARTS if part in parts_of(("a", "bay", "north"))
    ]


@pytest.mark.parametrize(("herd", "are_others_touched"), [(300, False), (400, True)])
def test_when_very_much_changes_at_once_all_of_its_kind_did(herd: int, *, are_others_touched: bool) -> None:
    change_counts, other = ChangeCounters(REGISTRY.kinds), named(Horse, "other")
    change_counts.last([other])
    change_counts.change(HORSE, [change((f"{number}", "bay", "north")) for number in range(herd)])
    assert change_counts.last([named(Horse, "0")]) == change_counts.last() == 1
    assert bool(change_counts.last([other])) == are_others_touched


@options(seeds=1)
async def test_what_is_kept_goes_with_what_it_was_made_from_and_with_nothing_else(world: World) -> None:
    store = open_simulated(world, REGISTRY)
    kept: DerivedCache[str, str] = DerivedCache(store, 2)
    bella, other = await store.create(horse("bella")), await store.create(horse("other"))
    part = named(Horse, "bella")
    store.change_counter([part])
    kept.put("one", [part], store.change_counter(), "made")
    other = await store.update(with_spec(other, colour="grey"))
    assert kept.find("one") == "made"
    bella = await store.update(with_spec(bella, colour="grey"))
    assert kept.find("one") is None
    assert "one" in kept
    before = store.change_counter()
    await store.update(with_spec(bella, colour="white"))  # after the reading began
    kept.put("one", [part], before, "made of an older state")
    assert kept.find("one") is None
    for key in ("two", "three"):
        kept.put(key, [part], store.change_counter(), key)
    assert (len(kept), "one" in kept) == (2, False)
    await store.close()
