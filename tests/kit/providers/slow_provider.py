"""A provider that takes its time, and sees how many calls it is given at once."""

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from prometheus_client import CollectorRegistry

from remuda.providers.calls import Calls
from remuda.providers.circuit_breaker import CallSettings, CircuitBreakerSettings
from remuda.providers.metrics import CallMetrics
from tests.kit.simulation.runner import World, simulate

NEVER_BREAKS = CircuitBreakerSettings(failures_in_a_row=10**9, failure_share=2.0)
VERBS = ("make", "look")


class Cloud:
    """Counts what it is asked. `call` makes an effect or a read that takes so long and ends so."""

    def __init__(self, world: World, settings: CallSettings | None = None) -> None:
        self.world = world
        self.registry = CollectorRegistry()
        self.calls = Calls(
            "cloud",
            VERBS,
            clock=world.clock,
            randomness=world.randomness,
            settings=settings or CallSettings(breaker=NEVER_BREAKS),
            metrics=CallMetrics(self.registry),
        )
        self.asked: list[str] = []
        self.effects: Counter[str] = Counter()
        self.under_way = 0
        self.most_under_way = 0

    async def make(self, key: str, *, takes_s: float = 1.0, error: Exception | None = None, **options: Any) -> str:
        """Change something."""
        return await self.calls.call(key, "make", self.work(key, takes_s, error, is_effect=True), **options)

    async def look(self, key: str, *, takes_s: float = 1.0, error: Exception | None = None, **options: Any) -> str:
        """Change nothing."""
        effect = self.work(key, takes_s, error, is_effect=False)
        return await self.calls.call(key, "look", effect, safe=True, **options)

    def work(
        self, key: str, takes_s: float, error: Exception | None, *, is_effect: bool
    ) -> Callable[[], Awaitable[str]]:
        async def act() -> str:
            self.asked.append(key)
            self.under_way += 1
            self.most_under_way = max(self.most_under_way, self.under_way)
            self.effects[key] += is_effect
            try:
                await self.world.clock.sleep(takes_s)
            finally:
                self.under_way -= 1
                self.effects[key] -= is_effect
            if error is not None:
                raise error
            return f"{key} is there"

        return act

    def sample(self, name: str, **labels: str) -> float:
        """Return the value of a metric, which may have no series yet for this method."""
        value = self.registry.get_sample_value(f"remuda_provider_{name}", {"provider": "cloud", **labels})
        assert value is not None or "method" in labels, f"{name} {labels} is there"
        return value or 0.0


def in_cloud(act: Callable[[Cloud], Awaitable[None]], settings: CallSettings | None = None, *, seeds: int = 3) -> None:
    """Run a scenario with a cloud of its own, under several seeds."""

    async def scenario(world: World) -> None:
        await act(Cloud(world, settings))

    simulate(scenario, range(seeds))
