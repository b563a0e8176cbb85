"""Quota in the lifecycle of an object that an operation creates.

The create operation reserves the quota, the controller confirms it before it provisions the object, and releases it
after it has deprovisioned the object, before the finalizer is removed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic

from msgspec.structs import replace

from remuda.access.principal import Context, Principal
from remuda.kernel.clock import Clock
from remuda.kernel.conditions import Condition, find_true, set_condition
from remuda.kernel.errors import Forbidden, NotFound, Unavailable
from remuda.quota.lock import is_locked, is_operation_open, operation_phase
from remuda.quota.ports import Charge, ProjectRef, QuotaLedger, StaleTokenError, payer_principal
from remuda.reconcile.lifecycle import LifecycleResult, Outcome
from remuda.reconcile.results import RECHECK_S, Blocked, Done, ReconcileContext, Requeue, Result
from remuda.reconcile.status import conditions_of
from remuda.resources.conventions import PAYING_ORGANIZATION, PAYING_PROJECT, PROJECT, organization_of, project_of
from remuda.store.contract import Store
from remuda.store.objects import Resource, ResourceT

QUOTA_CONFIRMED = "QuotaConfirmed"

OPERATION_OPEN = Blocked("OperationRunning", "its create operation is still running", report_after_s=2.0)
"""The result for an object whose create operation is open. Controllers see every new object before that ends."""
UPDATE_OPEN = Blocked("OperationRunning", "the update operation is still running", report_after_s=2.0)


def created_delay_s(resource: Resource) -> float:
    """Return how long the creation of an object by an operation need not be reconciled: its end is reported.

    Until then there is nothing to do, and afterwards it has to be reported that the operation is still running.
    """
    return OPERATION_OPEN.report_after_s if _create_operation(resource) else 0.0


def project_ref(resource: Resource) -> ProjectRef:
    return ProjectRef(organization_of(resource), project_of(resource))


def payer_for(context: Context, resource: Resource) -> Principal:
    """Return the caller as the payer of a new object in the project of another one."""
    return payer_principal(context.principal, project_ref(resource))


def payer_of(resource: Resource) -> ProjectRef:
    """Return the payer of an object: the one in its labels, or its own project."""
    found = resource.metadata.labels
    organization = found.get(PAYING_ORGANIZATION)
    if organization is None:
        return project_ref(resource)
    return ProjectRef(organization, found.get(PAYING_PROJECT, found[PROJECT]))


def is_quota_confirmed(resource: Resource) -> bool:
    return find_true(conditions_of(resource), QUOTA_CONFIRMED) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaHooks(Generic[ResourceT]):
    """Lifecycle hooks of objects that an operation creates.

    An object is provisioned when its create operation is done, no operation locks it, and its quota is confirmed. It is
    deprovisioned when no operation is open; then its quota is released, and last its reference to its project.
    """

    store: Store
    clock: Clock
    ledger: QuotaLedger
    charge: Callable[[ResourceT], Charge] | None = None
    """Returns the quota of an object; None if the kind uses none."""
    confirms_quota: bool = True
    """Whether the quota is confirmed before an object is provisioned; otherwise its controller confirms it."""
    reference: Callable[[ResourceT], str] | None = None
    """Returns the reference by which an object keeps its project; None if the kind has none."""

    async def before_provision(
        self, resource: ResourceT, context: ReconcileContext
    ) -> LifecycleResult[ResourceT] | None:
        phase = await operation_phase(self.store, _create_operation(resource))
        if phase == "undone":
            return await self._delete_rolled_back(resource, context)
        if phase != "done":
            return OPERATION_OPEN
        if await is_locked(self.store, resource):
            return UPDATE_OPEN
        if self.charge is None or not self.confirms_quota or is_quota_confirmed(resource):
            return None
        blocked = await confirm_quota(self.ledger, self.charge(resource))
        return blocked or Outcome(Requeue(0, message="being created"), with_quota_confirmed(resource, self.clock))

    async def before_deprovision(self, resource: ResourceT, _: ReconcileContext) -> Result | None:
        if await is_operation_open(self.store, _create_operation(resource)):
            return OPERATION_OPEN
        return UPDATE_OPEN if await is_locked(self.store, resource) else None

    async def after_deprovision(self, resource: ResourceT) -> None:
        if self.charge is not None:
            await self.ledger.release_and_fence(self.charge(resource))
        if self.reference is not None:
            await self.ledger.remove_reference(project_ref(resource), self.reference(resource))

    async def _delete_rolled_back(self, resource: ResourceT, context: ReconcileContext) -> LifecycleResult[ResourceT]:
        log = [context.event(resource, "CreateRolledBack")]
        try:
            deleted = await self.store.delete(type(resource), resource.name, uid=resource.uid, log=log)
        except NotFound:
            return Done()  # it was removed meanwhile
        return Outcome(Requeue(0, "Deprovisioning", "its create operation was rolled back"), deleted or resource)


def _create_operation(resource: Resource) -> str:
    return resource.spec.operation  # type: ignore[attr-defined,no-any-return]  # every kind that operations create has it


async def reserve(ledger: QuotaLedger, charge: Charge, payer: Principal) -> None:
    """Reserve quota for a new resource. After a release of the operation's earlier resource it must be retried."""
    try:
        await ledger.allocate(charge, payer)
    except StaleTokenError:
        raise Unavailable("The quota reservation of this operation has expired. Retry the request.") from None


async def confirm_quota(ledger: QuotaLedger, charge: Charge) -> Result | None:
    """Confirm the quota of an object, or reserve it again; return the result that blocks it, or None."""
    try:
        if not await ledger.confirm(charge):
            await ledger.allocate(charge)
            if not await ledger.confirm(charge):
                return Requeue(RECHECK_S, message="its quota is being reserved")
    except Forbidden:
        return Blocked("QuotaExceeded", "the quota of its organization or project is exhausted")
    return None


def with_quota_confirmed(resource: ResourceT, clock: Clock) -> ResourceT:
    confirmed = Condition(
        type=QUOTA_CONFIRMED,
        status="True",
        reason="Confirmed",
        message="its quota is confirmed",
        last_transition_time=clock.now().replace(microsecond=0),
    )
    status: Any = resource.status  # type: ignore[attr-defined]  # every kind with a controller has one
    changed = replace(status, conditions=set_condition(status.conditions, confirmed))
    return replace(resource, status=changed)
