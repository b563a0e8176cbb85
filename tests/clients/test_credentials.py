"""Credentials of a service that run out: none is kept, so each attempt shows one that is good now."""

from datetime import datetime, timedelta

from remuda.access.principal import Context, Principal
from remuda.clients.transport import remote
from remuda.http.client import Client
from remuda.http.transport import BearerCredentials
from remuda.kernel.clock import SystemClock
from remuda.kernel.randomness import SystemRandomness
from remuda.kernel.secrets import Secret
from remuda.region.api import RegionApi
from remuda.region.app import TABLE as REGION
from tests.kit.scripted_server import Answer, Server, rejection, told

CONTEXT = Context(principal=Principal(subject="unikorn-compute", type="system"), operation="op")
GOOD_FOR = timedelta(seconds=30)


class Passing(SystemClock):
    """A clock on which all pauses are over at once, and much time passes with each answer."""

    def __init__(self) -> None:
        self.passed = timedelta()

    def now(self) -> datetime:
        return super().now() + self.passed

    async def sleep(self, seconds: float) -> None:
        """Do not wait."""


class Slow(Server):
    """A server at which each answer takes longer than a credential is good for."""

    def __init__(self, clock: Passing, *answers: Answer) -> None:
        super().__init__(*answers)
        self._clock = clock

    def answer(self) -> Answer:
        shown = self.asked[-1][2]["authorization"].removeprefix("Bearer ")
        if datetime.fromisoformat(shown) < self._clock.now():
            return rejection(401, "unauthenticated", "The credential has run out.")
        self._clock.passed += 2 * GOOD_FOR
        return super().answer()


async def test_c04_a_credential_that_runs_out_is_renewed_before_it_is_shown_again() -> None:
    clock = Passing()
    busy = rejection(503, "unavailable", "Not now: try later.")
    with Slow(clock, told([]), busy, told([]), told([])).running() as server:
        client = Client(
            server.url,
            credentials=BearerCredentials(lambda: Secret((clock.now() + GOOD_FOR).isoformat())),
            clock=clock,
            randomness=SystemRandomness(),
        )
        async with client:
            region = remote(RegionApi, REGION, client, clock=clock, randomness=SystemRandomness())
            for _ in range(3):
                assert await region.list_regions(CONTEXT) == []
    shown = [headers["authorization"] for _, _, headers in server.asked]
    assert len(set(shown)) == 4, "one of the three requests was sent twice"
