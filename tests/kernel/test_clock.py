import asyncio
from datetime import UTC, datetime, timedelta

from remuda.kernel.clock import Clock, SystemClock


def test_now_is_aware_and_in_utc() -> None:
    clock: Clock = SystemClock()
    assert clock.now().utcoffset() == timedelta(0)
    assert abs(clock.now() - datetime.now(UTC)) < timedelta(minutes=1)


def test_sleep_lets_monotonic_time_pass() -> None:
    clock = SystemClock()
    start = clock.monotonic()
    asyncio.run(clock.sleep(0.01))
    assert clock.monotonic() - start >= 0.009
