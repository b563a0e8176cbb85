"""What can be made of a head, as pure functions: each takes the head as it is and returns it as it is to be.

Whatever is added to the totals is checked against the limits here, in one place, so that a head never comes to hold
more than it may. What is over a limit already, because an operator lowered the default, may shrink and stay, not grow.

Arithmetic on how much of each kind. Results are in the order of kinds, and nothing of a kind is left out.
"""

from collections.abc import Callable, Iterable, Mapping

from msgspec.structs import replace

from remuda.identity.kinds.quotas import (
    Allocation,
    Amount,
    Amounts,
    Intent,
    Limits,
    ProjectLedger,
    Quota,
    QuotaMetadataSpec,
    QuotaSpec,
)
from remuda.kernel.errors import AlreadyExists, Conflict, Forbidden, NotFound, OwnerRejected, RemudaError, Unavailable
from remuda.resources.conventions import PROJECT

MOST = 2**53 - 1
"""The largest number that every reader of JSON takes for what it is: more of anything cannot be asked for."""


def used(amount: Amount) -> int:
    """Return what counts against a limit: what is in use, and what may come to be."""
    return amount.committed + amount.reserved


def of_kind(amounts: Amounts, kind: str) -> Amount:
    """Return how much there is of one kind."""
    return next((amount for amount in amounts if amount.kind == kind), Amount(kind=kind))


def plus(one: Amounts, other: Amounts) -> Amounts:
    """Return the sum."""
    return _joined(one, other, lambda a, b: _amount(a.kind, a.committed + b.committed, a.reserved + b.reserved))


def minus(one: Amounts, other: Amounts) -> Amounts:
    """Return the difference. It may be negative, where somebody else wrote: whoever compares has to see that."""
    return _joined(one, other, lambda a, b: _amount(a.kind, a.committed - b.committed, a.reserved - b.reserved))


def larger(one: Amounts, other: Amounts) -> Amounts:
    """Return of each kind whichever counts for more, and if both count the same, that of `other`.

    Not the larger of each number: what is turned from reserved into committed would count twice meanwhile.
    """
    return _joined(one, other, lambda a, b: b if used(b) >= used(a) else a)


def _amount(kind: str, committed: int, reserved: int) -> Amount:
    return Amount(kind=kind, committed=committed, reserved=reserved)


def _joined(one: Amounts, other: Amounts, join: Callable[[Amount, Amount], Amount]) -> Amounts:
    ours, theirs = ({amount.kind: amount for amount in amounts} for amounts in (one, other))
    joined = [
        join(ours.get(kind, Amount(kind=kind)), theirs.get(kind, Amount(kind=kind)))
        for kind in sorted(ours.keys() | theirs.keys())
    ]
    return tuple(amount for amount in joined if amount.committed or amount.reserved)


Catalogue = Mapping[str, QuotaMetadataSpec]
"""The kinds of quota that there are, by name."""

MOST_INTENTS = 1000
"""So many can be open in one head, to keep the document within what every backend stores."""


class OwnerHolds(AlreadyExists):
    """Raised when what asks for an allocation has one, or is about to; use that one."""

    def __init__(self, owner: str) -> None:
        super().__init__("Allocation", owner)
        RemudaError.__init__(self, f"{owner} has an allocation, or is getting one: change or release that one.")


class OrganizationGoes(OwnerRejected):
    """Raised when something is to be held in an organization that is being deleted; ask in another one."""

    def __init__(self, organization: str) -> None:
        super().__init__("Allocation", "", owner=f"Organization {organization}")
        RemudaError.__init__(
            self,
            f"The organization {organization} is being deleted, so nothing new can be held in it: "
            "ask for it in another organization.",
        )


def find_intent(spec: QuotaSpec, allocation: str) -> Intent | None:
    """Return what is under way with a row."""
    for intent in spec.intents:
        if intent.allocation == allocation:
            return intent
    return None


def project_ledger(spec: QuotaSpec, project: str) -> ProjectLedger:
    """Return what a head says of a project."""
    return next((each for each in spec.projects if each.project == project), ProjectLedger(project=project))


def limits_of(quotas: Limits, catalogue: Catalogue) -> dict[str, int]:
    """Return how much an organization may have: of each kind that there is, its own limit or else the default."""
    own = {limit.kind: limit.quantity for limit in quotas}
    return {kind: own.get(kind, metadata.default) for kind, metadata in catalogue.items()}


def charged(spec: QuotaSpec, intent: Intent, counted: Amounts, catalogue: Catalogue) -> QuotaSpec:
    """Note an intent, and hold what it holds where so far `counted` is counted for its row.

    Raises Forbidden if that is more than there may be, OwnerHolds if another row is under way for the same owner, and
    NotFound if the project is closed.
    """
    if project_ledger(spec, intent.project).is_closed:
        raise NotFound("Project", intent.project)
    others = [each for each in spec.intents if each.allocation != intent.allocation]
    if intent.owner in [each.owner for each in others]:
        raise OwnerHolds(intent.owner)
    if len(others) >= MOST_INTENTS:
        raise Unavailable(f"{len(others)} allocations of the organization wait to be confirmed: try again in a moment.")
    moved = _moved(spec, intent.project, more=intent.holds, less=counted)
    check_room(spec, moved, catalogue, project=intent.project)
    return replace(moved, intents=(*others, intent))


def noted(spec: QuotaSpec, intent: Intent) -> QuotaSpec:
    """Note an intent, in place of another about its row, while what is counted stays the same."""
    others = [each for each in spec.intents if each.allocation != intent.allocation]
    return replace(spec, intents=(*others, intent))


def check_stays(head: Quota) -> None:
    """Raise OrganizationGoes if a head goes, with its organization."""
    if head.is_deleting:
        raise OrganizationGoes(head.name)


