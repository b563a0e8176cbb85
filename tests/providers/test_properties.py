"""What holds whatever is called, whenever, and however it ends."""

import asyncio
import itertools

import hypothesis.strategies as st
from hypothesis import given, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from remuda.kernel.errors import NotFound, ServerUnreachable, Unavailable
from remuda.kernel.randomness import SeededRandomness
from remuda.providers.circuit_breaker import CallSettings, CircuitBreaker, CircuitBreakerSettings, RetryBudget
from tests.kit.providers.manual_time import ManualTime
from tests.kit.providers.slow_provider import Cloud
from tests.kit.simulation.runner import World, simulate

BUSY = CallSettings(slots=3, queue=4, breaker=CircuitBreakerSettings(failures_in_a_row=4, open_s=3), retries=2)


async def storm(world: World) -> None:
    """Many callers of few keys, with every ending there is, and callers that go away."""
    cloud, chance = Cloud(world, BUSY), world.randomness

    def check() -> None:
        assert max(cloud.effects.values(), default=0) <= 1, "two effects on one key"
        assert cloud.under_way <= BUSY.slots, "more calls than slots"

    async def call() -> None:
        await world.clock.sleep(chance.uniform(0, 30))
        error = (None, ServerUnreachable("cloud", "cable"), NotFound("Server", "a"))[chance.randrange(3)]
        ask = (cloud.make, cloud.look)[chance.randrange(2)]
        key = "abc"[chance.randrange(3)]
        try:
            async with asyncio.timeout(chance.uniform(0.5, 20)):
                await ask(key, takes_s=chance.uniform(0, 6), error=error, deadline_s=chance.uniform(0.5, 5))
        except (Unavailable, NotFound, TimeoutError):
            pass

    world.invariants.append(check)
    await asyncio.gather(*(call() for _ in range(80)))
    await cloud.calls.close(grace_s=60)
    assert not any(cloud.calls.is_unknown(key) for key in "abc")
    assert cloud.sample("in_flight") == cloud.sample("waiting") == cloud.sample("unknown_keys") == 0
    asked = sum(cloud.sample("calls_total", method=v, outcome=o) for v in ("make", "look") for o in SENT)
    assert asked == len(cloud.asked), "every call that was sent is counted once"


SENT = ("done", "failed", "unhealthy", "unknown")


def test_never_two_effects_on_a_key_and_never_more_calls_than_slots() -> None:
    simulate(storm, 40)


@given(st.lists(st.one_of(st.just("call"), st.just("retry"), st.floats(0, 10)), max_size=300))
def test_over_any_time_retries_are_a_share_of_calls_a_trickle_and_the_reserve(events: list[str | float]) -> None:
    time = ManualTime()
    budget = RetryBudget(time, share=0.1, floor_per_s=0.5, reserve=3)
    history = [(0.0, 0, 0)]
    calls = retries = 0
    for event in events:
        if event == "call":
            budget.add_call()
            calls += 1
        elif event == "retry":
            retries += budget.take()
        elif isinstance(event, float):
            time.time += event
        history.append((time.time, calls, retries))
    for (t0, c0, r0), (t1, c1, r1) in itertools.combinations(history[:: max(1, len(history) // 30)], 2):
        assert r1 - r0 <= 0.1 * (c1 - c0) + 0.5 * (t1 - t0) + 3 + 1e-6


class BreakerMachine(RuleBasedStateMachine):
    """The breaker beside a model of its states."""

    def __init__(self) -> None:
        super().__init__()
        self.time = ManualTime()
        self.settings = CircuitBreakerSettings(
            failures_in_a_row=3, failure_share=0.5, window=6, open_s=10, longest_open_s=40
        )
        self.breaker = CircuitBreaker(self.time, SeededRandomness(0), self.settings)
        self.calls: list[tuple[int, int]] = []
        """Those under way: the breaker's epoch, and how often it had changed its mind when they began."""
        self.changes = 0
        self.model = "closed"
        self.opened_at = 0.0
        self.probes = 0
        self.row = 0
        self.recent: list[bool] = []

    @rule(seconds=st.floats(0, 50))
    def wait(self, seconds: float) -> None:
        self.time.time += seconds

    @rule()
    def call(self) -> None:
        state = self.breaker.state
        epoch = self.breaker.admit()
        if state == "open" or (state == "half_open" and self.probes):
            assert epoch is None
            return
        assert epoch is not None
        self.probes += state == "half_open"
        self.calls.append((epoch, self.changes))

    @precondition(lambda self: self.calls)
    @rule(data=st.data(), ending=st.sampled_from(["works", "fails", "is left"]))
    def end(self, data: st.DataObject, ending: str) -> None:
        epoch, changes = self.calls.pop(data.draw(st.integers(0, len(self.calls) - 1)))
        is_current = changes == self.changes
        {
            "works": self.breaker.record_success,
            "fails": self.breaker.record_failure,
            "is left": self.breaker.record_abandoned,
        }[ending](epoch)
        if not is_current:
            return
        if ending == "is left":
            self.probes = 0
        elif self.model == "open":
            self.change("closed" if ending == "works" else "open")
        else:
            self.row = self.row + 1 if ending == "fails" else 0
            self.recent = [*self.recent, ending == "fails"][-6:]
            if ending == "fails" and (self.row >= 3 or (len(self.recent) == 6 and sum(self.recent) >= 3)):
                self.change("open")

    def change(self, model: str) -> None:
        self.model, self.changes, self.probes, self.row = model, self.changes + 1, 0, 0
        self.opened_at = self.time.time
        if model == "closed":
            self.recent = []

    @invariant()
    def agrees(self) -> None:
        state = self.breaker.state
        if self.model == "closed":
            assert state == "closed"
            return
        elapsed = self.time.time - self.opened_at
        assert state in {"open", "half_open"}
        if elapsed < self.settings.open_s / 2:
            assert state == "open", "it is left alone for a while"
        if elapsed > self.settings.longest_open_s:
            assert state == "half_open", "and not for ever"
        assert (self.breaker.retry_after_s > 0) == (state == "open")


TestBreaker = BreakerMachine.TestCase
TestBreaker.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)
