"""What watches promise under load: recorded streams against the recorded writes, cut and resumed at every event."""

import asyncio

from tests.contract import load, validators
from tests.contract.harness import Harness
from tests.contract.kinds import Horse, horse
from tests.contract.law import Law, law
from tests.contract.steps import present, watching

LAWS: list[Law] = []

Stream = validators.Stream[Horse]

FENCE = "zz-fence"


async def recorded(harness: Harness, *, since: str, labels: dict[str, str] | None = None) -> Stream:
    """Return what a watch from `since` shows up to the fence."""
    async with watching(harness, Horse, since=since, labels=labels) as watch:
        return (await watch.until_named(FENCE))[:-1]


async def loaded(harness: Harness) -> list[validators.Write]:
    """Return what was written before the fence."""
    writes = await load.run(harness, writers=4, steps=8)
    await harness.store.create(horse(FENCE, labels=load.NORTH))
    return writes


@law(LAWS, "Under load a watch is ordered, unique, reliable, filtered and resumable at every event.")
async def a_watch_under_load_keeps_all_its_promises(harness: Harness) -> None:
    since = await present(harness, Horse)
    whole, narrow, writes = await asyncio.gather(
        recorded(harness, since=since),
        recorded(harness, since=since, labels=load.NORTH),
        loaded(harness),
    )
    validators.unique(whole)
    validators.ordered(whole, writes)
    validators.reliable(whole, writes)
    validators.never_back(whole, writes)
    validators.filtered(narrow, whole, load.NORTH)
    for stream, labels in ((whole, None), (narrow, load.NORTH)):
        resumed = {change.version: await recorded(harness, since=change.version, labels=labels) for change in stream}
        validators.resumable(stream, resumed)
