"""Cascades: deletion of a network or a project in another service, and its consequences in compute."""

import asyncio
from contextlib import aclosing, suppress
from dataclasses import dataclass

from remuda.clients.watch import Changed
from remuda.compute.instances.server_watch import watch_forever
from remuda.compute.instances.service import delete_instances_on
from remuda.compute.kinds import ProjectPolicy
from remuda.compute.ports import ComputePorts, is_deleting
from remuda.kernel.errors import Conflict, NotFound
from remuda.providers.absence import AbsenceTracker
from remuda.reconcile.leader import every
from remuda.reconcile.sources import names
from remuda.resources.conventions import ORGANIZATION
from remuda.resources.crud import find


@dataclass(frozen=True, slots=True)
class NetworkConsumer:
    """Deletes the instances on a network with it; `run` is a background task.

    A create checks its network again after it has stored the instance, so no instance is added after the deletion of
    the network was requested, and one visit is enough. Every process does this, since a repeated deletion has no
    effect. The monitor finds the instances of a network whose deletion was missed.
    """

    ports: ComputePorts

    async def run(self) -> None:
        """Watch networks until cancelled; after an error all networks are listed again."""
        ports = self.ports
        messages = watch_forever(ports.region.api.watch_networks, "networks", ports.clock, ports.randomness)
        async with aclosing(messages):
            async for message in messages:
                if isinstance(message, Changed) and (message.type == "deleted" or is_deleting(message.item)):
                    network = message.item.metadata.id
                    await delete_instances_on(ports.store, network, ports.randomness, controller="networks")


class ProjectConsumer:
    """Deletes the policy of a project with it; `run` is a background task.

    The watch reports projects that are being deleted. A policy whose project was deleted unnoticed is found by a
    periodic check, and deleted when the absence of the project is confirmed.
    """

    def __init__(self, ports: ComputePorts) -> None:
        self._ports = ports
        self._absence = AbsenceTracker(ports.clock, delay_s=ports.settings.absence_delay.total_seconds())

    async def run(self) -> None:
        """Watch and check until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._watch())
            tasks.create_task(every(self._ports.settings.monitor_interval, self._ports.clock, self.check_policies))

    async def check_policies(self) -> None:
        """Check once whether the project of each policy exists."""
        async for project in names(self._ports.store, ProjectPolicy):
            policy = await find(self._ports.store, ProjectPolicy, project)
            if policy is None:
                continue
            organization = policy.metadata.labels.get(ORGANIZATION, "")
            if await self._ports.identity.has_project(organization, project):
                self._absence.clear(project)
            elif self._absence.record_missing(project):
                await self._delete(policy)

    async def _watch(self) -> None:
        ports = self._ports
        projects = watch_forever(ports.identity.projects, "projects", ports.clock, ports.randomness)
        async with aclosing(projects):
            async for each in projects:
                policy = await find(ports.store, ProjectPolicy, each.project.project) if each.is_deleting else None
                if policy is not None:
                    await self._delete(policy)

    async def _delete(self, policy: ProjectPolicy) -> None:
        self._absence.clear(policy.name)
        with suppress(NotFound, Conflict):  # it was deleted meanwhile, or another one was created
            await self._ports.store.delete(ProjectPolicy, policy.name, uid=policy.uid)
