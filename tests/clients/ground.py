"""All three services for a provider that is configured with the token of a service account."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from tests.clients.provider import Provider, State
from tests.clients.resources import NETWORK
from tests.compute.house import ComputeHouse, in_a_compute
from tests.region.house import NORTH


@dataclass(frozen=True)
class Ground:
    """Who applies, and where."""

    house: ComputeHouse
    provider: Provider
    project: str

    @property
    def where(self) -> dict[str, Any]:
        """The organization and project that the provider is configured with."""
        return {"organization": self.house.region.organization, "project_id": self.project}

    async def network(self, name: str = "net") -> str:
        """Make a network and return its id."""
        made: State = await self.provider.create(
            NETWORK, {"name": name, **self.where, "region_id": NORTH, "cidr_block": "10.1.0.0/24"}
        )
        return str(made["id"])


async def _settle(house: ComputeHouse, role: str) -> Ground:
    identity, organization = house.region.identity, house.region.organization
    group = await identity.group(organization, role, name="terraformers")
    project = await identity.project(organization, group, name="terraformed")
    token = (await identity.account(organization, group, name="terraform")).token
    clients = {"identity": identity.client(token), "region": house.region.client(token), "compute": house.client(token)}
    return Ground(house, Provider(clients, house.clock, {"organization": organization}), project)  # type: ignore[arg-type]  # they are those


def apply(scenario: Callable[[Ground], Coroutine[Any, Any, None]], *, role: str = "user") -> None:
    """Run a scenario in simulated time, over clouds that take theirs."""

    async def settled(house: ComputeHouse) -> None:
        await scenario(await _settle(house, role))

    in_a_compute(settled)
