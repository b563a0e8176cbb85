"""What quotas and allocations may look like, and how they are read: pure functions between the wire and the store."""

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from difflib import get_close_matches
from itertools import pairwise

from msgspec.structs import replace

from remuda.access.principal import Principal
from remuda.http.responses import etag_view
from remuda.identity.kinds.quotas import Allocation, AllocationSpec, Amount, Amounts, Life, Limit, Limits, QuotaSpec
from remuda.identity.quotas import schema as wire
from remuda.identity.quotas.allocation_state import turned
from remuda.identity.quotas.quota_state import MOST, Catalogue, limits_of, of_kind, project_ledger, used
from remuda.kernel.errors import Invalid, PreconditionFailed
from remuda.resources.conventions import ORGANIZATION, PROJECT, RESOURCE_ID, RESOURCE_KIND
from remuda.resources.metadata import (
    changed_metadata,
    check_tags,
    new_metadata,
    read_project_metadata,
    stored_tags,
    writable_metadata,
)
from remuda.resources.tags import own_tags, replaced_tags

_MOST_KINDS = 50
_LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_LABEL_REMEDY = "use 1 to 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends"


def check_quotas(wanted: wire.QuotasWrite, catalogue: Catalogue) -> None:
    """Refuse limits of what nobody knows, and numbers that are none."""
    _check_once("quotas", [quota.kind for quota in wanted.quotas])
    for place, quota in enumerate(wanted.quotas):
        if quota.kind not in catalogue:
            near = get_close_matches(quota.kind, catalogue, n=1, cutoff=0.0)
            remedy = f"did you mean {near[0]}" if near else "ask the operator to describe it first"
            raise Invalid(f"quotas[{place}].kind", "is not a kind of quota", remedy=remedy)
        _check_number(f"quotas[{place}].quantity", quota.quantity)


def check_allocation(wanted: wire.AllocationWrite) -> None:
    """Refuse what cannot be an allocation."""
    check_tags(wanted.metadata.tags)
    spec = wanted.spec
    _check_label("spec.kind", spec.kind)
    _check_label("spec.id", spec.id)
    if len(spec.allocations) > _MOST_KINDS:
        raise Invalid("spec.allocations", f"has more than {_MOST_KINDS} kinds", remedy="ask for fewer")
    _check_once("spec.allocations", [amount.kind for amount in spec.allocations])
    for place, amount in enumerate(spec.allocations):
        _check_label(f"spec.allocations[{place}].kind", amount.kind)
        _check_number(f"spec.allocations[{place}].committed", amount.committed)
        _check_number(f"spec.allocations[{place}].reserved", amount.reserved)


def check_same_owner(row: Allocation, wanted: wire.AllocationWrite) -> None:
    """Refuse to make an allocation another one's: what it is for is who it is."""
    labels = row.metadata.labels
    for field, stored, asked in (
        ("spec.kind", labels[RESOURCE_KIND], wanted.spec.kind),
        ("spec.id", labels[RESOURCE_ID], wanted.spec.id),
    ):
        if stored != asked:
            raise Invalid(field, f"is {stored} and cannot change", remedy="release it, and ask for another")


def check_period(query: wire.UsageQuery) -> None:
    """Refuse a time that is none."""
    if query.at is not None and (query.since is not None or query.until is not None):
        raise Invalid("at", "is given beside since or until", remedy="ask for a moment or for a period")
    if query.since is not None and query.until is not None and query.since >= query.until:
        raise Invalid("until", "is not after since", remedy="let the period end after it begins")


def _check_once(field: str, kinds: Sequence[str]) -> None:
    for one, other in pairwise(sorted(kinds)):
        if one == other:
            raise Invalid(field, f"has {one} twice", remedy="name each kind once")


def _check_label(field: str, text: str) -> None:
    if not _LABEL.fullmatch(text):
        raise Invalid(field, "is not a name", remedy=_LABEL_REMEDY)


def _check_number(field: str, number: int) -> None:
    if number < 0:
        raise Invalid(field, "is negative", remedy="use zero or more")
    if number > MOST:
        raise Invalid(field, "is too large", remedy=f"use at most {MOST}")


def stored_limits(wanted: wire.QuotasWrite) -> Limits:
    ordered = sorted(wanted.quotas, key=lambda quota: quota.kind)
    return tuple(Limit(kind=quota.kind, quantity=quota.quantity) for quota in ordered)


def writable_limits(limits: Limits) -> wire.QuotasWrite:
    """Return limits as a client would write them."""
    return wire.QuotasWrite(quotas=tuple(wire.QuotaWrite(kind=limit.kind, quantity=limit.quantity) for limit in limits))


