"""Identity, as other services reach it.

Every call is made as the service that asks, for whoever pays. An allocation is named after its operation, so what was
asked for twice is held once, and it can be found again without being told its id.

Projects as other services follow them: which there are in all organizations, and which of them are ending.
"""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass

from msgspec.structs import replace

from remuda.access.principal import Context, Principal
from remuda.clients.transport import Send, ServiceNow
from remuda.clients.watch import Followed, Told, Watch
from remuda.compute.ports import Held
from remuda.identity.names import OrganizationPath, ProjectPath
from remuda.identity.quotas.allocation_state import allocation_id
from remuda.identity.quotas.schema import (
    AllocationPath,
    AllocationRead,
    AllocationSpecWire,
    AllocationWrite,
    AmountWire,
    FencingQuery,
    ReleaseQuery,
    UsageQuery,
)
from remuda.identity.tenancy.rules import read_project
from remuda.identity.tenancy.schema import ProjectRead, ReferencePath
from remuda.kernel.errors import AlreadyExists, NotFound, PreconditionFailed
from remuda.kernel.ids import random_id
from remuda.kernel.randomness import Randomness
from remuda.quota.ports import Amount, Charge, ProjectRef, ProjectState, StaleTokenError
from remuda.resources.conventions import UNNAMED
from remuda.resources.schema import MetadataWrite

