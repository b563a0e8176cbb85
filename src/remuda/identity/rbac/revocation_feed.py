"""What is revoked, followed from another process.

The feed is a watch. It knows everything that was revoked once the watch is synced, and is told of more within a moment.
While it hears nothing, not even a heartbeat, it cannot know: `check` refuses once that has lasted for 10 s, until the
watch is back. (So identity's heartbeats must come more often than that.)
"""

from contextlib import aclosing
from typing import TYPE_CHECKING, NoReturn

from remuda.identity.rbac.routes import REVOCATIONS
from remuda.identity.rbac.schema import RevocationRead
from remuda.kernel.clock import Clock
from remuda.kernel.errors import RemudaError, Unavailable

if TYPE_CHECKING:  # identity itself takes a number from here, and does not need what takes long to import
    from remuda.http.client import Client, Seen


OLDEST_S = 10.0
"""How long the feed may be silent and still be believed."""
HEARTBEAT_S = 3.0
"""How often identity has to give a sign of life, so that losing one of them is no trouble."""

_PAUSE_S = 1.0


class IdentitySilent(Unavailable):
    """Raised when identity has not been heard of for too long to know who may do what; it passes when that is back.

    It is no 401: nothing is wrong with the caller's credentials, and a client that took it for that would throw away a
    good token and log in again, at an identity service that is in trouble already.
    """

    retry_after_s = 2

    def __init__(self, why: str) -> None:
        super().__init__(f"Nobody can be told apart at the moment, because {why}: try again a little later.")


class RevocationFeed:
    """The ids of tokens and sessions that are over before their time. `run` it for as long as it is asked."""

    def __init__(self, client: "Client", clock: Clock) -> None:
        """Take a client with this service's own credentials."""
        self._client, self._clock = client, clock
        self._revoked: set[str] = set()
        self._present: set[str] = set()
        """What a watch that began anew has told so far."""
        self._is_synced = False
        self._heard_at: float | None = None

    def check(self) -> None:
        """Raise IdentitySilent unless the feed is believed."""
        if self._heard_at is None or self._clock.monotonic() - self._heard_at > OLDEST_S:
            raise IdentitySilent("what was revoked is not known")

    def __contains__(self, revoked: str) -> bool:
        return revoked in self._revoked

    async def run(self) -> NoReturn:
        """Follow what is revoked, whatever happens."""
        while True:
            self._is_synced = False
            self._present = set()
            try:
                await self._follow()
            except (RemudaError, ValueError):  # what was known stays known, until it is too old to be believed
                await self._clock.sleep(_PAUSE_S)

    async def _follow(self) -> None:
        async with aclosing(self._client.watch(REVOCATIONS, heard=self._heard)) as news:
            async for seen in news:
                self._take(seen)

    def _heard(self) -> None:
        if self._is_synced:
            self._heard_at = self._clock.monotonic()

    def _take(self, seen: "Seen[RevocationRead]") -> None:
        known = self._revoked if self._is_synced else self._present
        if seen.type == "synced":
            self._revoked, self._is_synced = self._present, True
        elif seen.item is not None and seen.type == "deleted":
            known.discard(seen.item.id)
        elif seen.item is not None:
            known.add(seen.item.id)
