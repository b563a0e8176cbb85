"""Tenancies, networks and security groups, through a provider's calls."""

from collections.abc import AsyncIterator, Sequence

from remuda.providers.called.listing import listed
from remuda.providers.calls import Calls
from remuda.providers.contract.common import Handle
from remuda.providers.contract.networks import (
    Network,
    Networks,
    NetworkSpec,
    SecurityGroup,
    SecurityGroups,
    Tenancies,
    Tenancy,
)

TENANCY_VERBS = ("converge_tenancy", "find_tenancy", "remove_tenancy", "tenancies")
"""What is asked about tenancies."""
NETWORK_VERBS = ("converge_network", "find_network", "remove_network", "networks")
"""What is asked about networks."""
GROUP_VERBS = ("converge_group", "find_group", "remove_group", "groups")
"""What is asked about security groups."""


class CalledTenancies:
    """Tenancies."""

    def __init__(self, tenancies: Tenancies, calls: Calls) -> None:
        self._tenancies, self._calls = tenancies, calls

    async def converge_tenancy(self, wanted: Tenancy) -> None:
        """Make a tenancy, or mend it."""
        await self._calls.call(wanted.name, "converge_tenancy", lambda: self._tenancies.converge_tenancy(wanted))

    async def find_tenancy(self, name: str) -> Tenancy | None:
        return await self._calls.call(name, "find_tenancy", lambda: self._tenancies.find_tenancy(name), safe=True)

    async def remove_tenancy(self, name: str) -> None:
        await self._calls.call(name, "remove_tenancy", lambda: self._tenancies.remove_tenancy(name))

    def tenancies(self) -> AsyncIterator[Sequence[Tenancy]]:
        return listed(self._calls, "tenancies", self._tenancies.tenancies)


class CalledNetworks:
    """Networks."""

    def __init__(self, networks: Networks, calls: Calls) -> None:
        self._networks, self._calls = networks, calls

    async def converge_network(self, wanted: NetworkSpec) -> Network:
        """Make a network, or bring it up to date."""
        return await self._calls.call(
            wanted.handle.name, "converge_network", lambda: self._networks.converge_network(wanted)
        )

    async def find_network(self, handle: Handle) -> Network | None:
        return await self._calls.call(
            handle.name, "find_network", lambda: self._networks.find_network(handle), safe=True
        )

    async def remove_network(self, handle: Handle) -> None:
        await self._calls.call(handle.name, "remove_network", lambda: self._networks.remove_network(handle))

    def networks(self) -> AsyncIterator[Sequence[Network]]:
        return listed(self._calls, "networks", self._networks.networks)


class CalledSecurityGroups:
    """Security groups."""

    def __init__(self, groups: SecurityGroups, calls: Calls) -> None:
        self._groups, self._calls = groups, calls

    async def converge_group(self, wanted: SecurityGroup) -> SecurityGroup:
        """Make a group, or bring its rules up to date."""
        return await self._calls.call(wanted.handle.name, "converge_group", lambda: self._groups.converge_group(wanted))

    async def find_group(self, handle: Handle) -> SecurityGroup | None:
        return await self._calls.call(handle.name, "find_group", lambda: self._groups.find_group(handle), safe=True)

    async def remove_group(self, handle: Handle) -> None:
        await self._calls.call(handle.name, "remove_group", lambda: self._groups.remove_group(handle))

    def groups(self) -> AsyncIterator[Sequence[SecurityGroup]]:
        return listed(self._calls, "groups", self._groups.groups)
