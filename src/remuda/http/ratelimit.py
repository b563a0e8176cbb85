"""Rate limits, one for each principal, by GCRA: a leaky bucket that needs one number for each caller.

A caller may use its whole quota at once; after that it regains one request every `window_s / quota` seconds. A rejected
request costs nothing. A caller without requests for a whole window is forgotten, and the number of callers in memory is
bounded. Callers without credentials share a quota for each IPv4 address or IPv6 /64 network. Headers are those of the
IETF draft `ratelimit-headers`: the policy (`q` requests in `w` seconds) and the remainder (`r` requests; the whole
quota is back in `t` seconds).
"""

import ipaddress
import math
from dataclasses import dataclass
from functools import lru_cache

from remuda.http.responses import Header
from remuda.kernel.clock import Clock
from remuda.kernel.errors import TooMany

_MAX_CALLERS = 100_000
_NETWORK_BITS = 64
SITE_BITS = 48
"""Length of the prefix that a site usually has: 65,536 networks of one client each."""
_NETWORKS = 4096
HEADERS = frozenset({b"ratelimit-policy", b"ratelimit"})
"""Names of the headers that every response to a caller has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimit:
    """Number of requests that a caller may send in a window."""

    quota: int = 6_000
    window_s: int = 60
    name: str = "default"


class OverLimit(TooMany):
    """Raised when a caller's quota is used up; retry after Retry-After."""

    def __init__(self, retry_after_s: int, headers: tuple[Header, ...]) -> None:
        super().__init__(retry_after_s)
        self.headers = headers


class RateLimiter:
    """Counter of the requests of each caller."""

    def __init__(self, limit: RateLimit, clock: Clock, *, most_callers: int = _MAX_CALLERS) -> None:
        self._window_s = float(limit.window_s)
        self._cost_s = limit.window_s / limit.quota
        self._clock, self._most_callers = clock, most_callers
        self._policy: Header = (b"ratelimit-policy", f'"{limit.name}";q={limit.quota};w={limit.window_s}'.encode())
        self._left = f'"{limit.name}";r=%d;t=%d'.encode()
        self._empty_at: dict[str, float] = {}
        """By caller, the longest inactive first."""

    def __len__(self) -> int:
        return len(self._empty_at)

    def has_quota(self, who: str, requests: int = 1) -> bool:
        """Return whether a caller has quota for further requests."""
        empty_at = self._empty_at.get(who)
        if empty_at is None:
            return self._fits(requests * self._cost_s, 0.0)
        now = self._clock.monotonic()
        return self._fits(max(empty_at, now) + requests * self._cost_s, now)

    def refund(self, who: str) -> None:
        """Undo the last `take` of a caller."""
        if who in self._empty_at:
            self._empty_at[who] -= self._cost_s

    def take(self, who: str, requests: int = 1) -> tuple[Header, ...]:
        """Count requests of a caller and return the response headers; raise OverLimit if it has no quota for them."""
        now = self._clock.monotonic()
        before = max(self._empty_at.get(who, now), now)
        after = self._check(before, now, requests)
        self._empty_at.pop(who, None)
        self._empty_at[who] = after
        self._forget(now)
        return self._headers(after - now)

    def charge(self, who: str, requests: int) -> tuple[Header, ...]:
        """Count requests of a caller that are done already, even beyond its quota, and return the response headers."""
        now = self._clock.monotonic()
        after = max(self._empty_at.pop(who, now), now) + requests * self._cost_s
        self._empty_at[who] = after
        self._forget(now)
        return self._headers(after - now)

    def _check(self, before: float, now: float, requests: int) -> float:
        """Return when a bucket is empty after more requests, or raise OverLimit if they do not fit."""
        after = before + requests * self._cost_s
        if not self._fits(after, now):
            wait_s = max(1, math.ceil(after - now - self._window_s))
            headers = (*self._headers(before - now), (b"retry-after", b"%d" % wait_s))
            raise OverLimit(wait_s, headers)
        return after

    def _fits(self, empty_at: float, now: float) -> bool:
        # In floating point the parts of a window do not add up to it exactly, and the last request must fit.
        return empty_at - now <= self._window_s * (1 + 1e-9)

    def _headers(self, used_s: float) -> tuple[Header, ...]:
        remaining = max(0, int((self._window_s - used_s) / self._cost_s + 1e-6))
        return self._policy, (b"ratelimit", self._left % (remaining, math.ceil(used_s)))

    def _forget(self, now: float) -> None:
        """Drop callers whose quota is back, from the front; any other such caller follows within a window."""
        callers = self._empty_at
        while callers and (callers[first := next(iter(callers))] <= now or len(callers) > self._most_callers):
            del callers[first]


def anonymous(peer: tuple[str, int] | None) -> str:
    """Return the key under which a caller without credentials is counted."""
    return f"anonymous@{client_network(peer[0]) if peer else ''}"


def client_network(host: str, *, bits: int = _NETWORK_BITS) -> str:
    """Return the network that counts as one client: an IPv4 address, or the /64 network of an IPv6 address.

    `bits` is the length of another prefix, such as SITE_BITS where clients take turns: with a turn for each of its
    networks a single site would have nearly all.
    """
    return _network(host, bits) if ":" in host else host


@lru_cache(_NETWORKS)
def _network(host: str, bits: int) -> str:
    address = ipaddress.IPv6Address(host.partition("%")[0])
    if address.ipv4_mapped:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Network((address, bits), strict=False))
