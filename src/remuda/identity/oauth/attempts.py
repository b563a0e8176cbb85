"""How often somebody may try: one account's password, from one address, and the codes of devices.

Each account and each address has its own quota, and an attempt needs some of both. An account that does not exist has
one too, so that nobody learns from being refused which ones do.
"""

from remuda.http.ratelimit import RateLimit, RateLimiter, anonymous
from remuda.kernel.clock import Clock

__all__ = ["Attempts"]


class Attempts:
    """Counts them."""

    def __init__(self, *, clock: Clock, per_minute: int) -> None:
        self._limiter = RateLimiter(RateLimit(quota=per_minute, window_s=60, name="attempts"), clock)

    def password(self, account: str, peer: str) -> None:
        """Charge an attempt at an account's password, or raise OverLimit."""
        self._limiter.take(f"password {anonymous((peer, 0))}")
        self._limiter.take(f"account {account}")

    def code(self, peer: str) -> None:
        """Charge an attempt at a device's code, or raise OverLimit."""
        self._limiter.take(f"code {anonymous((peer, 0))}")
