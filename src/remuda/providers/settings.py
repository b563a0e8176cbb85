"""What a provider bears, and how one sees that it is ill."""

from dataclasses import dataclass, field

from remuda.kernel.errors import Unavailable
from remuda.providers.circuit_breaker import BreakerSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSettings:
    """What an operator may set for a provider."""

    slots: int = 16
    """So many calls may be under way."""
    queue: int = 256
    """So many more may wait."""
    deadline_s: float = 30.0
    """A caller waits so long unless it says otherwise."""
    silence_s: float = 2.0
    """A call that is not back by its deadline says that the provider is ill if it was under way so long; if its caller
    waited less, it says nothing."""
    retries: int = 3
    """A safe call is made again so often at most."""
    retry_share: float = 0.1
    """So many retries for each call at most, in the long run."""
    pause_s: float = 0.2
    """The longest pause before the first retry; each is up to twice as long as the one before."""
    breaker: BreakerSettings = field(default_factory=BreakerSettings)


def is_ill(error: BaseException) -> bool:
    """Tell whether an error shows that a provider is ill, rather than that it says no."""
    return isinstance(error, Unavailable | OSError)  # TimeoutError and ConnectionError are OSErrors
