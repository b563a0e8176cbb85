"""Updates and rebuilds of instances, and plans of what they would do.

A dry run is validated as the update itself is, and writes nothing; exceeded quota does not reject it, but is a blocker
of the plan. An update is rejected if its replacement is known to be impossible: the region has no capacity for the
flavor, the image is not ready or does not fit, or the quota does not allow it. An update with the hash of a plan is
carried out if its plan is still that one, or if nothing is left to do; otherwise it is rejected with the present plan.
So is one without a hash that destroys data, where the instance or its project's policy demands a plan.

A rebuild from the present image is an update that changes nothing but the number of rebuilds: it is planned, checked
and carried out as an update to another image.

An update that collides with another write is validated again. While region rejects the specification of an instance, an
update is planned from the last applied one: to return to it destroys nothing and needs no capacity.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from remuda.access.principal import Context
from remuda.compute.instances import rules
from remuda.compute.instances.convergence import REJECTION_REASONS
from remuda.compute.instances.rules import charge_of, charged_gpus, desired_server, last_requested
from remuda.compute.instances.sagas import UPDATE_INSTANCE
from remuda.compute.instances.schema import InstanceSpecWire, InstanceUpdate
from remuda.compute.instances.server_lookup import classified, is_ambiguous, list_tagged
from remuda.compute.instances.service import (
    Instances,
    check_access,
    check_fit,
    check_network,
    find_flavor,
    find_image,
    gpus_of,
)
from remuda.compute.instances.status import can_rebuild, is_rebuild_due, keeps_running
from remuda.compute.kinds import INSTANCE, AppliedSpec, ComputeInstance
from remuda.compute.plans.diff import PlannedInstance, changed_fields, with_fields
from remuda.compute.plans.fields import FIELDS, PlanSide
from remuda.compute.plans.plan import plan_update, quota_blockers
from remuda.compute.plans.schema import BlockerRead, PlanRead
from remuda.compute.policies import protection_of
from remuda.compute.ports import RegionClient
from remuda.http.responses import OtherResponse
from remuda.kernel.conditions import find_condition
from remuda.kernel.errors import InsufficientCapacity, Invalid, PlanChanged, PlanRequired
from remuda.kernel.fields import common_fields
from remuda.kernel.locks import KeyedLock
from remuda.quota.lifecycle import project_ref
from remuda.quota.lock import require_unlocked
from remuda.quota.sagas import run_update
from remuda.reconcile.status import AVAILABLE
from remuda.region.images.schema import ImageQuery
from remuda.region.servers.schema import ServerCreate, ServerRead
from remuda.resources.conventions import NAME, network_of, region_of
from remuda.resources.crud import requested_event, retry_on_conflict
from remuda.resources.schema import FlavorRead, ImageRead

_DISRUPTIVE = frozenset(field for field, row in FIELDS.items() if row.step in {"rebuild", "replace"})
"""The fields that change only with a rebuild or replacement, and then together."""
_applied = common_fields(AppliedSpec, InstanceSpecWire, without=("ssh_certificate_authority_id",))


@dataclass(frozen=True, slots=True)
class PlanBaseline:
    """The specification of a server from which an update is planned."""

    server: ServerCreate
    """The desired one, unless region rejected it."""
    can_rebuild: bool = True
    """Whether the same server can be rebuilt."""
    rebuilds: int = 0
    """Number of rebuilds that were requested of the server, as far as it is known."""


async def plan_baseline(region: RegionClient, instance: ComputeInstance, *, replaces_server: bool) -> PlanBaseline:
    """Return the baseline of a plan. Region is called only if it can differ from the desired specification."""
    desired, is_rejected = desired_server(instance), _is_rejected(instance)
    if not is_rejected and not replaces_server:
        return PlanBaseline(desired)
    candidates = classified(instance, await list_tagged(region, instance)).candidates
    if not candidates or is_ambiguous(instance, candidates):
        return PlanBaseline(desired)
    server = candidates[0]
    applied = _applied_to(server, instance) if is_rejected else desired
    return PlanBaseline(applied, can_rebuild(server), server.spec.rebuilds)


def server_before(desired: ServerCreate, applied: ServerCreate, after: ServerCreate) -> ServerCreate:
    """Return the specification to compare an update with: changed fields as applied, the others as desired before."""
    changed = set(changed_fields(desired, after))
    if changed & _DISRUPTIVE:
        changed |= _DISRUPTIVE
    return with_fields(desired, applied, changed)


def _applied_to(server: ServerRead, instance: ComputeInstance) -> ServerCreate:
    """Return the requested specification; if the server keeps running without capacity, the one before it."""
    requested, applied = last_requested(server), instance.status.applied
    if applied is None or not keeps_running(server):
        return requested
    authority = applied.ssh_certificate_authority_id or None
    spec = replace(requested.spec, **_applied(applied), ssh_certificate_authority_id=authority)
    return replace(requested, spec=spec)


def _is_rejected(instance: ComputeInstance) -> bool:
    """Return whether region has rejected the present specification."""
    available = find_condition(instance.status.conditions, AVAILABLE)
    return (
        available is not None
        and available.reason in REJECTION_REASONS
        and available.observed_generation == instance.metadata.generation
    )


_MAY_RUN = {None, "Running"}


@dataclass(frozen=True, slots=True)
class _Offers:
    """Flavors and images of an update; empty if it does not replace the server."""

    flavor_before: FlavorRead | None = None
    image_before: ImageRead | None = None
    flavor: FlavorRead | None = None
    image: ImageRead | None = None


@dataclass(frozen=True, slots=True)
class _ValidUpdate:
    """A validated update."""

    found: ComputeInstance
    changed: ComputeInstance
    plan: PlanRead


@dataclass(frozen=True, slots=True)
class Updates:
    """Updates of the instances of all projects."""

    instances: Instances
    locks: KeyedLock = field(default_factory=KeyedLock)
    """Serializes the updates of one instance, so that concurrent requests do not collide."""

    async def update(
        self, context: Context, instance: str, body: InstanceUpdate, *, dry_run: bool, plan: str | None
    ) -> ComputeInstance | OtherResponse[PlanRead]:
        """Update an instance, or return the plan. `plan` is the hash of the plan that the client agreed to."""
        if dry_run:
            return OtherResponse(await self._plan(context, instance, body))

        async def change() -> ComputeInstance:
            update = await self._validate(context, instance, body)
            await self._check_consent(update, plan)
            return await self._write(context, update, body)

        async with self.locks.acquire(instance):
            return await retry_on_conflict(change)

    async def rebuild(
        self, context: Context, instance: str, *, dry_run: bool, plan: str | None
    ) -> ComputeInstance | OtherResponse[PlanRead]:
        """Rebuild the server of an instance from its image, or return the plan."""
        if dry_run:
            return OtherResponse(await self._plan(context, instance, None))

        async def change() -> ComputeInstance:
            found = await self._find(context, instance)
            if found.spec.rebuilding_operation == context.operation:
                return found  # the same request, whose response was lost
            update = await self._validate(context, instance, None)
            await self._check_consent(update, plan)
            return await self._write_rebuild(context, update)

        async with self.locks.acquire(instance):
            return await retry_on_conflict(change)

    async def repeat_rebuild(
        self, context: Context, instance: str, *, dry_run: bool
    ) -> ComputeInstance | OtherResponse[PlanRead]:
        """Return the present state of an instance that the same request has rebuilt, or the plan as it is now."""
        return (
            OtherResponse(await self._plan(context, instance, None)) if dry_run else await self._find(context, instance)
        )

    async def repeat(
        self, context: Context, instance: str, body: InstanceUpdate, *, dry_run: bool
    ) -> ComputeInstance | OtherResponse[PlanRead]:
        """Return the present state of an instance that the same request has updated, or the plan as it is now."""
        return (
            OtherResponse(await self._plan(context, instance, body)) if dry_run else await self._find(context, instance)
        )

    async def _find(self, context: Context, instance: str) -> ComputeInstance:
        return await self.instances.get_authorized(context, "update", instance)

    async def _plan(self, context: Context, instance: str, body: InstanceUpdate | None) -> PlanRead:
        update = await self._validate(context, instance, body)
        return replace(update.plan, blockers=tuple(await self._blockers(update)))

    async def _validate(self, context: Context, instance: str, requested: InstanceUpdate | None) -> _ValidUpdate:
        """Validate an update, or a rebuild without one."""
        found = await self._find(context, instance)
        self.instances.reject_if_deleting(found)
        await require_unlocked(self.instances.store, found, found.spec.operation)
        self.instances.check_if_match(context, found)
        body = rules.writable_instance(found) if requested is None else requested
        if body.metadata.name != found.metadata.labels[NAME]:
            raise Invalid("metadata.name", "instance names are immutable")
        replaces_server = requested is None or _replaces_server(found, body)
        baseline = await plan_baseline(self.instances.region, found, replaces_server=replaces_server)
        offers = await self._offers(context, found, body, baseline.server if replaces_server else None)
        now, gpus = self.instances.clock.now(), found.spec.gpus
        if requested is None:
            changed = rules.rebuilt_instance(
                found, context.principal, now, operation=context.operation, known=baseline.rebuilds
            )
        else:
            gpus = gpus if offers.flavor is None else gpus_of(offers.flavor)
            changed = rules.changed_instance(found, body, context.principal, now, gpus=gpus)
        region, desired = self.instances.region, desired_server(changed)
        spec = (await region.api.get_region(await region.caller.reading(), region_of(found))).spec
        capabilities = frozenset(spec.features.capabilities)
        charged = charged_gpus(found) if replaces_server else gpus
        server = server_before(desired_server(found), baseline.server, desired)
        before = _side(found, server, offers.flavor_before, offers.image_before, gpus=charged)
        after = _side(changed, desired, offers.flavor, offers.image, gpus=gpus)
        plan = plan_update(subject_of(found), before, after, capabilities, can_rebuild=baseline.can_rebuild)
        return _ValidUpdate(found, changed, plan)

    async def _offers(
        self, context: Context, found: ComputeInstance, body: InstanceUpdate, applied: ServerCreate | None
    ) -> _Offers:
        """Validate an update against region; return flavors and images, if it replaces the server."""
        project, region = project_ref(found), self.instances.region.api
        caller = await self.instances.region.caller.impersonating(context, project.organization, project.project)
        network = await region.get_network(caller, network_of(found))
        check_network(network, project)
        offers = _Offers()
        if applied is not None:
            is_other = body.spec.flavor_id != found.spec.flavor_id
            id_, query = network.status.region_id, ImageQuery(organizations=(project.organization,))
            flavors = await region.list_flavors(caller, id_, fresh=is_other)
            images = await region.list_images(caller, id_, query)
            flavor, image = find_flavor(flavors, body.spec.flavor_id), find_image(images, body.spec.image_id)
            check_fit(flavor, image)
            _check_capacity({found.spec.flavor_id, applied.spec.flavor_id}, flavor)
            flavor_before = next((each for each in flavors if each.metadata.id == applied.spec.flavor_id), None)
            image_before = next((each for each in images if each.metadata.id == applied.spec.image_id), None)
            offers = _Offers(flavor_before, image_before, flavor, image)
        await check_access(region, caller, network, body.spec, self.instances.documents)
        return offers

    async def _blockers(self, update: _ValidUpdate) -> Sequence[BlockerRead]:
        """Return the quota that the ledger would reject; it is called only if the update needs more."""
        if not any(each.delta > 0 for each in update.plan.quota):
            return ()
        free = await self.instances.identity.free_quota(project_ref(update.found))
        return quota_blockers(update.plan.quota, free)

    async def _check_consent(self, update: _ValidUpdate, consent: str | None) -> None:
        """Reject an update whose plan is required or has changed."""
        plan = update.plan
        if consent is not None:
            if plan.steps and plan.hash != consent:
                raise PlanChanged(plan)
        elif plan.is_destructive and (await protection_of(self.instances.store, update.found)).plan:
            raise PlanRequired(plan)

    async def _write(self, context: Context, update: _ValidUpdate, body: InstanceUpdate) -> ComputeInstance:
        found, changed = update.found, update.changed
        changes = [change.message for step in update.plan.steps for change in step.changes]
        event = requested_event(context, INSTANCE, found, "ChangeRequested", plan=update.plan.hash, changes=changes)
        log = [*self.instances.audit(context, found), event]
        if charge_of(changed) == charge_of(found):
            return await self.instances.store.update(changed, log=log)
        now, gpus, operations = self.instances.clock.now(), changed.spec.gpus, self.instances.operations
        await run_update(operations, UPDATE_INSTANCE, context, found, body, now=now, log=log, gpus=gpus)
        return await self.instances.store.get(ComputeInstance, found.name)

    async def _write_rebuild(self, context: Context, update: _ValidUpdate) -> ComputeInstance:
        """Store a rebuild, which uses the same quota as before."""
        found, image, hash_ = update.found, update.changed.spec.image_id, update.plan.hash
        event = requested_event(context, INSTANCE, found, "RebuildRequested", plan=hash_, image=image)
        return await self.instances.store.update(update.changed, log=[*self.instances.audit(context, found), event])


def _replaces_server(found: ComputeInstance, body: InstanceUpdate) -> bool:
    """Return whether an update needs a new server or disk, so that flavor and image must be offered."""
    before, after = found.spec, body.spec
    is_same_authority = before.ssh_certificate_authority_id == (after.ssh_certificate_authority_id or "")
    return not is_same_authority or _applied(before) != _applied(after)


def _check_capacity(own: Collection[str], flavor: FlavorRead) -> None:
    """Reject another flavor without capacity; for the present one, the old server makes capacity."""
    if flavor.metadata.id not in own and flavor.spec.free == 0:
        raise InsufficientCapacity(
            "spec.flavorId",
            f"names {flavor.metadata.name}, for which the region has no capacity now",
            remedy="choose another flavor, or ask again later; nothing was changed",
        )


def subject_of(instance: ComputeInstance) -> PlannedInstance:
    """Return the facts about an instance that a plan shows."""
    status = instance.status
    return PlannedInstance(
        id=instance.name,
        uid=instance.uid,
        name=instance.metadata.labels[NAME],
        private_ip=status.private_ip,
        public_ip=status.public_ip,
        mac_address=status.mac_address,
        is_running=rules.shown_power(instance) in _MAY_RUN,
        is_rebuilding=is_rebuild_due(instance),
    )


def _side(
    instance: ComputeInstance, server: ServerCreate, flavor: FlavorRead | None, image: ImageRead | None, *, gpus: int
) -> PlanSide:
    return PlanSide(
        server=server,
        writable=rules.writable_instance(instance),
        protection=instance.spec.protection,
        tags=tuple((tag.name, tag.value) for tag in instance.spec.tags),
        rebuilds=instance.spec.rebuilds,
        gpus=gpus,
        flavor=flavor,
        image=image,
    )