WatchProjects = Callable[[], AsyncGenerator[ProjectState]]
"""Yields every project there is, then each that changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityLink:
    """What a service asks of identity. It is region's `IdentityPort`, and compute's."""

    send: Send
    service: ServiceNow
    randomness: Randomness
    watch: WatchProjects

    async def has_project(self, organization: str, project: str) -> bool:
        """Tell whether an organization has a project."""
        try:
            await self._send("get_project", ProjectPath(organization=organization, project=project))
        except NotFound:
            return False
        return True

    async def refer(self, place: ProjectRef, reference: str) -> None:
        """Keep a project from going."""
        await self._send("add_project_reference", _reference(place, reference))

    async def unrefer(self, place: ProjectRef, reference: str) -> None:
        """Keep a project no longer; one that is not there is fine."""
        try:
            await self._send("remove_project_reference", _reference(place, reference))
        except NotFound:
            return

    async def allocate(self, charge: Charge, payer: Principal | None = None) -> None:
        """Hold what something costs; what was held before, and was given back, is held again."""
        path = ProjectPath(organization=charge.payer.organization, project=charge.payer.project)
        actor = "" if payer is None else payer.actor_name
        try:
            await self._send("create_allocation", path, _allocation(charge), key=charge.operation, actor=actor)
        except AlreadyExists as held:
            try:
                await self._in_turn("renew_allocation", charge)
            except NotFound:
                raise held from None  # another operation holds something for the same owner
            await self.change(charge)  # it may have cost something else when it was given back

    async def confirm(self, charge: Charge) -> bool:
        """Say that it is there; tell whether what it costs is held."""
        try:
            await self._send("confirm_allocation", await self._row(charge))
        except NotFound:
            return False
        return True

    async def change(self, charge: Charge) -> None:
        """Hold what it costs now, unless it was changed in a later turn."""
        await self._in_turn("change_allocation", charge, _allocation(charge))

    async def release(self, charge: Charge, *, permanently: bool = False) -> None:
        """Hold nothing any more; what is not held is fine. Going is a turn of its own, and the last."""
        path, query = (
            await self._row(charge),
            ReleaseQuery(fencing_token=charge.fencing_token + 1 if permanently else None),
        )
        try:
            await self.send.ask("delete_allocation", path, await self._context(path), None, query)
        except NotFound:
            return

    async def held_for(self, charge: Charge) -> Held | None:
        """Return what is held for something of ours."""
        try:
            path = await self._row(charge)
            return _held(await self.send.ask("get_allocation", path, await self._context(path)))
        except NotFound:
            return None

    async def held_in(self, place: ProjectRef) -> AsyncGenerator[Held]:
        """Yield everything that is held in a project."""
        context = await self._context(place)
        path, query = OrganizationPath(organization=place.organization), UsageQuery(project=place.project)
        try:
            async for page in self.send.pages("list_usage", path, context, query=query):
                for each in page:
                    yield _held(each)
        except NotFound:
            return

    async def free_in(self, place: ProjectRef) -> Mapping[str, int]:
        """Return how much a project may still have, by the kind of quota."""
        path = ProjectPath(organization=place.organization, project=place.project)
        read = await self.send.ask("get_project_quotas", path, await self._context(path))
        return {quota.kind: quota.free for quota in read.quotas}

    async def let_go(self, held: Held) -> None:
        """Hold it no more; what is not held is fine."""
        path = AllocationPath(organization=held.payer.organization, project=held.payer.project, allocation=held.name)
        try:
            await self._send("delete_allocation", path)
        except NotFound:
            return

    def projects(self) -> AsyncGenerator[ProjectState]:
        """Yield every project there is, then each that changes, without end."""
        return self.watch()

    async def _in_turn(self, name: str, charge: Charge, body: AllocationWrite | None = None) -> None:
        path, query = await self._row(charge), FencingQuery(fencing_token=charge.fencing_token)
        try:
            await self.send.ask(name, path, await self._context(path), body, query)
        except PreconditionFailed:
            raise StaleTokenError("Allocation", path.allocation) from None

    async def _send(
        self,
        name: str,
        path: ProjectPath | AllocationPath | ReferencePath,
        body: AllocationWrite | None = None,
        *,
        key: str | None = None,
        actor: str = "",
    ) -> None:
        await self.send(name, path, await self._context(path, key=key, actor=actor), body)

    async def _context(
        self,
        place: ProjectRef | ProjectPath | AllocationPath | ReferencePath,
        *,
        key: str | None = None,
        actor: str = "",
    ) -> Context:
        """Return the context of one request: what is asked later is asked anew, and no answer of before is repeated."""
        service = (await self.service()).with_payer(place.organization, place.project)
        return Context(
            principal=replace(service, actor=actor) if actor else service,
            operation=random_id(self.randomness),
            key=key,
        )

    async def _row(self, charge: Charge) -> AllocationPath:
        service = await self.service()
        return AllocationPath(
            organization=charge.payer.organization,
            project=charge.payer.project,
            allocation=allocation_id(service.subject, charge.operation),
        )


def _reference(place: ProjectRef, reference: str) -> ReferencePath:
    return ReferencePath(organization=place.organization, project=place.project, reference=reference)


def _allocation(charge: Charge) -> AllocationWrite:
    amounts = tuple(AmountWire(kind=each.kind, committed=each.committed, reserved=0) for each in charge.amounts)
    return AllocationWrite(
        metadata=MetadataWrite(name=UNNAMED),
        spec=AllocationSpecWire(kind=charge.kind, id=charge.id, allocations=amounts),
    )


def _held(found: AllocationRead) -> Held:
    about, spec = found.metadata, found.spec
    return Held(
        name=about.id,
        payer=ProjectRef(about.organization_id, about.project_id),
        kind=spec.kind,
        id=spec.id,
        amounts=frozenset(Amount(each.kind, each.committed) for each in spec.allocations if each.committed),
        is_confirmed=found.status.state == "confirmed",
    )


PROJECTS = Followed("list_all_projects", ProjectRead, read_project)
"""All projects there are."""


async def watch_projects(watch: Watch) -> AsyncGenerator[ProjectState]:
    """Yield every project there is, then each that changes; all of them again when changes are no longer known.

    What is gone is not told: a project goes when nothing needs it any more, so there is nobody to tell.
    """
    async with aclosing(watch(PROJECTS)) as news:
        async for each in news:
            if isinstance(each, Told) and each.type != "deleted":
                yield _seen(each.item)


def _seen(project: ProjectRead) -> ProjectState:
    about = project.metadata
    return ProjectState(
        project=ProjectRef(about.organization_id, about.id), is_deleting=about.deletion_time is not None
    )
