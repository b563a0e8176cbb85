"""A list of everything, without a limit: it is streamed, and never blocks the loop."""

import asyncio
import gc
from collections.abc import Iterator

from bench.bed import Bed
from bench.http.app import PREFIX
from bench.http.inside import Answered, Request
from bench.http.service import MEMBER, OPERATOR
from bench.http.validating import answering
from bench.loopwatch import Held, watched
from bench.report import Measure, at_most, figure

__all__ = ["measures"]

_LIMIT_MS = 10.0


def measures(bed: Bed) -> Iterator[Measure]:
    """List as one who may see all, and as one whose right has to be looked at for each object."""
    for title, token in (("", OPERATOR), (", by permission to each", MEMBER)):
        held, answered = asyncio.run(_listed(bed, token))
        listed = f"{bed.sizes.listed:,} objects listed without limit{title}"
        yield at_most(1, f"blocks the event loop: {listed}", held.cpu_s * 1_000, _LIMIT_MS, "ms CPU")
        yield figure(f"wall lag: {listed}", held.lag_s * 1_000, "ms")
        yield figure(f"answered: {listed}", answered.length / 2**20, "MiB")


async def _collect() -> None:
    """Have the garbage collector look at what is new, as it would of itself now and then: here, when that is most."""
    asyncio.get_running_loop().call_soon(gc.collect, 0)
    await asyncio.sleep(0)


async def _listed(bed: Bed, token: str) -> tuple[Held, Answered]:
    store = bed.open(bed.filled(bed.sizes.listed))
    async with answering(bed, store) as app:
        request = Request(app, f"{PREFIX}/api/v2/machines", token=token)
        async with watched() as held:
            answered = await asyncio.create_task(request.send())
            await _collect()
    await store.close()
    assert answered.status == 200
    return held, answered
