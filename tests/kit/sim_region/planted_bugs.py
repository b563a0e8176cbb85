"""Bugs that somebody might make in region, each to be found by the invariants."""

from collections.abc import Mapping
from typing import Any

from remuda.providers.absence import AbsenceTracker
from remuda.providers.contract.common import server_name
from remuda.quota.lifecycle import QuotaHooks
from remuda.reconcile.lifecycle import Outcome
from remuda.reconcile.results import Done
from remuda.region.consumers import ProjectConsumer
from remuda.region.images.controller import ImageController
from remuda.region.kinds.servers import Server
from remuda.region.loadbalancers import controller as balancers
from remuda.region.networks.controller import IdentityController
from remuda.region.networks.ipam import release_address
from remuda.region.networks.service import Networks
from remuda.region.recovery.service import Recovery
from remuda.region.servers import controller as servers
from remuda.region.servers import provider_spec as clouding
from remuda.region.servers.controller import ServerController

_admit_deprovision = QuotaHooks.before_deprovision
_remove_server = ServerController.deprovision


async def _nothing(*_arguments: object, **_options: object) -> None:
    """Do nothing where something should be done."""


def _always(*, answer: Any) -> Any:
    """Return a method that always gives this answer."""

    async def give(*_arguments: object, **_options: object) -> Any:
        return answer

    return give


def _of_any_incarnation(server: str, _uid: str, replacement: int) -> str:
    return server_name(server, "", replacement)


async def _released_first(self: QuotaHooks[Any], resource: Any, run: Any) -> Any:
    if self.charge is not None:
        await self.ledger.release(self.charge(resource))
    return await _admit_deprovision(self, resource, run)


async def _address_released_first(self: ServerController, server: Server, run: Any) -> Any:
    await release_address(self.store, server)
    return await _remove_server(self, server, run)


async def _left_as_it_is(server: Server, *_arguments: object, **_options: object) -> Outcome[Server]:
    return Outcome(Done(), server)


PLANTED: Mapping[str, tuple[object, str, Any]] = {
    "the name of a server does not say which incarnation": (clouding, "server_name", _of_any_incarnation),
    "what a network costs is released before it is gone": (QuotaHooks, "before_deprovision", _released_first),
    "an address is released before its port is gone": (ServerController, "deprovision", _address_released_first),
    "what is not seen once is gone": (AbsenceTracker, "record_missing", lambda *_: True),
    "an identity goes without its tenancy": (IdentityController, "deprovision", _always(answer=Done())),
    "a balancer takes another address each time": (balancers, "find_address", _always(answer=None)),
    "nobody notices the end of a project": (ProjectConsumer, "delete_contents", _nothing),
    "another image is wanted, and nobody puts it there": (servers, "rebuild", _left_as_it_is),
    "a network goes although another service uses it": (Networks, "check_deletion", _nothing),
    "what is abandoned is not written down": (Recovery, "_record_orphans", _nothing),
    "nobody fetches an image": (ImageController, "provision", _always(answer=Done())),
}
"""What is replaced, and by what."""
