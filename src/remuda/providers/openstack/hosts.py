"""Check of a host that a server names, before the server is created: Nova would report it as a failed server."""

from dataclasses import dataclass

import msgspec
import structlog

from remuda.providers.contract.common import NoCapacity
from remuda.providers.openstack.catalogue import NovaFlavor
from remuda.providers.openstack.errors import Denied
from remuda.providers.openstack.tenancies import TenancyAccess

_RESOURCE, _TRAIT = "resources:CUSTOM_", "trait:"


class _ResourceProvider(msgspec.Struct, frozen=True):
    uuid: str
    name: str


@dataclass(frozen=True, slots=True)
class HostCheck:
    """Question to Placement whether a host has the custom resource and the traits of a flavor."""

    access: TenancyAccess
    required_traits: tuple[str, ...] = ()

    async def check(self, host: str, flavor: NovaFlavor) -> None:
        """Raise NoCapacity if the host cannot take one more server of the flavor.

        Only a flavor with exactly one custom resource can be checked: of any other one, a host takes several.
        """
        custom = [name for name, count in flavor.extra_specs.items() if name.startswith(_RESOURCE) and count != "0"]
        if len(custom) != 1:
            return
        query: dict[str, object] = {"resources": f"{custom[0].partition(':')[2]}:1"}
        traits = [*self.required_traits, *traits_of(flavor)]
        if traits:
            query["required"] = ",".join(traits)
        session = await self.access.own()
        try:
            found = await session.items(
                "placement", "/resource_providers", "resource_providers", _ResourceProvider, **query
            )
        except Denied:  # the survey of the region says so
            structlog.get_logger().warning("host not checked: a policy line of Placement is missing", host=host)
            return
        if host not in {name for each in found for name in (each.uuid, each.name)}:
            raise NoCapacity(f"the host {host}")


def traits_of(flavor: NovaFlavor) -> list[str]:
    """Return the traits that a flavor requires, and those that it forbids with an exclamation mark."""
    marks = {"required": "", "forbidden": "!"}
    return [
        f"{marks[value]}{name.removeprefix(_TRAIT)}"
        for name, value in sorted(flavor.extra_specs.items())
        if name.startswith(_TRAIT) and value in marks
    ]
