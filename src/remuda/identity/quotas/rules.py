"""Pure functions of quotas and allocations: validation, and conversion between schema and stored objects."""

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from difflib import get_close_matches
from itertools import pairwise

from msgspec.structs import replace

from remuda.access.principal import Principal
from remuda.http.responses import etag_view
from remuda.identity.kinds.quotas import (
    Allocation,
    AllocationSpec,
    AllocationState,
    Amount,
    Amounts,
    Limit,
    Limits,
    QuotaMetadataSpec,
    QuotaSpec,
)
from remuda.identity.quotas import schema
from remuda.identity.quotas.allocation_state import with_fencing_token
from remuda.identity.quotas.quota_state import Catalogue, limits_of, of_kind, project_totals, used
from remuda.kernel.errors import Invalid, PreconditionFailed
from remuda.kernel.fields import common_fields
from remuda.resources.conventions import ORGANIZATION, PROJECT, RESOURCE_ID, RESOURCE_KIND
from remuda.resources.metadata import (
    changed_metadata,
    new_metadata,
    new_tags,
    read_project_metadata,
    updated_tags,
    writable_metadata,
)

_MAX_KINDS = 50
_LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_LABEL_REMEDY = "use 1 to 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends"


def check_quotas(requested: schema.QuotasWrite | schema.QuotasPatch, catalogue: Catalogue) -> None:
    """Raise Invalid for unknown kinds and invalid quantities."""
    _check_once("quotas", [quota.kind for quota in requested.quotas])
    quotas: Sequence[schema.QuotaWrite | schema.QuotaPatch] = requested.quotas
    for number, quota in enumerate(quotas):
        if quota.kind not in catalogue:
            near = get_close_matches(quota.kind, catalogue, n=1)
            remedy = f"did you mean {near[0]}" if near else f"the kinds are {', '.join(sorted(catalogue))}"
            raise Invalid(f"quotas[{number}].kind", "is not a kind of quota", remedy=remedy)
        if quota.quantity is not None:
            _check_number(f"quotas[{number}].quantity", quota.quantity)


def check_allocation(requested: schema.AllocationWrite) -> None:
    spec = requested.spec
    _check_label("spec.kind", spec.kind)
    _check_label("spec.id", spec.id)
    if len(spec.allocations) > _MAX_KINDS:
        raise Invalid("spec.allocations", f"has more than {_MAX_KINDS} kinds", remedy="request fewer")
    _check_once("spec.allocations", [amount.kind for amount in spec.allocations])
    for number, amount in enumerate(spec.allocations):
        _check_label(f"spec.allocations[{number}].kind", amount.kind)
        _check_number(f"spec.allocations[{number}].committed", amount.committed)
        _check_number(f"spec.allocations[{number}].reserved", amount.reserved)


def check_same_owner(allocation: Allocation, requested: schema.AllocationWrite) -> None:
    """Raise Invalid if the object that an allocation is for would change."""
    labels = allocation.metadata.labels
    for field, stored, requested_value in (
        ("spec.kind", labels[RESOURCE_KIND], requested.spec.kind),
        ("spec.id", labels[RESOURCE_ID], requested.spec.id),
    ):
        if stored != requested_value:
            raise Invalid(field, f"is {stored} and cannot change", remedy="release it and request another")


def check_period(query: schema.UsageQuery) -> None:
    if query.at is not None and (query.since is not None or query.until is not None):
        raise Invalid("at", "is given beside since or until", remedy="give a moment or a period")
    if query.since is not None and query.until is not None and query.since >= query.until:
        raise Invalid("until", "is not after since", remedy="use an end after the start")


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
    if number > schema.MAX_QUANTITY:
        raise Invalid(field, "is too large", remedy=f"use at most {schema.MAX_QUANTITY}")


def stored_limits(requested: schema.QuotasWrite) -> Limits:
    ordered = sorted(requested.quotas, key=lambda quota: quota.kind)
    return tuple(Limit(kind=quota.kind, quantity=quota.quantity) for quota in ordered)


def patched_limits(limits: Limits, requested: schema.QuotasPatch) -> Limits:
    """Return the limits with the requested ones set or, where the quantity is null, unset."""
    quantities = {limit.kind: limit.quantity for limit in limits} | {
        quota.kind: quota.quantity for quota in requested.quotas
    }
    ordered = sorted(quantities.items())
    return tuple(Limit(kind=kind, quantity=quantity) for kind, quantity in ordered if quantity is not None)