def read_quotas(spec: QuotaSpec, catalogue: Catalogue, *, only: Iterable[str] | None = None) -> wire.QuotasRead:
    """Return what an organization may have and has, of every kind or of some."""
    limits = limits_of(spec.quotas, catalogue)
    return _read(catalogue, lambda kind: limits[kind], spec.totals, only)


def read_project_quotas(
    spec: QuotaSpec, project: str, catalogue: Catalogue, *, only: Iterable[str] | None = None
) -> wire.QuotasRead:
    """Return what a project may have and has. Where it has no limit of its own, its organization's is shown.

    Free is what both have left: a project cannot take what its organization has no more.
    """
    ledger, shared = project_ledger(spec, project), limits_of(spec.quotas, catalogue)
    limits = shared | {limit.kind: limit.quantity for limit in ledger.quotas}
    read = _read(catalogue, lambda kind: limits[kind], ledger.totals, only)
    return wire.QuotasRead(
        quotas=tuple(
            replace(quota, free=min(quota.free, shared[quota.kind] - used(of_kind(spec.totals, quota.kind))))
            for quota in read.quotas
        )
    )


def _read(
    catalogue: Catalogue, limit_of: Callable[[str], int], totals: Amounts, only: Iterable[str] | None
) -> wire.QuotasRead:
    kinds = sorted(catalogue if only is None else set(only) & catalogue.keys())
    return wire.QuotasRead(quotas=tuple(_read_one(kind, limit_of(kind), totals, catalogue) for kind in kinds))


def _read_one(kind: str, limit: int, totals: Amounts, catalogue: Catalogue) -> wire.QuotaRead:
    metadata, amount = catalogue[kind], of_kind(totals, kind)
    return wire.QuotaRead(
        kind=kind,
        quantity=limit,
        used=used(amount),
        free=limit - used(amount),
        committed=amount.committed,
        reserved=amount.reserved,
        display_name=metadata.display_name,
        description=metadata.description,
        default=metadata.default,
        format=metadata.format,
    )


def new_allocation(
    name: str, organization: str, project: str, wanted: wire.AllocationWrite, who: Principal, *, life: Life
) -> Allocation:
    """Return a new row, before the ledger has made it one of its own."""
    labels = {
        ORGANIZATION: organization,
        PROJECT: project,
        RESOURCE_KIND: wanted.spec.kind,
        RESOURCE_ID: wanted.spec.id,
    }
    tags = own_tags(stored_tags(wanted.metadata), who)
    spec = AllocationSpec(allocations=_amounts(wanted), life=life, tags=tags)
    return Allocation(metadata=new_metadata(name, wanted.metadata, who, labels=labels), spec=spec)


def check_turn(row: Allocation, turn: int | None) -> None:
    """Refuse what was made up before the last turn."""
    if turn is not None and turn < row.spec.turn:
        raise PreconditionFailed("Allocation", row.name, precondition="turn")


def changed_allocation(
    row: Allocation, wanted: wire.AllocationWrite, who: Principal, now: datetime, *, turn: int | None = None
) -> Allocation:
    """Return a row with everything replaced that a client may change, in this turn or a later one."""
    tags = replaced_tags(row.spec.tags, stored_tags(wanted.metadata), who)
    spec = replace(row.spec, allocations=_amounts(wanted), tags=tags)
    metadata = changed_metadata(row.metadata, wanted.metadata, who.subject, now)
    return turned(replace(row, metadata=metadata, spec=spec), turn or 0)


def _amounts(wanted: wire.AllocationWrite) -> Amounts:
    ordered = sorted(wanted.spec.allocations, key=lambda amount: amount.kind)
    return tuple(Amount(kind=each.kind, committed=each.committed, reserved=each.reserved) for each in ordered)


def writable_allocation(row: Allocation) -> wire.AllocationWrite:
    """Return the part of a row that a client may change."""
    return wire.AllocationWrite(metadata=writable_metadata(row.metadata, row.spec.tags), spec=_spec(row))


def _spec(row: Allocation) -> wire.AllocationSpecWire:
    labels = row.metadata.labels
    return wire.AllocationSpecWire(
        kind=labels[RESOURCE_KIND],
        id=labels[RESOURCE_ID],
        allocations=tuple(
            wire.AmountWire(kind=amount.kind, committed=amount.committed, reserved=amount.reserved)
            for amount in row.spec.allocations
        ),
    )


def _read_allocation(row: Allocation) -> wire.AllocationRead:
    spec = row.spec
    return wire.AllocationRead(
        metadata=read_project_metadata(row.metadata, spec.tags),
        spec=_spec(row),
        status=wire.AllocationStatusRead(life=spec.life, started=spec.started, ended=spec.ended),
    )


ALLOCATION_VIEW = etag_view(_read_allocation, writable_allocation)
"""Renders an allocation."""
