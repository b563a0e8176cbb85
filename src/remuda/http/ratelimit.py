"""Rate limits, one per principal.

The rule is GCRA, a leaky bucket that needs one number for each caller: the time at which its bucket will be empty. A
caller may use its whole quota at once; after that it regains one request every `window_s / quota` seconds. A refused
request costs nothing, so that a client that retries too early is not kept out for ever.

Who has not asked for a window's length has its quota back and is forgotten, and there is a bound on how many are
remembered at all. Callers without credentials share what belongs to their address; of an IPv6 address only the network
counts, since everybody has 2^64 of them.

Headers are those of the IETF draft `ratelimit-headers`: the policy (`q` requests in `w` seconds) and what is left of it
(`r` requests; the whole quota is back in `t` seconds).
"""

import ipaddress
import math
from dataclasses import dataclass
from functools import lru_cache

from remuda.http.responses import Header
from remuda.kernel.clock import Clock
from remuda.kernel.errors import TooMany

_MOST_CALLERS = 100_000
_NETWORK_BITS = 64
_NETWORKS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimit:
    """How often one caller may ask."""

    quota: int = 6_000
    window_s: int = 60
    name: str = "default"


class OverLimit(TooMany):
    """Raised when a caller's quota is used up; wait as long as Retry-After says."""

    def __init__(self, retry_after_s: int, headers: tuple[Header, ...]) -> None:
        super().__init__(retry_after_s)
        self.headers = headers
        """What to answer beside the error itself."""


class RateLimiter:
    """Counts the requests of each caller."""

    def __init__(self, limit: RateLimit, clock: Clock, *, most_callers: int = _MOST_CALLERS) -> None:
        self._window_s = float(limit.window_s)
        self._cost_s = limit.window_s / limit.quota
        self._clock, self._most_callers = clock, most_callers
        self._policy: Header = (b"ratelimit-policy", f'"{limit.name}";q={limit.quota};w={limit.window_s}'.encode())
        self._left = f'"{limit.name}";r=%d;t=%d'.encode()
        self._empty_at: dict[str, float] = {}
        """By caller, who asked longest ago first."""

    def __len__(self) -> int:
        """How many callers are remembered."""
        return len(self._empty_at)

    def check(self, who: str) -> None:
        """Raise OverLimit if a caller has nothing left; this costs the caller nothing, and us next to nothing."""
        empty_at = self._empty_at.get(who)
        if empty_at is not None:
            now = self._clock.monotonic()
            self._check(max(empty_at, now), now)

    def take(self, who: str) -> tuple[Header, ...]:
        """Charge one request to a caller and return the headers for its answer; raise OverLimit if it has none left."""
        now = self._clock.monotonic()
        before = max(self._empty_at.get(who, now), now)
        after = self._check(before, now)
        self._empty_at.pop(who, None)
        self._empty_at[who] = after
        self._forget(now)
        return self._headers(after - now)

    def _check(self, before: float, now: float) -> float:
        """Return when a bucket will be empty after one more request, if there is room for it."""
        after = before + self._cost_s
        # A quota of whole windows is not a sum of its parts in floating point, and the last request must fit.
        if after - now > self._window_s * (1 + 1e-9):
            wait_s = max(1, math.ceil(after - now - self._window_s))
            told = (*self._headers(before - now), (b"retry-after", b"%d" % wait_s))
            raise OverLimit(wait_s, told)
        return after

    def _headers(self, used_s: float) -> tuple[Header, ...]:
        remaining = int((self._window_s - used_s) / self._cost_s + 1e-6)
        return self._policy, (b"ratelimit", self._left % (remaining, math.ceil(used_s)))

    def _forget(self, now: float) -> None:
        """Drop those in front that have everything back; one behind them that has too is met within a window."""
        callers = self._empty_at
        while callers[first := next(iter(callers))] <= now or len(callers) > self._most_callers:
            del callers[first]


def anonymous(peer: tuple[str, int] | None) -> str:
    """Return the name under which a caller without credentials is counted."""
    host = peer[0] if peer else ""
    return f"anonymous@{_network(host) if ':' in host else host}"


@lru_cache(_NETWORKS)
def _network(host: str) -> str:
    address = ipaddress.IPv6Address(host.partition("%")[0])
    if address.ipv4_mapped:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Network((address, _NETWORK_BITS), strict=False))
