"""What an API needs from outside."""

from dataclasses import dataclass, field

from remuda.http.authentication import Authenticator
from remuda.http.cors import Cors
from remuda.http.credentials import TrustedProxies
from remuda.http.idempotency import Idempotency
from remuda.http.ratelimit import RateLimiter
from remuda.http.watch import WatchPorts
from remuda.kernel.clock import Clock
from remuda.kernel.randomness import Randomness
from remuda.kernel.sealing import Sealer
from remuda.store.logs import Log


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiSettings:
    """What an operator can choose."""

    body_limit: int = 256 * 1024
    """How many bytes a request's body may have: the loop serves nobody else while it reads one."""
    body_timeout_s: float = 10.0
    """How long a body may take to arrive."""
    time_limit_s: float = 30.0
    """How long a handler may work; streams are exempt."""
    cors: Cors = field(default_factory=Cors)
    proxies: TrustedProxies = field(default_factory=TrustedProxies)
    """Whose word is believed about client certificates, and about where a request comes from."""
    url: str = ""
    """Where clients reach the API, for those who are told where to get credentials; by default as a request has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiPorts:
    """What an API is given to work with."""

    authenticator: Authenticator
    clock: Clock
    randomness: Randomness
    log: Log
    """Where audit records go."""
    sealer: Sealer
    """Closes what callers keep for us and must not read, such as where a page ended."""
    limiter: RateLimiter
    idempotency: Idempotency
    watch: WatchPorts
    settings: ApiSettings = field(default_factory=ApiSettings)
