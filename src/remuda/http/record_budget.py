"""Budget of records: the bytes of timeline, audit and operations that requests may add in a day, by organization.

Records are kept for their retention and none is removed before: if new ones could displace old ones, a caller could
erase traces by writing more. So a request that adds records is counted before it is executed, as larger than what it
adds, and rejected when its organization has used its budget. Other organizations do not notice.

It counts for the organization that pays, if the caller belongs to it, and not for that of the object, which may be
another tenant's. Else it counts for all organizations of the caller, or for a caller without any. A service is not
counted: the request that it works for was. What such a rejected request would add is not recorded, like that of one
over the rate limit.
"""

from collections.abc import Collection

from remuda.access.principal import Principal
from remuda.http.ratelimit import OverLimit, RateLimit, RateLimiter
from remuda.kernel.clock import Clock
from remuda.kernel.errors import TooMany

DEFAULT_RECORD_BYTES = 4 << 30
REQUEST_BYTES = 4 << 10
"""Size that is counted for the records of a request without a body."""
BODY_FACTOR = 4
"""Number of times that a body is counted: an operation records it, and the object before it, with escapes."""
_DAY_S = 86_400


class RecordBudgetUsed(TooMany):
    """Raised when an organization has added as many records as it may for now; retry after Retry-After."""

    def __init__(self, retry_after_s: int) -> None:
        super().__init__(
            retry_after_s,
            "The requests of this organization have added as many records as they may in a day: retry later, or ask "
            "the operator to raise server.record_limit.",
        )


class RecordBudget:
    """Budgets of all organizations, which the services of a process share."""

    def __init__(self, clock: Clock, bytes_a_day: int = DEFAULT_RECORD_BYTES) -> None:
        self._used = RateLimiter(RateLimit(quota=bytes_a_day, window_s=_DAY_S, name="records"), clock)

    def take_request(self, principal: Principal) -> None:
        """Count the records of a request without its body, or raise RecordBudgetUsed."""
        self._take(principal, REQUEST_BYTES)

    def take_body(self, principal: Principal, size: int) -> None:
        """Count the records of a body, or raise RecordBudgetUsed."""
        self._take(principal, BODY_FACTOR * size)

    def _take(self, principal: Principal, size: int) -> None:
        try:
            for key in _counted_for(principal):
                self._used.take(key, size)
        except OverLimit as error:
            raise RecordBudgetUsed(error.retry_after_s) from None


def _counted_for(principal: Principal) -> Collection[str]:
    if principal.type == "system":
        return ()
    if principal.organization is not None and principal.organization in principal.organizations:
        return (principal.organization,)
    return principal.organizations or (f"caller {principal.caller}",)
