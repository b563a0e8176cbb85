"""What a provider said a moment ago, so that a slow provider does not make every request slow.

An answer is fresh for `fresh_s` and is given out without asking. After that the provider is asked again, once for all
who wait (single flight). Whoever finds an older answer waits at most `patience_s` from the moment the provider was
asked, and then takes the older one, up to `stale_s` old; whoever finds none waits for the provider, and is told what it
says. If the provider cannot say, the older answer counts as fresh once more, so that not every request asks it again.

Whoever has changed something at the provider calls `forget`: nobody is given an answer as fresh that was asked for
before.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from remuda.kernel.clock import Clock
from remuda.kernel.errors import Unavailable

AnswerT = TypeVar("AnswerT")


@dataclass(frozen=True, slots=True, kw_only=True)
class Freshness:
    """How old an answer may be."""

    fresh_s: float = 10.0
    """No older one is given out while the provider answers."""
    patience_s: float = 1.0
    """Who has an older one waits so long for the provider."""
    stale_s: float = 3600.0
    """No older one is given out at all."""


@dataclass(frozen=True, slots=True)
class _Said(Generic[AnswerT]):
    answer: AnswerT
    at: float


class Recent(Generic[AnswerT]):
    """One question to a provider, and what it said last."""

    def __init__(
        self, ask: Callable[[], Awaitable[AnswerT]], *, clock: Clock, freshness: Freshness | None = None
    ) -> None:
        self._ask, self._clock = ask, clock
        self._freshness = freshness or Freshness()
        self._said: _Said[AnswerT] | None = None
        self._ask_after = 0.0
        self._asking: asyncio.Task[AnswerT] | None = None
        self._asked_at = 0.0

    async def read(self) -> AnswerT:
        """Return what the provider says, or said, or raise what it raises."""
        now = self._clock.monotonic()
        said = self._said
        if said is not None and now < self._ask_after:
            return said.answer
        asking = self._begin(now)
        if said is None or now - said.at > self._freshness.stale_s:
            return await asyncio.shield(asking)
        await asyncio.wait((asking,), timeout=max(0.0, self._asked_at + self._freshness.patience_s - now))
        return _outcome(asking, said.answer)

    def forget(self) -> None:
        """Ask the provider next time: what it said, and what it is saying, may no longer be so."""
        self._ask_after = 0.0
        self._asking = None

    def _begin(self, now: float) -> asyncio.Task[AnswerT]:
        if self._asking is None:
            self._asked_at = now
            self._asking = asyncio.create_task(self._renew(), name="asking a provider again")
            self._asking.add_done_callback(self._end)
        return self._asking

    async def _renew(self) -> AnswerT:
        try:
            answer = await self._ask()
            if self._is_awaited():
                self._said = _Said(answer, self._clock.monotonic())
            return answer
        finally:
            if self._is_awaited():
                self._ask_after = self._clock.monotonic() + self._freshness.fresh_s

    def _is_awaited(self) -> bool:
        """Tell whether the present task asks for what counts, rather than for what was forgotten meanwhile."""
        return self._asking is asyncio.current_task()

    def _end(self, asking: asyncio.Task[AnswerT]) -> None:
        if self._asking is asking:
            self._asking = None
        if not asking.cancelled():
            asking.exception()  # whoever waited has been told


def _outcome(asking: asyncio.Task[AnswerT], otherwise: AnswerT) -> AnswerT:
    if not asking.done():
        return otherwise
    try:
        return asking.result()
    except Unavailable:
        return otherwise
