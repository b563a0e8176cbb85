"""The pasture as controllers reach it: every call goes through `providers.calls`."""

from collections.abc import Sequence

from remuda.providers.calls import Calls
from tests.example.pasture import Grazing, Pasture

VERBS = ("turn_out", "move", "bring_in", "find", "list")
DEADLINE_S = 5.0


class CalledPasture:
    """A pasture behind deadlines, bounds and a circuit breaker. What it is about is the mount's name."""

    def __init__(self, pasture: Pasture, calls: Calls) -> None:
        self._pasture, self._calls = pasture, calls

    async def turn_out(self, name: str, breed: str, paddock: str) -> Grazing:
        return await self._calls.call(
            name, "turn_out", lambda: self._pasture.turn_out(name, breed, paddock), deadline_s=DEADLINE_S
        )

    async def move(self, name: str, paddock: str) -> None:
        await self._calls.call(name, "move", lambda: self._pasture.move(name, paddock), deadline_s=DEADLINE_S)

    async def bring_in(self, name: str) -> None:
        await self._calls.call(name, "bring_in", lambda: self._pasture.bring_in(name), deadline_s=DEADLINE_S)

    async def find(self, name: str) -> Grazing | None:
        return await self._calls.call(name, "find", lambda: self._pasture.find(name), deadline_s=DEADLINE_S, safe=True)

    async def list(self) -> Sequence[Grazing]:
        return await self._calls.call("all", "list", self._pasture.list, deadline_s=DEADLINE_S, safe=True)
