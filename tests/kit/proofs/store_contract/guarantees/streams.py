"""What watches promise under load: recorded streams against the recorded writes, cut and resumed at every event."""

import asyncio

from remuda.store.contract import Bookmark, Change, Event
from tests.kit.proofs.store_contract import validators
from tests.kit.proofs.store_contract.guarantee import Guarantee, guarantee
from tests.kit.proofs.store_contract.harness import Harness, eventually
from tests.kit.proofs.store_contract.load import NORTH, SOUTH, Load
from tests.kit.proofs.store_contract.steps import present, watching
from tests.kit.sample_kinds import Horse, horse

GUARANTEES: list[Guarantee] = []

Events = list[Event[Horse]]
Labels = dict[str, str] | None

FENCE = "zz-fence"
"""The last horse of a load: a recording ends before it."""


async def record(harness: Harness, events: Events, *, since: str, labels: Labels = None) -> Events:
    """Fill `events` with what a watch from `since` shows up to the fence, and return it."""
    async with watching(harness, Horse, since=since, labels=labels) as watch:
        while isinstance(event := await watch.event(), Bookmark) or event.resource.name != FENCE:
            events.append(event)
    return events


def changes_of(events: Events) -> list[Change[Horse]]:
    return [event for event in events if isinstance(event, Change)]


async def loaded(harness: Harness, narrow: Events) -> list[validators.Write]:
    """Return what was written before the fence, with a bookmark for the narrow watch between two bursts."""
    load = Load(harness, writers=4)
    await load.go_on(steps=4)
    seen = len(narrow)
    await load.add(horse("stranger", labels=SOUTH))

    async def is_bookmarked() -> bool:
        return any(isinstance(event, Bookmark) for event in narrow[seen:])

    await eventually(harness, "a watch that a stranger passed by is given a bookmark", is_bookmarked)
    await load.go_on(steps=4)
    await harness.store.create(horse(FENCE, labels=NORTH))
    return load.writes


@guarantee(
    GUARANTEES, "Under load a watch is ordered, unique, reliable, filtered, bookmarked, and resumable at every event."
)
async def a_watch_under_load_keeps_all_its_promises(harness: Harness) -> None:
    since = await present(harness, Horse)
    whole: Events = []
    narrow: Events = []
    _, _, writes = await asyncio.gather(
        record(harness, whole, since=since),
        record(harness, narrow, since=since, labels=NORTH),
        loaded(harness, narrow),
    )
    everything = changes_of(whole)
    validators.unique(everything)
    validators.ordered(everything, writes)
    validators.reliable(everything, writes)
    validators.never_back(everything, writes)
    validators.filtered(changes_of(narrow), everything, NORTH)
    for events, labels in ((whole, None), (narrow, NORTH)):
        resumed = {
            version: changes_of(await record(harness, [], since=version, labels=labels))
            for version in {event.version: None for event in events}
        }
        validators.resumable(changes_of(events), resumed)
        validators.bookmarkable(events, resumed)
