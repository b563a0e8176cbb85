"""Clients as the tests use them: quick to try again, with a token that the pasture knows."""

from remuda.access.principal import Context, Principal
from remuda.http.client import Client
from remuda.http.transport import BearerCredentials, ClientSettings
from remuda.kernel.clock import SystemClock
from remuda.kernel.randomness import SystemRandomness
from remuda.kernel.secrets import Secret
from tests.kit.sample_api.service import HorseWrite

QUICK = ClientSettings(first_pause_s=0.01, longest_pause_s=0.05, total_s=20, page=3)
BAY = HorseWrite(colour="bay")
CONTEXT = Context(
    principal=Principal(subject="anna", type="user", organization="o-1", organizations=("o-1", "o-2"), project="p-1"),
    operation="c0000000-0000-4000-8000-000000000001",
    trace_id="a" * 32,
)


def client_of(url: str, *, token: str = "good", settings: ClientSettings = QUICK) -> Client:
    return Client(
        url,
        credentials=BearerCredentials(lambda: Secret(token)),
        clock=SystemClock(),
        randomness=SystemRandomness(),
        settings=settings,
    )
