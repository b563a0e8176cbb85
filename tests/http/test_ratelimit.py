import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.http.ratelimit import SITE_BITS, OverLimit, RateLimit, RateLimiter, anonymous, client_network
from remuda.kernel.errors import TooMany
from tests.kit.clocks import HandClock


def test_a_quota_can_be_used_at_once_and_then_no_more() -> None:
    limiter = RateLimiter(RateLimit(quota=3, window_s=60), HandClock())
    told = [dict(limiter.take("ann")) for _ in range(3)]
    assert [each[b"ratelimit"] for each in told] == [
        b'"default";r=2;t=20',
        b'"default";r=1;t=40',
        b'"default";r=0;t=60',
    ]
    assert {each[b"ratelimit-policy"] for each in told} == {b'"default";q=3;w=60'}
    with pytest.raises(OverLimit) as refused:
        limiter.take("ann")
    assert dict(refused.value.headers) == {
        b"ratelimit-policy": b'"default";q=3;w=60',
        b"ratelimit": b'"default";r=0;t=60',
        b"retry-after": b"20",
    }
    assert isinstance(refused.value, TooMany)
    assert refused.value.retry_after_s == 20


def test_who_waits_as_long_as_it_is_told_is_served() -> None:
    clock = HandClock()
    limiter = RateLimiter(RateLimit(quota=3, window_s=60), clock)
    for _ in range(3):
        limiter.take("ann")
    clock.seconds += 19
    with pytest.raises(OverLimit) as refused:
        limiter.take("ann")
    clock.seconds += refused.value.retry_after_s
    limiter.take("ann")


def test_what_costs_nothing_can_be_counted_while_nobody_else_is() -> None:
    limiter = RateLimiter(RateLimit(quota=3, window_s=60), HandClock())
    for _ in range(2):
        assert dict(limiter.take("ann", 0))[b"ratelimit"] == b'"default";r=3;t=0'
    assert len(limiter) == 0


def test_a_refused_request_costs_nothing() -> None:
    clock = HandClock()
    limiter = RateLimiter(RateLimit(quota=1, window_s=10), clock)
    limiter.take("ann")
    for _ in range(100):
        with pytest.raises(OverLimit):
            limiter.take("ann")
    clock.seconds += 10
    limiter.take("ann")


def test_to_look_costs_nothing_and_says_what_the_next_request_would_be_told() -> None:
    clock = HandClock()
    limiter = RateLimiter(RateLimit(quota=2, window_s=10), clock)
    for _ in range(100):
        assert limiter.has_quota("ann", 2)
        assert not limiter.has_quota("ann", 3)
    assert len(limiter) == 0
    limiter.take("ann")
    assert limiter.has_quota("ann")
    limiter.take("ann")
    assert not limiter.has_quota("ann")
    with pytest.raises(OverLimit):
        limiter.take("ann")
    clock.seconds += 5
    assert limiter.has_quota("ann")


def test_a_refunded_request_costs_nothing() -> None:
    limiter = RateLimiter(RateLimit(quota=2, window_s=10), HandClock())
    for _ in range(100):
        limiter.take("ann")
        limiter.refund("ann")
    limiter.take("ann")
    limiter.take("ann")
    with pytest.raises(OverLimit):
        limiter.take("ann")
    limiter.refund("nobody")


def test_callers_do_not_share_a_quota() -> None:
    limiter = RateLimiter(RateLimit(quota=1, window_s=10), HandClock())
    limiter.take("ann")
    limiter.take("ben")
    with pytest.raises(OverLimit):
        limiter.take("ann")


def test_who_has_everything_back_is_forgotten() -> None:
    clock = HandClock()
    limiter = RateLimiter(RateLimit(quota=10, window_s=10), clock)
    for number in range(1000):
        limiter.take(f"caller-{number}")
    assert len(limiter) == 1000
    clock.seconds += 10
    limiter.take("ann")
    assert len(limiter) == 1


def test_no_more_callers_are_remembered_than_there_is_resource_for() -> None:
    limiter = RateLimiter(RateLimit(quota=1, window_s=10), HandClock(), most_callers=10)
    for number in range(1000):
        limiter.take(f"caller-{number}")
    assert len(limiter) == 10
    with pytest.raises(OverLimit):
        limiter.take("caller-999")


@given(
    st.integers(1, 50),
    st.integers(1, 100),
    st.lists(st.floats(0, 30), min_size=1, max_size=200),
)
def test_in_no_window_is_more_served_than_twice_the_quota_and_a_steady_rate_is_never_refused(
    quota: int, window_s: int, pauses: list[float]
) -> None:
    clock = HandClock()
    limiter, steady = (RateLimiter(RateLimit(quota=quota, window_s=window_s), clock) for _ in range(2))
    served: list[float] = []
    next_steady = clock.seconds
    for pause in pauses:
        clock.seconds += pause
        if clock.seconds >= next_steady:
            steady.take("ann")
            next_steady = clock.seconds + window_s / quota
        try:
            limiter.take("ann")
        except OverLimit:
            continue
        served.append(clock.seconds)
    for moment in served:
        assert sum(moment <= each < moment + window_s for each in served) <= 2 * quota


@pytest.mark.parametrize(
    ("peer", "name"),
    [
        (("192.0.2.7", 1234), "anonymous@192.0.2.7"),
        (("::ffff:192.0.2.7", 1234), "anonymous@192.0.2.7"),
        (("2001:db8:1:2:3:4:5:6", 1234), "anonymous@2001:db8:1:2::/64"),
        (("fe80::1%eth0", 1234), "anonymous@fe80::/64"),
        (None, "anonymous@"),
    ],
)
def test_callers_without_credentials_are_counted_by_their_network(peer: tuple[str, int] | None, name: str) -> None:
    assert anonymous(peer) == name


def test_the_networks_of_a_site_are_one_where_clients_take_turns() -> None:
    hosts = ["2001:db8:1::1", "2001:db8:1:ffff::1", "2001:db8:2::1", "192.0.2.7", "::ffff:192.0.2.7"]
    sites = ["2001:db8:1::/48", "2001:db8:1::/48", "2001:db8:2::/48", "192.0.2.7", "192.0.2.7"]
    assert [client_network(each, bits=SITE_BITS) for each in hosts] == sites
