"""All three services for a provider that is configured with the token of a service account."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import pytest

from remuda.providers.simulated.faults import CloudFailed
from tests.kit.compatibility.provider import Provider, Resource, State
from tests.kit.compatibility.resources import NETWORK
from tests.kit.compute.environment import ComputeEnvironment, run_compute
from tests.kit.region.environment import NORTH

_LOOKS_S = 0.05
_MAX_LOOKS = 2_000


@dataclass(frozen=True)
class CompatibilityEnvironment:
    """Who applies, and where."""

    compute: ComputeEnvironment
    provider: Provider
    project: str

    @property
    def where(self) -> dict[str, Any]:
        """The organization and project that the provider is configured with."""
        return {"organization": self.compute.region.organization, "project_id": self.project}

    @property
    def net(self) -> dict[str, Any]:
        """How a network is configured."""
        return {"name": "net", **self.where, "region_id": NORTH, "cidr_block": "10.1.0.0/24"}

    async def network(self, name: str = "net") -> str:
        """Make a network and return its id."""
        made: State = await self.provider.create(NETWORK, {**self.net, "name": name})
        return str(made["id"])

    @asynccontextmanager
    async def watching(self, resource: Resource) -> AsyncIterator[list[State]]:
        """Have somebody else look at all of a sort for the time of a block, again and again, and note what is seen."""
        seen: list[State] = []

        async def look() -> None:
            for _ in range(_MAX_LOOKS):
                seen.extend(await self.provider.all(resource))
                await self.compute.clock.sleep(_LOOKS_S)

        looking = asyncio.create_task(look())
        try:
            yield seen
            assert not looking.done(), "it takes longer than anybody looks, or could not be looked at"
        finally:
            looking.cancel()
            with suppress(asyncio.CancelledError):
                await looking

    @contextmanager
    def failing(
        self, verb: str, error: Callable[[], Exception] = CloudFailed, *, times: float = 5
    ) -> Iterator[list[Exception]]:
        """Have the first calls of a verb of the cloud fail for the time of a block; the list has how they did."""
        provider, failed = self.compute.region.north.provider, list[Exception]()
        (part,) = {type(each) for name in provider.capabilities if hasattr(each := getattr(provider, name), verb)}
        works = getattr(part, verb)

        async def fail_at_first(this: Any, *asked: Any, **more: Any) -> Any:
            if len(failed) < times:
                failed.append(error())
                raise failed[-1]
            return await works(this, *asked, **more)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(part, verb, fail_at_first)
            yield failed


def statuses(seen: Sequence[State], name: str) -> list[str]:
    """Return the statuses that something was seen to have, one after the other."""
    return [status for status, _ in groupby(look["provisioning_status"] for look in seen if look["id"] == name)]


async def _settle(compute: ComputeEnvironment, role: str) -> CompatibilityEnvironment:
    identity, organization = compute.region.identity, compute.region.organization
    group = await identity.group(organization, role, name="terraformers")
    project = await identity.project(organization, group, name="terraformed")
    token = (await identity.account(organization, group, name="terraform")).token
    clients = {
        "identity": identity.client(token),
        "region": compute.region.client(token),
        "compute": compute.client(token),
    }
    return CompatibilityEnvironment(compute, Provider(clients, compute.clock, {"organization": organization}), project)  # type: ignore[arg-type]  # they are those


def apply(
    scenario: Callable[[CompatibilityEnvironment], Coroutine[Any, Any, None]],
    *,
    role: str = "user",
    regional: dict[str, Any] | None = None,
) -> None:
    """Run a scenario in simulated time, over clouds that take theirs; `regional` are those of `RegionPorts`."""

    async def settled(compute: ComputeEnvironment) -> None:
        await scenario(await _settle(compute, role))

    run_compute(settled, regional=regional)
