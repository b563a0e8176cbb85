"""A domain of its own for each test of regions, and connections to it as a process has them."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from msgspec.structs import replace

from remuda.app import registry
from remuda.app.openstack import OpenStackRegions
from remuda.kernel.clock import SystemClock
from remuda.kernel.randomness import SystemRandomness
from remuda.kernel.secrets import Secret
from remuda.outbound.addresses import SystemResolver
from remuda.region.kinds.regions import RegionOpenstack, RegionSpec, ServiceAccountConfig
from remuda.region.ports import AccountNames
from remuda.store.sqlite.store import open_store
from tests.kit.processes.terminal import IMAGES
from tests.kit.simulation.store import SEALER
from tests.openstack.plane.api import Session
from tests.openstack.plane.configuration import PASSWORD, REGION
from tests.openstack.plane.plane import Plane

LOOPBACK = ("127.0.0.0/8",)
SETTINGS = {
    "REMUDA_REGION__CLOUD_TARGETS": '["127.0.0.0/8"]',
    "REMUDA_REGION__IMAGE_TARGETS": f'["{IMAGES}/32"]',
    "REMUDA_REGION__SIMULATED": "false",
    "REMUDA_SERVER__REQUEST_TIMEOUT": "1m",
}
"""Settings of a process whose regions are on the plane."""
T = TypeVar("T")


@dataclass(frozen=True)
class Domain:
    """A domain with its manager, as the how-to creates them."""

    plane: Plane
    name: str
    id: str
    user: str
    """Id of the manager, whose name is `manager`."""

    def spec(self, *, endpoint: str = "", password: str = PASSWORD, **section: Any) -> RegionSpec:
        account = ServiceAccountConfig(domain_id="", project_id="", user_id="", password=Secret(password))
        where = endpoint or self.plane.configuration.auth_url
        found = RegionOpenstack(endpoint=where, region=REGION, service_account=account)
        return RegionSpec(provider="openstack", openstack=replace(found, **section))

    def names(self, **other: str) -> AccountNames:
        return AccountNames(**{"domain": self.name, "user": "manager", **other})

    def projects(self) -> list[str]:
        """Return the names of the projects that are in the domain."""
        admin = Session.admin(self.plane.configuration)
        found = admin.get("keystone", f"/projects?domain_id={self.id}")["projects"]
        return [each["name"] for each in found]


@contextmanager
def domain_of_its_own(plane: Plane, *, role: str = "manager") -> Iterator[Domain]:
    """Create a domain with a manager, and remove both afterwards."""
    admin, name = Session.admin(plane.configuration), unique_name()
    domain = admin.create("keystone", "/domains", {"domain": {"name": name}})["id"]
    body = {"user": {"name": "manager", "domain_id": domain, "password": PASSWORD}}
    user = admin.create("keystone", "/users", body)["id"]
    roles = {each["name"]: each["id"] for each in admin.get("keystone", "/roles")["roles"]}
    if role:
        path = f"/domains/{domain}/users/{user}/roles/{roles[role]}"
        assert admin.request("PUT", "keystone", path)[0] == 204
    try:
        yield Domain(plane, name, domain, user)
    finally:
        removed_domain(plane, name)


def unique_name() -> str:
    return f"regions-{uuid.uuid4().hex[:8]}"


def removed_domain(plane: Plane, name: str) -> None:
    """Remove a domain, if it is there, with its users."""
    admin = Session.admin(plane.configuration)
    for each in admin.get("keystone", f"/domains?name={name}")["domains"]:
        path = f"/domains/{each['id']}"
        assert admin.request("PATCH", "keystone", path, {"domain": {"enabled": False}})[0] == 200
        assert admin.request("DELETE", "keystone", path)[0] == 204


def connected(
    directory: Path, act: Callable[[OpenStackRegions], Awaitable[T]], *, targets: tuple[str, ...] = LOOPBACK
) -> T:
    """Run something with the connections of a process."""

    async def run() -> T:
        clock, randomness = SystemClock(), SystemRandomness()
        store = open_store(directory / "remuda.db", registry(), SEALER)
        try:
            return await act(
                OpenStackRegions(
                    store=store, clock=clock, randomness=randomness, resolve=SystemResolver(), targets=targets
                )
            )
        finally:
            await store.close()

    return asyncio.run(run())
