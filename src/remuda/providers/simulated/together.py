"""Effects that are asked for in one turn of the loop: each whole or not at all, all in one commit.

A commit costs as much as several effects. Only a cloud that answers at once is asked for so many of them in a turn.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from remuda.providers.simulated.database import IsTold, Storage
from remuda.providers.simulated.timers import Clockwork

T = TypeVar("T")


class Together:
    """Gathers effects."""

    def __init__(self, clockwork: Clockwork, storage: Storage, *, is_told: IsTold) -> None:
        self._clockwork, self._storage, self._is_told = clockwork, storage, is_told
        self._asked: list[tuple[Callable[[], Any], asyncio.Future[Any]]] = []

    @property
    def is_busy(self) -> bool:
        """Something is still to be done."""
        return bool(self._asked)

    async def have(self, effect: Callable[[], T]) -> T:
        """Have an effect in the commit at the end of this turn. Who gives up waiting leaves it as it is."""
        loop = asyncio.get_running_loop()
        if not self._asked:
            loop.call_soon(self._commit)
        answer: asyncio.Future[T | Exception] = loop.create_future()
        self._asked.append((effect, answer))
        outcome = await answer
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def _commit(self) -> None:
        asked, self._asked = self._asked, []
        for (_, answer), outcome in zip(asked, self._outcomes([effect for effect, _ in asked]), strict=True):
            if not answer.done():
                answer.set_result(outcome)

    def _outcomes(self, effects: Sequence[Callable[[], Any]]) -> Sequence[Any]:
        try:
            self._clockwork.settle()
            return self._storage.write_all(effects, is_told=self._is_told)
        except Exception as error:  # noqa: BLE001  nobody else is there to hear of it
            return [error] * len(effects)
