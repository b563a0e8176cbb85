"""Pure transitions of a quota record, and arithmetic on amounts.

Every addition to the totals is checked against the limits here. An amount that exceeds its limit already, because an
operator lowered the default, may stay or shrink, but not grow.

Amounts are sorted by kind, and zero amounts are left out.
"""

from collections.abc import Callable, Iterable, Mapping

from msgspec.structs import replace

from remuda.identity.kinds.quotas import (
    Allocation,
    Amount,
    Amounts,
    Intent,
    Limits,
    ProjectTotals,
    Quota,
    QuotaMetadataSpec,
    QuotaSpec,
)
from remuda.identity.quotas.schema import MAX_QUANTITY
from remuda.kernel.errors import AlreadyExists, Conflict, Forbidden, NotFound, OwnerRejected, RemudaError, Unavailable
from remuda.resources.conventions import PROJECT


def used(amount: Amount) -> int:
    """Return what counts against a limit: committed and reserved."""
    return amount.committed + amount.reserved


def of_kind(amounts: Amounts, kind: str) -> Amount:
    return next((amount for amount in amounts if amount.kind == kind), Amount(kind=kind))


def plus(one: Amounts, other: Amounts) -> Amounts:
    return _merged(one, other, lambda a, b: _amount(a.kind, a.committed + b.committed, a.reserved + b.reserved))


def minus(one: Amounts, other: Amounts) -> Amounts:
    """Return the difference, which may be negative if the record is wrong."""
    return _merged(one, other, lambda a, b: _amount(a.kind, a.committed - b.committed, a.reserved - b.reserved))


def larger(one: Amounts, other: Amounts) -> Amounts:
    """Return, for each kind, the amount that counts for more, and that of `other` if both count the same.

    Not the maximum of each number: what changes from reserved to committed would count twice.
    """
    return _merged(one, other, lambda a, b: b if used(b) >= used(a) else a)


def _amount(kind: str, committed: int, reserved: int) -> Amount:
    return Amount(kind=kind, committed=committed, reserved=reserved)


def _merged(one: Amounts, other: Amounts, merge: Callable[[Amount, Amount], Amount]) -> Amounts:
    first, second = ({amount.kind: amount for amount in amounts} for amounts in (one, other))
    merged = [
        merge(first.get(kind) or Amount(kind=kind), second.get(kind) or Amount(kind=kind))
        for kind in sorted(first.keys() | second.keys())
    ]
    return tuple(amount for amount in merged if amount.committed or amount.reserved)


Catalogue = Mapping[str, QuotaMetadataSpec]

MAX_INTENTS = 1000
"""Limit of the open intents of a quota record, so that every backend can store it."""


class OwnerHasAllocation(AlreadyExists):
    """Raised when the owner of a requested allocation has one, or another request for one is open."""

    def __init__(self, owner: str) -> None:
        super().__init__("Allocation", owner)
        RemudaError.__init__(self, f"{owner} already has an allocation: update or release it.")


class OrganizationDeleting(OwnerRejected):
    """Raised when quota is requested in an organization that is being deleted."""

    def __init__(self, organization: str) -> None:
        super().__init__("Allocation", "", owner=f"Organization {organization}")
        RemudaError.__init__(
            self,
            f"The organization {organization} is being deleted and accepts no allocations: use another organization.",
        )


def find_intent(spec: QuotaSpec, allocation: str) -> Intent | None:
    for intent in spec.intents:
        if intent.allocation == allocation:
            return intent
    return None


def project_totals(spec: QuotaSpec, project: str) -> ProjectTotals:
    return next((each for each in spec.projects if each.project == project), ProjectTotals(project=project))


def limits_in(spec: QuotaSpec, project: str | None) -> Limits:
    """Return the own limits of the organization, or of a project."""
    return spec.quotas if project is None else project_totals(spec, project).quotas


def limits_of(quotas: Limits, catalogue: Catalogue) -> dict[str, int]:
    """Return the limit of each kind in the catalogue: the organization's own, or else the default."""
    own = {limit.kind: limit.quantity for limit in quotas}
    return {kind: own.get(kind, metadata.default) for kind, metadata in catalogue.items()}


def with_reservation(spec: QuotaSpec, intent: Intent, counted: Amounts, catalogue: Catalogue) -> QuotaSpec:
    """Add an intent and reserve its amounts in place of `counted`, which the totals have for its allocation so far.

    Raises Forbidden if that exceeds a limit, OwnerHasAllocation if another allocation of the same owner has an open
    intent, and NotFound if the project is closed.
    """
    if project_totals(spec, intent.project).is_closed:
        raise NotFound("Project", intent.project)
    others = [each for each in spec.intents if each.allocation != intent.allocation]
    if intent.owner in [each.owner for each in others]:
        raise OwnerHasAllocation(intent.owner)
    if len(others) >= MAX_INTENTS:
        raise Unavailable(f"{len(others)} changes of the organization's quota are in progress: try again later.")
    moved = _with_totals_moved(spec, intent.project, more=intent.amounts, less=counted)
    check_limits(spec, moved, catalogue, project=intent.project)
    return replace(moved, intents=(*others, intent))


def with_intent(spec: QuotaSpec, intent: Intent) -> QuotaSpec:
    """Add an intent, or replace that of the same allocation, without a change of the totals."""
    others = [each for each in spec.intents if each.allocation != intent.allocation]
    return replace(spec, intents=(*others, intent))


def check_not_deleting(record: Quota) -> None:
    if record.is_deleting:
        raise OrganizationDeleting(record.name)


