"""The instances room.

Every method takes the context of the call, checks the caller's rights itself, and has at most one effect, or is an
operation. A change is in `updates`, and what can be done to a running instance in `verbs`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from remuda.access.checks import allow_new_in_project
from remuda.access.principal import Context, Permission, asker_of
from remuda.compute.instances import rules
from remuda.compute.instances.checking import check_access, check_network, choose
from remuda.compute.instances.sagas import CREATE_INSTANCE, NewInstance
from remuda.compute.instances.schema import InstanceCreate, InstanceRead
from remuda.compute.kinds.instances import INSTANCE, ComputeInstance
from remuda.compute.permissions import permission
from remuda.compute.plans.protecting import refuse_if_protected
from remuda.compute.ports import IdentityPort, RegionPort
from remuda.http.responses import Collection
from remuda.kernel.clock import Clock
from remuda.kernel.errors import AnswerNotKept, KeyReused, NotFound
from remuda.kernel.tags import Tag
from remuda.operations.kinds import Operation
from remuda.operations.saga import read_input
from remuda.operations.service import Operations
from remuda.quota.ports import Place, paying_for
from remuda.resources.crud import find, request_deletion, requested, until_written, witnessed
from remuda.resources.metadata import check_tags, stored_tags
from remuda.resources.query import NetworkedQuery, allow_for, allow_naming, filters_of
from remuda.resources.tags import own_tags
from remuda.store.contract import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Instances:
    """The room."""

    store: Store
    clock: Clock
    identity: IdentityPort
    region: RegionPort
    operations: Operations

    async def list(self, context: Context, query: NetworkedQuery) -> Collection[ComputeInstance, list[InstanceRead]]:
        """Return the instances that the caller may see."""
        right, filters = permission("instances", "read"), filters_of(query, is_versioned=False)
        await allow_naming(context.principal, right, filters, exists=self.identity.has_project)
        is_asked_for = filters.visible(context.principal, right, _tags)
        return Collection(
            store=self.store,
            kind=ComputeInstance,
            view=rules.INSTANCE_VIEW,
            labels=filters.labels(),
            visible=lambda instance: rules.has_scope(instance) and is_asked_for(instance),
        )

    async def create(self, context: Context, wanted: InstanceCreate) -> ComputeInstance:
        """Make an instance on a network that has none of its name, if its project may have another."""
        principal, spec = context.principal, wanted.spec
        place = Place(spec.organization_id, spec.project_id)
        right = permission("instances", "create")
        await allow_new_in_project(
            principal, right, place.organization, place.project, exists=self.identity.has_project
        )
        made = await self._made_before(context, wanted)
        return made or await self._made(context, await self._judged(context, place, wanted))

    async def get(self, context: Context, instance: str) -> ComputeInstance:
        return await self.find(context, permission("instances", "read"), instance)

    async def delete(self, context: Context, instance: str) -> None:
        """Ask for an instance to go."""

        async def delete() -> None:
            found = await self.find(context, permission("instances", "delete"), instance)
            if not found.is_marked:
                await refuse_if_protected(self.store, found)
            told = requested(context, INSTANCE, found, "DeletionRequested")
            log = [*witnessed(context, INSTANCE.plural, found), told]
            await request_deletion(self.store, context, found, rules.writable_instance(found), log, judged=True)

        await until_written(delete)

    async def find(self, context: Context, right: Permission, instance: str) -> ComputeInstance:
        """Return an instance that the caller may read and do this to."""
        found = await self.store.get(ComputeInstance, instance)
        if not rules.has_scope(found):
            raise NotFound("ComputeInstance", instance)
        allow_for(context.principal, permission("instances", "read"), found)
        allow_for(context.principal, right, found)
        return found

    async def _judged(self, context: Context, place: Place, wanted: InstanceCreate) -> NewInstance:
        """Judge a new instance, in the order that clients know, and return what there is to make."""
        asking = replace(context, principal=context.principal.paying(place.organization, place.project))
        network = await self.region.network(asking, wanted.spec.network_id)
        check_network(network, place)
        choice = await choose(self.region, asking, network, wanted.spec)
        await check_access(self.region, asking, network, wanted.spec)
        check_tags(wanted.metadata.tags)
        own_tags(stored_tags(wanted.metadata), context.principal)
        return NewInstance(
            instance=rules.instance_id(network.id, wanted.metadata.name),
            wanted=wanted,
            region=network.region,
            gpus=choice.gpus,
            by=asker_of(paying_for(context.principal, place)),
        )

    async def _made(self, context: Context, new: NewInstance) -> ComputeInstance:
        organization = new.wanted.spec.organization_id
        done = await self.operations.run(
            CREATE_INSTANCE,
            id=context.operation,
            actor=context.principal.who,
            input=new,
            trace_id=context.trace_id,
            log=context.witness(INSTANCE.plural, new.instance, organization=organization),
        )
        found = await find(self.store, ComputeInstance, new.instance)
        if found is None or found.spec.operation != done.name:
            raise AnswerNotKept  # the same request made it once, and it has gone since
        return found

    async def _made_before(self, context: Context, wanted: InstanceCreate) -> ComputeInstance | None:
        """Return what the same request has made, whatever has become since of what it was judged by."""
        if context.key is None:
            return None
        name = rules.instance_id(wanted.spec.network_id, wanted.metadata.name)
        found = await find(self.store, ComputeInstance, name)
        operation = None if found is None else await find(self.store, Operation, found.spec.operation)
        if operation is None or operation.spec.request != context.operation or operation.phase != "done":
            return None
        if read_input(CREATE_INSTANCE, operation.spec).wanted != wanted:
            raise KeyReused
        return found


def _tags(instance: ComputeInstance) -> Sequence[Tag]:
    return instance.spec.tags
