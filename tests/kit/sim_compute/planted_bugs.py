"""Bugs that somebody might make in compute, each to be found by the laws."""

import dataclasses
import itertools
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from remuda.clients.identity import IdentityLink
from remuda.clients.region import RegionLink
from remuda.compute.consumers import NetworkConsumer
from remuda.compute.instances import convergence as asking
from remuda.compute.instances import convergence as keeping
from remuda.compute.instances import convergence as making
from remuda.compute.instances import service
from remuda.compute.instances.controller import InstanceController
from remuda.compute.instances.convergence import Asked, Asking
from remuda.compute.instances.rules import charge_for
from remuda.compute.instances.status import projected
from remuda.compute.instances.updates import Updates
from remuda.compute.kinds import INSTANCE, ComputeInstance
from remuda.compute.ports import Replacement, ServerSeen, ServerWanted
from remuda.kernel.ids import derived_id, random_id
from remuda.quota import sagas as changing
from remuda.quota.ports import Charge
from remuda.quota.reservation import payer_of
from remuda.reconcile.results import Done

_remove = InstanceController.deprovision
_wanted = asking.wanted_server
_converge = Asking.converge
_release = IdentityLink.release


async def _nothing(*_arguments: object, **_options: object) -> None:
    """Do nothing where something should be done."""


async def _released_first(self: InstanceController, instance: ComputeInstance, run: Any) -> Any:
    await self.identity.release(charge_for(instance))
    return await _remove(self, instance, run)


async def _unawaited(self: InstanceController, instance: ComputeInstance, _run: Any) -> Any:
    await self.region.delete_server(instance.spec.server_id, payer_of(instance))
    await self.identity.release(charge_for(instance))
    return Done()


def _untagged(*arguments: Any) -> ServerWanted:
    wanted = _wanted(*arguments)
    return dataclasses.replace(wanted, facts=dataclasses.replace(wanted.facts, tags=()))


async def _as_observed(self: Asking, instance: ComputeInstance, server: ServerSeen) -> Asked | None:
    """Make a server anew that is not well."""
    if server.health != "error":
        return await _converge(self, instance, server)
    spec = instance.spec
    replaced = await self.region.replace_server(
        Replacement(
            server=server.id,
            flavor=spec.flavor_id,
            image=spec.image_id,
            user_data=spec.user_data,
            authority=spec.ssh_certificate_authority_id,
            payer=payer_of(instance),
            operation=random_id(self.region.randomness),  # type: ignore[attr-defined]  # of the link it has one
        )
    )
    return Asked(replaced, ("spec.flavorId",), "Replacing")


async def _release_by_name(self: IdentityLink, charge: Charge, *, permanently: bool = False) -> None:
    if charge.kind != INSTANCE.qualified:
        await _release(self, charge, permanently=permanently)
        return
    async for held in self.held_in(charge.payer):
        if held.id == charge.id:
            await self.let_go(held)


def _as_at_first(instance: ComputeInstance, server: ServerSeen, now: datetime) -> ComputeInstance:
    return instance if instance.status.has_server else projected(instance, server, now)


def _never_the_same() -> Any:
    count, plain = itertools.count(), RegionLink.replace_server

    async def replace_server(link: RegionLink, wanted: Replacement) -> ServerSeen:
        another = derived_id(wanted.operation, str(next(count)))
        return await plain(link, dataclasses.replace(wanted, operation=another, revision=None))

    return replace_server


PLANTED: Mapping[str, tuple[object, str, Any]] = {
    "what an instance costs is given back before its server is gone": (
        InstanceController,
        "deprovision",
        _released_first,
    ),
    "an instance goes without waiting for its server": (InstanceController, "deprovision", _unawaited),
    "a server does not say whose it is": (making, "wanted_server", _untagged),
    "a server that is not well is replaced": (Asking, "converge", _as_observed),
    "nobody notices the end of a network": (NetworkConsumer, "run", _nothing),
    "a change costs nothing": (changing, "_change_allocation", _nothing),
    "whoever loses a name gives back what the winner holds": (IdentityLink, "release", _release_by_name),
    "an instance shows what its server was at first": (keeping, "projected", _as_at_first),
    "what is protected is deleted all the same": (service, "check_deletion_allowed", _nothing),
    "no plan is ever demanded": (Updates, "_check_consent", _nothing),
    "a replacement is another one each time it is asked for, whatever was asked for since": (
        RegionLink,
        "replace_server",
        _never_the_same(),
    ),
}
"""What is replaced, and by what."""
