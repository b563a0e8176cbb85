"""What an API is given in tests: everything over one store, with a quota that does not matter unless it is said."""

from typing import Any

from remuda.http.api import ApiPorts
from remuda.http.authentication import Authenticator
from remuda.http.failures import AuthenticationFailures
from remuda.http.idempotency import Idempotency
from remuda.http.ratelimit import RateLimit, RateLimiter
from remuda.http.record_budget import RecordBudget
from remuda.http.watch import WatchPorts
from remuda.kernel.clock import Clock
from remuda.kernel.randomness import Randomness
from remuda.store.sqlite.store import SqliteStore
from tests.kit.simulation.store import SEALER


def api_ports(
    store: SqliteStore,
    authenticator: Authenticator,
    *,
    clock: Clock,
    randomness: Randomness,
    quota: int = 10_000,
    **more: Any,
) -> ApiPorts:
    """Return the ports; `more` are those that a test wants otherwise."""
    given: dict[str, Any] = {
        "authenticator": authenticator,
        "clock": clock,
        "randomness": randomness,
        "log": store,
        "sealer": SEALER,
        "limiter": RateLimiter(RateLimit(quota=quota), clock),
        "failures": AuthenticationFailures(RateLimit(quota=quota, name="failures"), clock),
        "idempotency": Idempotency(store, clock=clock, randomness=randomness, time_limit_s=30, is_only_process=True),
        "watch": WatchPorts(clock=clock),
        "records": RecordBudget(clock),
    }
    return ApiPorts(**given | more)
