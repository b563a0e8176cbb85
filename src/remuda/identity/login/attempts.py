"""How often somebody may try: one account's password, from one address, and the codes of devices.

Each address has a quota, for all accounts together, and an account has one for all addresses together that is ten times
as large: to use it up takes many addresses. (With one for both, a single stranger who keeps guessing would shut an
account's owner out.) A browser in which the account's password was right before has a quota of its own instead, so that
not even many strangers shut out the owner there.

An account that does not exist has a quota too, so that nobody learns from being refused which ones do.
"""

from remuda.http.ratelimit import RateLimit, RateLimiter, anonymous
from remuda.kernel.clock import Clock

ADDRESSES = 10
"""How many addresses it takes to use up what one account may be tried."""

_WINDOW_S = 60


class Attempts:
    """Counts them."""

    def __init__(self, *, clock: Clock, per_minute: int) -> None:
        self._limiter = RateLimiter(RateLimit(quota=per_minute, window_s=_WINDOW_S, name="attempts"), clock)
        everywhere = RateLimit(quota=per_minute * ADDRESSES, window_s=_WINDOW_S, name="account")
        self._accounts = RateLimiter(everywhere, clock)

    def password(self, account: str, *, peer: str, browser: str) -> None:
        """Charge an attempt at an account's password, or raise OverLimit.

        `browser` is the number of one in which somebody has logged in to this account before, or nothing.
        """
        if browser:
            self._limiter.take(f"browser {browser} {account}")
            return
        # The address goes first: one that has used up its own quota takes nothing from the account's.
        self._limiter.take(f"password {anonymous((peer, 0))}")
        self._accounts.take(account)

    def code(self, peer: str) -> None:
        """Charge an attempt at a device's code, or raise OverLimit."""
        self._limiter.take(f"code {anonymous((peer, 0))}")