def closed(spec: QuotaSpec, project: str) -> QuotaSpec:
    """Close a project for new allocations. Raises Conflict while a reservation or an update is open in it."""
    if any(intent.project == project and intent.action != "release" for intent in spec.intents):
        raise Conflict("Project", project)
    return _with_totals_of(spec, replace(project_totals(spec, project), is_closed=True))


def without_project(spec: QuotaSpec, project: str) -> QuotaSpec:
    """Remove the entry of a deleted project, unless something is counted in it."""
    if project_totals(spec, project).totals:
        return spec
    return replace(spec, projects=tuple(each for each in spec.projects if each.project != project))


def with_intent_completed(spec: QuotaSpec, intent: Intent, left: Amounts) -> QuotaSpec:
    """Remove an intent, and count `left` for its allocation from now on. Do nothing if the intent is gone."""
    found = find_intent(spec, intent.allocation)
    if found != intent:
        return spec
    moved = _with_totals_moved(spec, intent.project, more=left, less=intent.amounts)
    return replace(moved, intents=tuple([each for each in spec.intents if each is not found]))


def with_limits(spec: QuotaSpec, project: str | None, quotas: Limits, catalogue: Catalogue) -> QuotaSpec:
    """Replace the limits of the organization or a project. Raises Forbidden if one is lowered below its usage."""
    if project is None:
        limited = replace(spec, quotas=quotas)
    else:
        limited = _with_totals_of(spec, replace(project_totals(spec, project), quotas=quotas))
    check_limits(spec, limited, catalogue, project=project)
    return limited


def check_limits(before: QuotaSpec, after: QuotaSpec, catalogue: Catalogue, *, project: str | None = None) -> None:
    """Raise Forbidden if a total grows above its limit, or a limit shrinks below its total."""
    old_limits = limits_of(before.quotas, catalogue)
    new_limits = old_limits if after.quotas is before.quotas else limits_of(after.quotas, catalogue)
    _check(before.totals, after.totals, old_limits, new_limits, what="quota")
    if project is not None:
        old, new = project_totals(before, project), project_totals(after, project)
        old_limits, new_limits = ({limit.kind: limit.quantity for limit in each.quotas} for each in (old, new))
        _check(old.totals, new.totals, old_limits, new_limits, what="project quota")


def _check(
    old: Amounts, new: Amounts, old_limits: Mapping[str, int], new_limits: Mapping[str, int], *, what: str
) -> None:
    for amount in new:
        total, limit = used(amount), new_limits.get(amount.kind, MAX_QUANTITY)
        is_change = total > used(of_kind(old, amount.kind)) or limit < old_limits.get(amount.kind, MAX_QUANTITY)
        if total > limit and is_change and total <= used(of_kind(old, amount.kind)):
            raise Forbidden(
                f"{what} of {limit} {amount.kind} is below the use of {total}: "
                f"set at least {total}, or delete something that uses it"
            )
        if total > limit and is_change:
            raise Forbidden(f"total {amount.kind} allocation of {total} would exceed {what} limit of {limit}")


class ExpectedTotals:
    """Totals of an organization and its projects, added up from intents and active allocations one by one."""

    def __init__(self, spec: QuotaSpec) -> None:
        self._pending = {intent.allocation for intent in spec.intents}
        self._sums: dict[tuple[str, str], tuple[int, int]] = {}
        for intent in spec.intents:
            self._add(intent.project, intent.amounts)

    def add(self, allocation: Allocation) -> None:
        if allocation.spec.state != "released" and allocation.name not in self._pending:
            self._add(allocation.metadata.labels[PROJECT], allocation.spec.allocations)

    def totals(self) -> tuple[Amounts, Mapping[str, Amounts]]:
        total: Amounts = ()
        projects: dict[str, Amounts] = {}
        for (project, kind), (committed, reserved) in self._sums.items():
            amounts = (Amount(kind=kind, committed=committed, reserved=reserved),)
            total = plus(total, amounts)
            projects[project] = plus(projects.get(project, ()), amounts)
        return total, {project: amounts for project, amounts in projects.items() if amounts}

    def _add(self, project: str, amounts: Amounts) -> None:
        for amount in amounts:
            committed, reserved = self._sums.get((project, amount.kind), (0, 0))
            self._sums[project, amount.kind] = committed + amount.committed, reserved + amount.reserved


def expected_totals(spec: QuotaSpec, allocations: Iterable[Allocation]) -> tuple[Amounts, Mapping[str, Amounts]]:
    """Return the totals that follow from the intents and all active allocations."""
    counted = ExpectedTotals(spec)
    for allocation in allocations:
        counted.add(allocation)
    return counted.totals()


def with_totals(spec: QuotaSpec, total: Amounts, projects: Mapping[str, Amounts]) -> QuotaSpec:
    named = [each.project for each in spec.projects] + sorted(projects)
    rebuilt = replace(spec, totals=total)
    for project in dict.fromkeys(named):
        rebuilt = _with_totals_of(rebuilt, replace(project_totals(spec, project), totals=projects.get(project, ())))
    return rebuilt


def _with_totals_moved(spec: QuotaSpec, project: str, *, more: Amounts, less: Amounts) -> QuotaSpec:
    ledger = project_totals(spec, project)
    counted = replace(ledger, totals=minus(plus(ledger.totals, more), less))
    return _with_totals_of(replace(spec, totals=minus(plus(spec.totals, more), less)), counted)


def _with_totals_of(spec: QuotaSpec, ledger: ProjectTotals) -> QuotaSpec:
    """Return the record with this project entry, or without it if the entry is empty."""
    others = tuple(each for each in spec.projects if each.project != ledger.project)
    is_empty = not ledger.quotas and not ledger.totals and not ledger.is_closed
    return replace(spec, projects=others if is_empty else (*others, ledger))
