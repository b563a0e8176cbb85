"""Bugs that somebody might make in compute, each to be found by the invariants."""

import itertools
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from remuda.access.principal import Context
from remuda.compute.consumers import NetworkConsumer
from remuda.compute.instances import convergence, service
from remuda.compute.instances.controller import InstanceController
from remuda.compute.instances.convergence import RequestedChange, ServerChanges
from remuda.compute.instances.rules import charge_of, desired_server
from remuda.compute.instances.status import projected
from remuda.compute.instances.updates import Updates
from remuda.compute.kinds import INSTANCE, ComputeInstance
from remuda.compute.monitor.monitor import InstanceCheck
from remuda.kernel.ids import derived_id, random_id
from remuda.quota import sagas as changing
from remuda.quota.client import QuotaClient
from remuda.quota.lifecycle import payer_of
from remuda.quota.ports import Charge
from remuda.reconcile.results import Done
from remuda.region.monitor.monitor import Monitor as RegionMonitor
from remuda.region.servers.schema import ReplaceWrite, ServerCreate, ServerRead
from tests.kit.compute.region_api import with_methods

_remove = InstanceController.deprovision
_desired = desired_server
_converge = ServerChanges.converge
_replace = ServerChanges._replace
_release = QuotaClient.release


async def _nothing(*_arguments: object, **_options: object) -> None:
    """Do nothing where something should be done."""


async def _release_everything(self: InstanceCheck) -> None:
    """Release the quota of every instance, as if none existed."""
    for instance in (await self.ports.store.list(ComputeInstance)).items:
        await self.ports.identity.release(charge_of(instance))


async def _released_first(self: InstanceController, instance: ComputeInstance, run: Any) -> Any:
    await self.ledger.release(charge_of(instance))
    return await _remove(self, instance, run)


async def _unawaited(self: InstanceController, instance: ComputeInstance, _run: Any) -> Any:
    await self.region.delete_server(instance.spec.server_id, payer_of(instance))
    await self.ledger.release(charge_of(instance))
    return Done()


def _untagged(instance: ComputeInstance) -> ServerCreate:
    desired = _desired(instance)
    return replace(desired, metadata=replace(desired.metadata, tags=()))


async def _as_observed(self: ServerChanges, instance: ComputeInstance, server: ServerRead) -> RequestedChange | None:
    """Make a server again that is not well."""
    if server.metadata.health_status != "error":
        return await _converge(self, instance, server)
    spec, payer = instance.spec, payer_of(instance)
    context = await self.region.caller.as_service(
        payer.organization, payer.project, operation=random_id(self.region.caller.randomness)
    )
    body = ReplaceWrite(
        flavor_id=spec.flavor_id,
        image_id=spec.image_id,
        user_data="" if spec.user_data is None else spec.user_data.reveal(),
        ssh_certificate_authority_id=spec.ssh_certificate_authority_id or None,
    )
    replaced = await self.region.api.replace_server(context, server.metadata.id, body)
    return RequestedChange(replaced, ("spec.flavorId",), "Replacing")


async def _release_by_name(self: QuotaClient, charge: Charge) -> None:
    if charge.kind != INSTANCE.qualified:
        await _release(self, charge)
        return
    async for held in self.list_allocations(charge.payer):
        if held.id == charge.id:
            await self.release_allocation(held)


def _as_at_first(instance: ComputeInstance, server: ServerRead, now: datetime) -> ComputeInstance:
    return instance if instance.status.has_server else projected(instance, server, now)


def _never_the_same() -> Any:
    count = itertools.count()

    async def _replace_again(self: ServerChanges, *arguments: Any) -> RequestedChange:
        plain = self.region.api.replace_server

        async def replace_server(context: Context, server: str, body: ReplaceWrite, **_: Any) -> ServerRead:
            another = derived_id(context.operation, str(next(count)))
            return await plain(replace(context, operation=another, key=another), server, body)

        return await _replace(
            ServerChanges(with_methods(self.region, replace_server=replace_server), self._rejections), *arguments
        )

    return _replace_again


PLANTED: Mapping[str, tuple[object, str, Any]] = {
    "what an instance costs is released before its server is gone": (
        InstanceController,
        "deprovision",
        _released_first,
    ),
    "an instance goes without waiting for its server": (InstanceController, "deprovision", _unawaited),
    "a server does not say whose it is": (convergence, "desired_server", _untagged),
    "a server that is not well is replaced": (ServerChanges, "converge", _as_observed),
    "the monitor releases the quota of instances that exist": (InstanceCheck, "run", _release_everything),
    "the monitor does not look at servers": (RegionMonitor, "run", _nothing),
    "nobody notices the end of a network": (NetworkConsumer, "run", _nothing),
    "a change costs nothing": (changing, "_change_allocation", _nothing),
    "whoever loses a name releases what the winner holds": (QuotaClient, "release", _release_by_name),
    "an instance shows what its server was at first": (convergence, "projected", _as_at_first),
    "what is protected is deleted all the same": (service, "check_deletion_allowed", _nothing),
    "no plan is ever demanded": (Updates, "_check_consent", _nothing),
    "a replacement is another one each time it is asked for, whatever was asked for since": (
        ServerChanges,
        "_replace",
        _never_the_same(),
    ),
}
"""What is replaced, and by what."""
