"""A lane of the simulated machine: work runs on the loop itself, after a seeded while of virtual time."""

import asyncio
from collections import deque

from remuda.kernel.randomness import Randomness
from remuda.store.sqlite.executor import BlockingCall, Done


class SimExecutor:
    """Keeps the order of what was submitted, as a thread with a queue does."""

    def __init__(self, randomness: Randomness, *, longest_s: float = 0.02) -> None:
        self._randomness = randomness
        self._longest_s = longest_s
        self._free_at = 0.0
        self._submitted: deque[tuple[BlockingCall, Done]] = deque()

    def submit(self, work: BlockingCall, done: Done) -> None:
        loop = asyncio.get_running_loop()
        started = max(loop.time(), self._free_at)
        self._free_at = started + self._randomness.uniform(0, self._longest_s)
        self._submitted.append((work, done))
        loop.call_at(self._free_at, self._run_next)

    def close(self) -> None:
        """Finish what was submitted, without regard to its time."""
        while self._submitted:
            self._run_next()

    def _run_next(self) -> None:
        if not self._submitted:
            return
        work, done = self._submitted.popleft()
        error: BaseException | None = None
        try:
            work()
        except Exception as caught:  # noqa: BLE001  as a thread would, hand it to whoever waits
            error = caught
        asyncio.get_running_loop().call_soon(done, error)
