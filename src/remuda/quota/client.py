"""Client of identity for projects and quota allocations.

Every call has the permissions of the calling service and names the project that pays. An allocation is named after the
operation that creates its resource, so a repeated request creates it once, and its id need not be stored.
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass

from remuda.access.principal import Context, Principal
from remuda.clients.delegation import Delegation
from remuda.clients.watch import Changed
from remuda.identity.api import IdentityApi
from remuda.identity.quotas.schema import (
    AllocationRead,
    AllocationSpecWire,
    AllocationWrite,
    AmountWire,
    UsageQuery,
    allocation_id,
)
from remuda.kernel.errors import AlreadyExists, NotFound, PreconditionFailed
from remuda.quota.ports import AllocatedQuota, Charge, ChargeAmount, ProjectRef, ProjectState, StaleTokenError
from remuda.resources.conventions import UNNAMED
from remuda.resources.schema import MetadataWrite


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaClient:
    """Implements the `IdentityPort` of region and of compute."""

    identity: IdentityApi
    delegation: Delegation

    async def has_project(self, organization: str, project: str) -> bool:
        context = await self.delegation.as_service(organization, project)
        try:
            await self.identity.get_project(context, organization, project)
        except NotFound:
            return False
        return True

    async def add_reference(self, project: ProjectRef, reference: str) -> None:
        context = await self.delegation.as_service(project.organization, project.project)
        await self.identity.add_project_reference(context, project.organization, project.project, reference)

    async def remove_reference(self, project: ProjectRef, reference: str) -> None:
        """Remove a reference, if the project exists."""
        context = await self.delegation.as_service(project.organization, project.project)
        with suppress(NotFound):
            await self.identity.remove_project_reference(context, project.organization, project.project, reference)

    async def allocate(self, charge: Charge, payer: Principal | None = None) -> None:
        """Create an allocation, or renew a released one."""
        organization, project = charge.payer.organization, charge.payer.project
        actor = "" if payer is None else payer.actor_name
        context = await self.delegation.as_service(organization, project, actor=actor, key=charge.operation)
        try:
            await self.identity.create_allocation(context, organization, project, _allocation(charge))
        except AlreadyExists as exists:
            try:
                await self._renew(charge)
            except NotFound:
                raise exists from None  # another operation has an allocation for the same resource
            await self.update(charge)  # its amounts may have been different when it was released

    async def confirm(self, charge: Charge) -> bool:
        try:
            await self.identity.confirm_allocation(*await self._address(charge))
        except NotFound:
            return False
        return True

    async def update(self, charge: Charge) -> None:
        address = await self._address(charge)
        try:
            await self.identity.change_allocation(*address, _allocation(charge), fencing_token=charge.fencing_token)
        except PreconditionFailed:
            raise StaleTokenError("Allocation", address[-1]) from None

    async def release(self, charge: Charge) -> None:
        await self._release(charge, fencing_token=None)

    async def release_and_fence(self, charge: Charge) -> None:
        """Release an allocation with the last fencing token: the ledger rejects all earlier ones from then on."""
        await self._release(charge, fencing_token=charge.fencing_token + 1)

    async def find_allocation(self, charge: Charge) -> AllocatedQuota | None:
        try:
            return _allocated(await self.identity.get_allocation(*await self._address(charge)))
        except NotFound:
            return None

    async def list_allocations(self, payer: ProjectRef) -> AsyncGenerator[AllocatedQuota]:
        """Yield all allocations of a project; none if it does not exist."""
        context = await self.delegation.as_service(payer.organization, payer.project)
        usage = self.identity.list_usage(context, payer.organization, UsageQuery(project=payer.project))
        with suppress(NotFound):
            async with aclosing(usage):
                async for each in usage:
                    yield _allocated(each)

    async def free_quota(self, payer: ProjectRef) -> Mapping[str, int]:
        """Return the amounts that a project may still use, by the kind of quota."""
        context = await self.delegation.as_service(payer.organization, payer.project)
        quotas = await self.identity.get_project_quotas(context, payer.organization, payer.project)
        return {quota.kind: quota.free for quota in quotas.quotas}

    async def release_allocation(self, allocation: AllocatedQuota) -> None:
        payer = allocation.payer
        context = await self.delegation.as_service(payer.organization, payer.project)
        with suppress(NotFound):
            await self.identity.delete_allocation(context, payer.organization, payer.project, allocation.name)

    async def projects(self) -> AsyncGenerator[ProjectState]:
        """Yield all projects, then each change, without end; deleted projects are left out."""
        async with aclosing(self.identity.watch_all_projects()) as messages:
            async for message in messages:
                if isinstance(message, Changed) and message.type != "deleted":
                    metadata = message.item.metadata
                    yield ProjectState(
                        project=ProjectRef(metadata.organization_id, metadata.id),
                        is_deleting=metadata.deletion_time is not None,
                    )

    async def _renew(self, charge: Charge) -> None:
        address = await self._address(charge)
        try:
            await self.identity.renew_allocation(*address, fencing_token=charge.fencing_token)
        except PreconditionFailed:
            raise StaleTokenError("Allocation", address[-1]) from None

    async def _release(self, charge: Charge, *, fencing_token: int | None) -> None:
        with suppress(NotFound):
            await self.identity.delete_allocation(*await self._address(charge), fencing_token=fencing_token)

    async def _address(self, charge: Charge) -> tuple[Context, str, str, str]:
        """Return the context of a call about an allocation, and the path of the allocation."""
        payer, service = charge.payer, await self.delegation.service()
        context = await self.delegation.as_service(payer.organization, payer.project)
        return context, payer.organization, payer.project, allocation_id(service.subject, charge.operation)


def _allocation(charge: Charge) -> AllocationWrite:
    amounts = tuple(AmountWire(kind=each.kind, committed=each.committed, reserved=0) for each in charge.amounts)
    return AllocationWrite(
        metadata=MetadataWrite(name=UNNAMED),
        spec=AllocationSpecWire(kind=charge.kind, id=charge.id, allocations=amounts),
    )


def _allocated(allocation: AllocationRead) -> AllocatedQuota:
    metadata, spec = allocation.metadata, allocation.spec
    return AllocatedQuota(
        name=metadata.id,
        payer=ProjectRef(metadata.organization_id, metadata.project_id),
        kind=spec.kind,
        id=spec.id,
        amounts=frozenset(ChargeAmount(each.kind, each.committed) for each in spec.allocations if each.committed),
        is_confirmed=allocation.status.state == "confirmed",
    )
