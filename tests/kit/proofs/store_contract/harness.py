"""One fresh store for one guarantee, and what a guarantee may do beyond the store's own methods.

A backend joins the contract suite by implementing `Harness`. Guarantees know nothing else, so they read the same
whether the store is a file, a simulated disk or an API server, and they allow what only some backends do later than at
once: release what was deleted, collect children, take off the store's own finalizers.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from remuda.kernel.clock import Clock
from remuda.store.contract import Store
from remuda.store.logs import Log
from remuda.store.objects import Resource

UNKNOWN_FIELD = "temper"
"""The one field that guarantees plant: a text, beside the known fields of any struct in a horse's spec or status."""

TIMEOUT_S = 40.0
A_WHILE_S = 0.4
_LOOK_AGAIN_S = 0.02


class Harness(Protocol):
    """A store without objects, its clock, and a way behind its back."""

    store: Store
    log: Log
    clock: Clock
    seed: int
    """What a guarantee that plays dice begins with."""

    async def plant(self, kind: type[Resource], name: str, patch: Mapping[str, Any]) -> None:
        """Apply a JSON merge patch to the stored document, as a writer who knows more fields than we do would."""
        ...

    async def raw(self, kind: type[Resource], name: str) -> Mapping[str, Any]:
        """Return the stored document."""
        ...

    async def forget_history(self) -> None:
        """Compact: from now on every version older than the present one is too old to watch from."""
        ...

    async def next_version(self) -> str:
        """Return a version that lies ahead, and that the next write reaches or passes."""
        ...

    async def unreachable_version(self) -> str:
        """Return a version that lies so far ahead that no write of this test reaches it."""
        ...


async def eventually(harness: Harness, sentence: str, condition: Callable[[], Awaitable[bool]]) -> None:
    """Return when the condition holds; fail with the sentence when time is up."""
    deadline, pause_s = harness.clock.monotonic() + TIMEOUT_S, _LOOK_AGAIN_S
    while not await condition():
        assert harness.clock.monotonic() < deadline, f"not within {TIMEOUT_S:g} s: {sentence}"
        await harness.clock.sleep(pause_s)
        pause_s = min(2 * pause_s, 1.0)


async def for_a_while(harness: Harness, sentence: str, condition: Callable[[], Awaitable[bool]]) -> None:
    """Return after a while in which the condition held all the time; fail with the sentence if it did not."""
    deadline = harness.clock.monotonic() + A_WHILE_S
    while harness.clock.monotonic() < deadline:
        assert await condition(), f"not for a while: {sentence}"
        await harness.clock.sleep(A_WHILE_S / 8)
