"""A lane of the simulated machine: work runs on the loop itself, after a seeded while of virtual time."""

import asyncio

from remuda.kernel.randomness import Randomness
from remuda.store.sqlite.lanes import Done, Work


class SimLane:
    """Keeps the order of what was submitted, as a thread with a queue does."""

    def __init__(self, randomness: Randomness, *, longest_s: float = 0.02) -> None:
        self._randomness = randomness
        self._longest_s = longest_s
        self._free_at = 0.0

    def submit(self, work: Work, done: Done) -> None:
        loop = asyncio.get_running_loop()
        started = max(loop.time(), self._free_at)
        self._free_at = started + self._randomness.uniform(0, self._longest_s)
        loop.call_at(self._free_at, self._run, work, done)

    def close(self) -> None:
        """Nothing to stop: what was submitted runs on the loop."""

    def _run(self, work: Work, done: Done) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001  as a thread would, hand it to whoever waits
            done(error)
        else:
            done(None)
