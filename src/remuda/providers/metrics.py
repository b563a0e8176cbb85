"""Prometheus metrics of provider calls.

A provider has hundreds of methods and outcomes: their series appear with the first call. What alerts watch, the
failures of each provider and the state of its breaker, exists from its start.
"""

from collections.abc import Callable
from functools import partial
from typing import Literal, get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from remuda.providers.circuit_breaker import BREAKER_STATES, BreakerState

CallOutcome = Literal["done", "failed", "unhealthy", "unknown", "busy", "full", "broken", "stopping", "not_sent"]
"""Outcome of a call: completed; failed by itself; failed because the provider is unhealthy; past its deadline or
abandoned by its caller; rejected because its key is busy, the queue is full, the breaker is open or the process stops;
past its deadline before it was sent."""

_BUCKETS_S = (0.01, 0.05, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0)  # uploads take minutes
_FAILURES: tuple[CallOutcome, ...] = tuple(each for each in get_args(CallOutcome) if each != "done")


class CallMetrics:
    """Metrics of all providers of a process."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.calls = Counter(
            "remuda_provider_calls", "Calls by outcome.", ["provider", "method", "outcome"], registry=registry
        )
        self.failures = Counter(
            "remuda_provider_failures",
            "Calls of any method that were not done, by outcome.",
            ["provider", "outcome"],
            registry=registry,
        )
        self.retries = Counter(
            "remuda_provider_retries", "Calls that were retried.", ["provider", "method"], registry=registry
        )
        self.seconds = Histogram(
            "remuda_provider_call_seconds",
            "Duration of calls.",
            ["provider", "method"],
            buckets=_BUCKETS_S,
            registry=registry,
        )
        self.in_flight = Gauge("remuda_provider_in_flight", "Calls in flight.", ["provider"], registry=registry)
        self.waiting = Gauge("remuda_provider_waiting", "Calls that wait for a slot.", ["provider"], registry=registry)
        self.unknown = Gauge(
            "remuda_provider_unknown_keys", "Keys whose last call has not ended.", ["provider"], registry=registry
        )
        self.breaker = Gauge(
            "remuda_provider_breaker", "1 for the breaker's state.", ["provider", "state"], registry=registry
        )

    def of(self, provider: str) -> "ProviderMetrics":
        return ProviderMetrics(self, provider)


class ProviderMetrics:
    """Metrics of one provider."""

    def __init__(self, metrics: CallMetrics, provider: str) -> None:
        self._metrics, self._provider = metrics, provider
        self.in_flight = metrics.in_flight.labels(provider)
        self.waiting = metrics.waiting.labels(provider)
        self.unknown = metrics.unknown.labels(provider)
        self._calls: dict[tuple[str, CallOutcome], Counter] = {}
        self._seconds: dict[str, Histogram] = {}
        self._failures = {outcome: metrics.failures.labels(provider, outcome) for outcome in _FAILURES}

    def count(self, method: str, outcome: CallOutcome) -> None:
        calls = self._calls.get((method, outcome))
        if calls is None:  # finding it by its labels takes ten times as long
            calls = self._calls[method, outcome] = self._metrics.calls.labels(self._provider, method, outcome)
        calls.inc()
        if outcome in self._failures:
            self._failures[outcome].inc()

    def count_retry(self, method: str) -> None:
        self._metrics.retries.labels(self._provider, method).inc()

    def observe_duration(self, method: str, seconds: float) -> None:
        """Record the duration of a call, measured until it really ended."""
        duration = self._seconds.get(method)
        if duration is None:
            duration = self._seconds[method] = self._metrics.seconds.labels(self._provider, method)
        duration.observe(seconds)

    def export_breaker(self, breaker: Callable[[], BreakerState]) -> None:
        """Export the breaker's state as of each scrape, because it becomes half-open by the passing of time alone."""
        for state in BREAKER_STATES:
            self._metrics.breaker.labels(self._provider, state).set_function(partial(_is, state, breaker))


def _is(state: BreakerState, breaker: Callable[[], BreakerState]) -> float:
    return float(breaker() == state)