def closed(spec: QuotaSpec, project: str) -> QuotaSpec:
    """Let nothing be held in a project any more. Raises Conflict while something is being taken or changed in it."""
    if any(intent.project == project and intent.action != "release" for intent in spec.intents):
        raise Conflict("Project", project)
    return _with_ledger(spec, replace(project_ledger(spec, project), is_closed=True))


def forgotten(spec: QuotaSpec, project: str) -> QuotaSpec:
    """Drop what a head says of a project that is gone, unless something is held in it, which cannot be."""
    if project_ledger(spec, project).totals:
        return spec
    return replace(spec, projects=tuple(each for each in spec.projects if each.project != project))


def settled(spec: QuotaSpec, intent: Intent, left: Amounts) -> QuotaSpec:
    """Drop an intent, after which `left` is counted for its row. If it is not there any more, somebody else did."""
    found = find_intent(spec, intent.allocation)
    if found != intent:
        return spec
    moved = _moved(spec, intent.project, more=left, less=intent.holds)
    return replace(moved, intents=tuple([each for each in spec.intents if each is not found]))


def with_limits(spec: QuotaSpec, quotas: Limits, catalogue: Catalogue) -> QuotaSpec:
    """Replace an organization's limits; raises Forbidden if one is lowered below what is used."""
    limited = replace(spec, quotas=quotas)
    check_room(spec, limited, catalogue)
    return limited


def with_project_limits(spec: QuotaSpec, project: str, quotas: Limits, catalogue: Catalogue) -> QuotaSpec:
    """Replace a project's limits, likewise."""
    limited = _with_ledger(spec, replace(project_ledger(spec, project), quotas=quotas))
    check_room(spec, limited, catalogue, project=project)
    return limited


def check_room(before: QuotaSpec, after: QuotaSpec, catalogue: Catalogue, *, project: str | None = None) -> None:
    """Raise Forbidden if a total grows over its limit, or a limit shrinks below its total; of several, the first.

    `project` is the one of which the head says something else than before.
    """
    was, now = limits_of(before.quotas, catalogue), limits_of(after.quotas, catalogue)
    _check(before.totals, after.totals, was, now, what="quota")
    if project is not None:
        old, new = project_ledger(before, project), project_ledger(after, project)
        was, now = ({limit.kind: limit.quantity for limit in each.quotas} for each in (old, new))
        _check(old.totals, new.totals, was, now, what="project quota")


def _check(old: Amounts, new: Amounts, was: Mapping[str, int], now: Mapping[str, int], *, what: str) -> None:
    for amount in new:
        total, limit = used(amount), now.get(amount.kind, MOST)
        is_worse = total > used(of_kind(old, amount.kind)) or limit < was.get(amount.kind, MOST)
        if total > limit and is_worse:
            raise Forbidden(f"total {amount.kind} allocation of {total} would exceed {what} limit of {limit}")


class Counted:
    """What the totals of a head must be, of the organization and of each project, by its intents and its living rows.

    Rows are counted one by one, since an organization may have very many.
    """

    def __init__(self, spec: QuotaSpec) -> None:
        self._under_way = {intent.allocation for intent in spec.intents}
        self._sums: dict[tuple[str, str], tuple[int, int]] = {}
        for intent in spec.intents:
            self._add(intent.project, intent.holds)

    def count(self, row: Allocation) -> None:
        if row.spec.life != "released" and row.name not in self._under_way:
            self._add(row.metadata.labels[PROJECT], row.spec.allocations)

    def totals(self) -> tuple[Amounts, Mapping[str, Amounts]]:
        whole: Amounts = ()
        projects: dict[str, Amounts] = {}
        for (project, kind), (committed, reserved) in self._sums.items():
            amounts = (Amount(kind=kind, committed=committed, reserved=reserved),)
            whole = plus(whole, amounts)
            projects[project] = plus(projects.get(project, ()), amounts)
        return whole, {project: amounts for project, amounts in projects.items() if amounts}

    def _add(self, project: str, amounts: Amounts) -> None:
        for amount in amounts:
            committed, reserved = self._sums.get((project, amount.kind), (0, 0))
            self._sums[project, amount.kind] = committed + amount.committed, reserved + amount.reserved


def expected_totals(spec: QuotaSpec, rows: Iterable[Allocation]) -> tuple[Amounts, Mapping[str, Amounts]]:
    """Return what the totals must be by the intents and all living rows, which are few."""
    counted = Counted(spec)
    for row in rows:
        counted.count(row)
    return counted.totals()


def with_totals(spec: QuotaSpec, whole: Amounts, projects: Mapping[str, Amounts]) -> QuotaSpec:
    """Return a head with these totals, whatever it said."""
    named = [each.project for each in spec.projects] + sorted(projects)
    rebuilt = replace(spec, totals=whole)
    for project in dict.fromkeys(named):
        rebuilt = _with_ledger(rebuilt, replace(project_ledger(spec, project), totals=projects.get(project, ())))
    return rebuilt


def _moved(spec: QuotaSpec, project: str, *, more: Amounts, less: Amounts) -> QuotaSpec:
    ledger = project_ledger(spec, project)
    counted = replace(ledger, totals=minus(plus(ledger.totals, more), less))
    return _with_ledger(replace(spec, totals=minus(plus(spec.totals, more), less)), counted)


def _with_ledger(spec: QuotaSpec, ledger: ProjectLedger) -> QuotaSpec:
    """Return a head with what it is to say of a project; one that says nothing is left out."""
    kept = tuple(each for each in spec.projects if each.project != ledger.project)
    is_empty = not ledger.quotas and not ledger.totals and not ledger.is_closed
    return replace(spec, projects=kept if is_empty else (*kept, ledger))
