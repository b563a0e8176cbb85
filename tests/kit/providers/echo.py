"""A provider that has everything, notes what it is asked, and releases what it was asked for."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from remuda.providers.contract.provider import Provider
from tests.kit.simulation.runner import World

LISTINGS = frozenset({"tenancies", "networks", "groups", "ports", "server_versions", "balancers", "storages"})
PARTS = (("one", "two"), ("three",))


@dataclass
class Echo:
    """Every capability in one."""

    world: World
    asked: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = field(default_factory=list)
    takes_s: float = 0.0
    errors: list[Exception] = field(default_factory=list)
    """What the next calls end with."""
    breaks_after: int | None = None
    """A listing breaks off after so many parts, once."""

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        if verb.startswith("_"):
            raise AttributeError(verb)
        return self._listing(verb) if verb in LISTINGS else self._call(verb)

    def _call(self, verb: str) -> Callable[..., Awaitable[Any]]:
        async def answer(*given: Any, **named: Any) -> Any:
            self.asked.append((verb, given, named))
            error = self.errors.pop(0) if self.errors else None
            await self.world.clock.sleep(self.takes_s)
            if error is not None:
                raise error
            return f"{verb} is done"

        return answer

    def _listing(self, verb: str) -> Callable[[], AsyncIterator[Any]]:
        async def parts() -> AsyncIterator[Any]:
            for number, part in enumerate(PARTS):
                self.asked.append((verb, (number,), {}))
                await self.world.clock.sleep(self.takes_s)
                if number == self.breaks_after:
                    self.breaks_after = None
                    raise self.errors.pop(0)
                yield part

        return parts

    @property
    def provider(self) -> Provider:
        """It, as a provider."""
        it: Any = self
        return Provider(
            type="simulated",
            catalogue=it,
            external_networks=it,
            images=it,
            tenancies=it,
            networks=it,
            security_groups=it,
            ports=it,
            servers=it,
            consoles=it,
            snapshots=it,
            load_balancers=it,
            file_storages=it,
            events=it,
        )
