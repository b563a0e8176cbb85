import asyncio
import contextlib

from prometheus_client import CollectorRegistry, generate_latest

from remuda.http.server.health import PROCESS
from remuda.http.server.metrics import CLOSE_REASONS, Metrics, measure_loop_lag
from tests.kit.clocks import HandClock


def sample(registry: CollectorRegistry, name: str, **labels: str) -> float | None:
    return registry.get_sample_value(name, labels)


def test_what_alerts_watch_is_there_before_the_first_request() -> None:
    registry = CollectorRegistry()
    Metrics(registry, [PROCESS])
    for reason in CLOSE_REASONS:
        assert sample(registry, "remuda_http_connections_closed_total", reason=reason) == 0
    for service in ("process", "none"):
        assert sample(registry, "remuda_http_rate_limited_total", service=service) == 0
        assert sample(registry, "remuda_http_errors_total", service=service) == 0
    for reason in ("too_large", "too_slow"):
        assert sample(registry, "remuda_http_body_rejects_total", reason=reason) == 0
    for name in ("requests_in_flight", "watch_streams"):
        assert sample(registry, f"remuda_http_{name}") == 0


def test_a_route_has_all_its_series_from_its_first_request_on_and_no_other_route_has_any() -> None:
    registry = CollectorRegistry()
    metrics = Metrics(registry, [PROCESS])
    assert routes(registry) == set()
    metrics.of("process", "get_health").count(204)
    assert routes(registry) == {("process", "get_health")}
    for status, count in {"1xx": 0, "2xx": 1, "3xx": 0, "4xx": 0, "5xx": 0}.items():
        labels = {"service": "process", "route": "get_health", "status": status}
        assert sample(registry, "remuda_http_requests_total", **labels) == count
    labels = {"service": "process", "route": "get_health"}
    assert sample(registry, "remuda_http_request_duration_seconds_count", **labels) == 0


def routes(registry: CollectorRegistry) -> set[tuple[str, str]]:
    labels = [each.labels for family in registry.collect() for each in family.samples if "route" in each.labels]
    return {(each["service"], each["route"]) for each in labels}


def test_unknown_routes_services_and_errors_make_one_series_at_most() -> None:
    registry = CollectorRegistry()
    metrics = Metrics(registry, [PROCESS])
    metrics.of("process", "no such route").count(404)
    metrics.of(None, None).observe_duration(0.5)
    before = len(generate_latest(registry).splitlines())
    for name in map(str, range(9)):
        metrics.of(name, name).count(404)
    for code in ("too_many", "too_large", "too_slow", "conflict"):
        metrics.count_error(code, "no such service")
    metrics.count_closed("idle")
    assert len(generate_latest(registry).splitlines()) == before
    assert routes(registry) == {("none", "none")}


def test_what_is_counted_is_found_under_its_labels() -> None:
    registry = CollectorRegistry()
    metrics = Metrics(registry, [PROCESS])
    metrics.of("process", "get_health").count(503)
    metrics.of("process", "get_health").observe_duration(0.5)
    metrics.count_error("too_many", "process")
    metrics.count_error("too_large", None)
    metrics.count_closed("write_timeout")
    place = {"service": "process", "route": "get_health"}
    assert sample(registry, "remuda_http_requests_total", **place, status="5xx") == 1
    assert sample(registry, "remuda_http_errors_total", service="process") == 1
    assert sample(registry, "remuda_http_request_duration_seconds_sum", **place) == 0.5
    assert sample(registry, "remuda_http_rate_limited_total", service="process") == 1
    assert sample(registry, "remuda_http_body_rejects_total", reason="too_large") == 1
    assert sample(registry, "remuda_http_connections_closed_total", reason="write_timeout") == 1


class LateClock(HandClock):
    """Sleeps 40 ms too long."""

    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds + 0.04)


async def test_the_lag_of_the_loop_is_how_late_it_came_round() -> None:
    registry = CollectorRegistry()
    lagging = asyncio.create_task(measure_loop_lag(Metrics(registry), LateClock()))
    while not sample(registry, "remuda_loop_lag_seconds_count"):  # noqa: ASYNC110  a metric has no event
        await asyncio.sleep(0)
    lagging.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await lagging
    assert sample(registry, "remuda_loop_lag_seconds_bucket", le="0.025") == 0
    assert sample(registry, "remuda_loop_lag_seconds_bucket", le="0.05") == sample(
        registry, "remuda_loop_lag_seconds_count"
    )
