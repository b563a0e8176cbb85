"""The end of a project is the end of its policy.

A project that is marked comes to its end, so its policy goes at once. That a project is gone is not told. So now and
then all policies are held against the projects there are, of which there are few; one whose project is not there in
two looks in a row goes.

Ends of things in other services that are ends of things here.

The end of a network is the end of the instances on it: that is how a project's end reaches them, too.

An instance looks at its network once more when it is there, so once a network is marked no new one comes to stay, and
to look once after the mark is enough. To ask twice is fine, so every process asks, whoever leads. A network that went
while nobody watched is not told of. But its instances have no server any more, which is noticed at once (`following`),
and the monitor ends them.
"""

import asyncio
from contextlib import aclosing, suppress
from dataclasses import dataclass

from remuda.clients.watch import Changed
from remuda.compute.instances.server_watch import followed
from remuda.compute.instances.service import end_instances_on
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
    """Watches networks end. Have `keep` done as a duty."""

    ports: ComputePorts

    async def keep(self) -> None:
        """Watch for ever: a duty. Whatever goes wrong, all networks are looked at again."""
        ports = self.ports
        messages = followed(ports.region.api.watch_networks, "networks", ports.clock, ports.randomness)
        async with aclosing(messages):
            async for message in messages:
                if isinstance(message, Changed) and (message.type == "deleted" or is_deleting(message.item)):
                    network = message.item.metadata.id
                    await end_instances_on(ports.store, network, ports.randomness, controller="networks")


class ProjectConsumer:
    """Watches projects end. Have `keep` done as a duty."""

    def __init__(self, ports: ComputePorts) -> None:
        self._ports = ports
        self._absences = AbsenceTracker(ports.clock, delay_s=ports.settings.absence_delay.total_seconds())

    async def keep(self) -> None:
        """Watch for ever: a duty."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow())
            tasks.create_task(every(self._ports.settings.monitor_interval, self._ports.clock, self.review))

    async def review(self) -> None:
        """Look once which policies are nobody's."""
        async for project in names(self._ports.store, ProjectPolicy):
            policy = await find(self._ports.store, ProjectPolicy, project)
            if policy is None:
                continue
            organization = policy.metadata.labels.get(ORGANIZATION, "")
            if await self._ports.identity.has_project(organization, project):
                self._absences.clear(project)
            elif self._absences.record_missing(project):
                await self._end(policy)

    async def _follow(self) -> None:
        ports = self._ports
        projects = followed(ports.identity.projects, "projects", ports.clock, ports.randomness)
        async with aclosing(projects):
            async for seen in projects:
                policy = await find(ports.store, ProjectPolicy, seen.project.project) if seen.is_deleting else None
                if policy is not None:
                    await self._end(policy)

    async def _end(self, policy: ProjectPolicy) -> None:
        self._absences.clear(policy.name)
        with suppress(NotFound, Conflict):  # it went meanwhile, or somebody made another
            await self._ports.store.delete(ProjectPolicy, policy.name, uid=policy.uid)