def writable_limits(limits: Limits) -> schema.QuotasWrite:
    return schema.QuotasWrite(
        quotas=tuple(schema.QuotaWrite(kind=limit.kind, quantity=limit.quantity) for limit in limits)
    )


def read_quotas(
    spec: QuotaSpec, project: str | None, catalogue: Catalogue, *, only: Iterable[str] | None = None
) -> schema.QuotasRead:
    """Return the limits and the usage of an organization or a project, for all kinds or some.

    A project has the limits of the organization where it has none of its own, and the smaller remainder as `free`.
    """
    kinds = sorted(catalogue if only is None else set(only) & catalogue.keys())
    limits = limits_of(spec.quotas, catalogue)
    read = [_read_one(kind, limits[kind], spec.totals, catalogue) for kind in kinds]
    if project is not None:
        entry = project_totals(spec, project)
        own = {limit.kind: limit.quantity for limit in entry.quotas}
        inside = [_read_one(kind, own.get(kind, limits[kind]), entry.totals, catalogue) for kind in kinds]
        read = [replace(quota, free=min(quota.free, all_.free)) for quota, all_ in zip(inside, read, strict=True)]
    return schema.QuotasRead(quotas=tuple(read))


_described = common_fields(QuotaMetadataSpec, schema.QuotaRead)


def _read_one(kind: str, limit: int, totals: Amounts, catalogue: Catalogue) -> schema.QuotaRead:
    metadata, amount = catalogue[kind], of_kind(totals, kind)
    return schema.QuotaRead(
        kind=kind,
        quantity=limit,
        used=used(amount),
        free=limit - used(amount),
        committed=amount.committed,
        reserved=amount.reserved,
        **_described(metadata),
    )


def new_allocation(
    name: str,
    organization: str,
    project: str,
    requested: schema.AllocationWrite,
    principal: Principal,
    *,
    state: AllocationState,
) -> Allocation:
    labels = {
        ORGANIZATION: organization,
        PROJECT: project,
        RESOURCE_KIND: requested.spec.kind,
        RESOURCE_ID: requested.spec.id,
    }
    tags = new_tags(requested.metadata, principal)
    spec = AllocationSpec(allocations=_amounts(requested), state=state, tags=tags)
    return Allocation(metadata=new_metadata(name, requested.metadata, principal, labels=labels), spec=spec)


def check_fencing_token(allocation: Allocation, fencing_token: int | None) -> None:
    """Raise PreconditionFailed if the allocation was changed with a later fencing token."""
    if fencing_token is not None and fencing_token < allocation.spec.fencing_token:
        raise PreconditionFailed("Allocation", allocation.name, precondition="fencingToken")


def updated_allocation(
    allocation: Allocation,
    requested: schema.AllocationWrite,
    principal: Principal,
    now: datetime,
    *,
    fencing_token: int | None = None,
) -> Allocation:
    tags = updated_tags(allocation.spec.tags, requested.metadata, principal)
    spec = replace(allocation.spec, allocations=_amounts(requested), tags=tags)
    metadata = changed_metadata(allocation.metadata, requested.metadata, principal, now)
    return with_fencing_token(replace(allocation, metadata=metadata, spec=spec), fencing_token or 0)


def _amounts(requested: schema.AllocationWrite) -> Amounts:
    ordered = sorted(requested.spec.allocations, key=lambda amount: amount.kind)
    return tuple(Amount(kind=each.kind, committed=each.committed, reserved=each.reserved) for each in ordered)


def writable_allocation(allocation: Allocation) -> schema.AllocationWrite:
    return schema.AllocationWrite(
        metadata=writable_metadata(allocation.metadata, allocation.spec.tags), spec=_spec(allocation)
    )


def _spec(allocation: Allocation) -> schema.AllocationSpecWire:
    labels = allocation.metadata.labels
    return schema.AllocationSpecWire(
        kind=labels[RESOURCE_KIND],
        id=labels[RESOURCE_ID],
        allocations=tuple(
            schema.AmountWire(kind=amount.kind, committed=amount.committed, reserved=amount.reserved)
            for amount in allocation.spec.allocations
        ),
    )


def _read_allocation(allocation: Allocation) -> schema.AllocationRead:
    spec = allocation.spec
    return schema.AllocationRead(
        metadata=read_project_metadata(allocation.metadata, spec.tags),
        spec=_spec(allocation),
        status=schema.AllocationStatusRead(state=spec.state, started=spec.started, ended=spec.ended),
    )


ALLOCATION_VIEW = etag_view(_read_allocation, writable_allocation)
