"""Many instances that run, written with bare SQL, with everything that belongs to each.

That is the instance, its server and the server's address, and what is held for it: four objects; at the cloud a server
and its port. What is counted in the organization's ledger is what is held then.
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from bench.kinds import name_of
from bench.region.files import BareStore
from bench.region.filling import BareCloud, copies
from bench.region.filling import Model as ServerModel
from remuda.compute.kinds import ComputeInstance
from remuda.compute.names import INCARNATION, INSTANCE_TAG
from remuda.datadir import DataDirectory
from remuda.identity.kinds.quotas import Allocation, Amounts, Quota
from remuda.identity.quotas.quota_state import plus
from remuda.identity.quotas.schema import allocation_id
from remuda.kernel.tags import Tag
from remuda.region.kinds.servers import Server
from remuda.resources.conventions import NAME, RESOURCE_ID

__all__ = ["Model", "fill"]

_ACCOUNT = "unikorn-compute"
_INCARNATIONS = 1 << 100
"""Uids of instances are told apart from those of servers by this."""
_ROWS = 1 << 101


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """An instance as it was made, which others are copies of."""

    instance: ComputeInstance
    allocation: Allocation
    server: ServerModel


def fill(directory: Path, models: Sequence[Model], head: Quota, count: int) -> None:
    """Write so many copies, of the models in turn, all of which the ledger with this head pays."""
    held: Amounts = ()
    with BareStore(DataDirectory(directory).store) as ours, BareCloud(directory) as cloud:
        for number, (of_server, copy) in enumerate(copies([model.server for model in models], count)):
            model = models[number % len(models)]
            instance = _instance(model.instance, copy.server, number)
            row = _row(model.allocation, instance, number)
            server = _owned(copy.server, instance)
            for each in (instance, row, server, copy.address):
                ours.add(each)
            cloud.add(of_server, copy, number)
            held = plus(held, row.spec.allocations)
        ours.change(_counted(head, held))


def _instance(model: ComputeInstance, server: Server, number: int) -> ComputeInstance:
    """Return the instance of a server, as it shows it."""
    labels = {**model.metadata.labels, NAME: server.metadata.labels[NAME]}
    told = {"private_ip": server.status.private_ip, "mac_address": server.status.mac_address}
    uid = str(uuid.UUID(int=_INCARNATIONS + number))
    return replace(
        model,
        metadata=replace(model.metadata, name=server.name, uid=uid, labels=labels),
        spec=replace(model.spec, server_id=server.name, operation=name_of(number)),
        status=replace(model.status, **told),
    )


def _row(model: Allocation, instance: ComputeInstance, number: int) -> Allocation:
    name, uid = allocation_id(_ACCOUNT, instance.spec.operation), str(uuid.UUID(int=_ROWS + number))
    labels = {**model.metadata.labels, RESOURCE_ID: instance.name}
    return replace(model, metadata=replace(model.metadata, name=name, uid=uid, labels=labels))


def _owned(server: Server, instance: ComputeInstance) -> Server:
    """Return a server that says whose it is."""
    says = {INSTANCE_TAG: instance.name, INCARNATION: instance.uid}
    tags = tuple(Tag(name=tag.name, value=says.get(tag.name, tag.value)) for tag in server.spec.tags)
    labels = {label: says.get(label, value) for label, value in server.metadata.labels.items()}
    return replace(server, metadata=replace(server.metadata, labels=labels), spec=replace(server.spec, tags=tags))


def _counted(head: Quota, held: Amounts) -> Quota:
    """Return a head that counts this as well, in its only project."""
    (project,) = head.spec.projects
    projects = (replace(project, totals=plus(project.totals, held)),)
    return replace(head, spec=replace(head.spec, totals=plus(head.spec.totals, held), projects=projects))
