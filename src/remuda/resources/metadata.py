"""Metadata: conversion between requests, stored objects and responses.

The provisioning status: an object that is being deleted is `deprovisioning`; a kind without conditions (None here) is
`provisioned` and `healthy`; before its controller has written a condition an object is `pending`. A condition of an
older generation is outdated: until the next reconcile the object is `provisioning`, so `provisioned` means "as last
requested".

A detail has the controller's own reason and message. Reasons are an open set (`InUse`, `NoCapacity`): the reference
contract has no details, so its clients cannot depend on a closed set. The few reasons that determine the status are
below.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from remuda.access.principal import Principal
from remuda.kernel.conditions import Condition, find_condition
from remuda.kernel.ids import is_id
from remuda.kernel.tags import Tag
from remuda.resources.conventions import (
    CREATOR,
    CREATOR_NAME,
    DESCRIPTION,
    MODIFIED,
    MODIFIER,
    MODIFIER_NAME,
    NAME,
    ORGANIZATION,
    PAYING_CREATOR,
    PAYING_ORGANIZATION,
    PAYING_PROJECT,
    PROJECT,
)
from remuda.resources.schema import (
    Detail,
    Health,
    MetadataRead,
    MetadataWrite,
    OrganizationMetadataRead,
    ProjectMetadataRead,
    Provisioning,
    TagWire,
)
from remuda.resources.tags import own_tags, replaced_tags
from remuda.store.objects import Metadata

Conditions = tuple[Condition, ...] | None
"""The conditions of an object; None if its status has none."""

_PROVISIONING: dict[str, Provisioning] = {
    "Provisioned": "provisioned",
    "Errored": "error",
    "DependencyNotFound": "error",
    "NoCapacity": "error",
    "ProviderRejected": "error",
    "PublicAddressesExhausted": "error",
    "AddressTaken": "error",
    "VLANTaken": "error",
    "Deprovisioning": "deprovisioning",
    "Deprovisioned": "deprovisioning",
}
_CHANGED = Detail(reason="Changed", message="the controller has not processed the last change yet")
_HEALTH: dict[str, Health] = {"Healthy": "healthy", "Degraded": "degraded", "Errored": "error"}


def new_metadata(
    name: str,
    requested: MetadataWrite,
    by: str | Principal,
    *,
    labels: Mapping[str, str],
    finalizers: Sequence[str] = (),
) -> Metadata:
    """Return the metadata of a new object. `labels` have its scope; a principal in `by` also sets its payer."""
    annotations = _made_by(by) | _described(requested)
    labelled = dict(labels) | _paid_by(by) | {NAME: requested.name}
    return Metadata(name=name, labels=labelled, annotations=annotations, finalizers=tuple(finalizers))


def _made_by(by: str | Principal) -> dict[str, str]:
    if isinstance(by, str):
        return {CREATOR: by}
    return {CREATOR: by.subject, PAYING_CREATOR: by.actor_name, **_named(CREATOR_NAME, by)}


def _named(annotation: str, by: Principal) -> dict[str, str]:
    """Return the annotation for the display name of the subject. The name of another actor is not the subject's."""
    return {annotation: by.display_name} if by.display_name and by.actor_name == by.subject else {}


def _paid_by(by: str | Principal) -> dict[str, str]:
    """Return the labels of the payer, if known. A service may send any text, and a label must be an id."""
    if isinstance(by, str):
        return {}
    paying = {PAYING_ORGANIZATION: by.organization, PAYING_PROJECT: by.project}
    return {label: name for label, name in paying.items() if name is not None and is_id(name)}


_REPLACED = {DESCRIPTION, MODIFIER_NAME}


def changed_metadata(metadata: Metadata, requested: MetadataWrite, by: Principal, now: datetime) -> Metadata:
    """Return metadata with all fields replaced that a client may change, and with the caller as the modifier."""
    kept = {key: value for key, value in metadata.annotations.items() if key not in _REPLACED}
    modified = {MODIFIER: by.subject, MODIFIED: now.strftime("%Y-%m-%dT%H:%M:%SZ"), **_named(MODIFIER_NAME, by)}
    return msgspec.structs.replace(
        metadata,
        labels=dict(metadata.labels) | {NAME: requested.name},
        annotations=kept | _described(requested) | modified,
    )


def _described(requested: MetadataWrite) -> dict[str, str]:
    """Return the annotation for a description. An empty one is stored, so that the client reads it again."""
    return {} if isinstance(requested.description, msgspec.UnsetType) else {DESCRIPTION: requested.description}


def stored_tags(requested: MetadataWrite) -> tuple[Tag, ...]:
    """Return tags as they are stored."""
    return tuple(Tag(tag.name, tag.value) for tag in requested.tags)


def new_tags(requested: MetadataWrite, by: Principal) -> tuple[Tag, ...]:
    """Return the tags of a new object, or raise Invalid for duplicates and for tags that the caller may not set."""
    return own_tags(stored_tags(requested), by)


def updated_tags(before: Sequence[Tag], requested: MetadataWrite, by: Principal) -> tuple[Tag, ...]:
    """Return the tags after an update, or raise Invalid as `new_tags` does."""
    return replaced_tags(before, stored_tags(requested), by)


def writable_metadata(metadata: Metadata, tags: Sequence[Tag]) -> MetadataWrite:
    """Return the part of metadata that a client may change."""
    return MetadataWrite(
        name=metadata.labels[NAME],
        description=metadata.annotations.get(DESCRIPTION, msgspec.UNSET),
        tags=_wire_tags(tags),
    )


def read_metadata(metadata: Metadata, tags: Sequence[Tag] = (), conditions: Conditions = None) -> MetadataRead:
    """Return the metadata in a response, for an object of the whole system."""
    return MetadataRead(**_fields(metadata, tags, conditions))


def read_organization_metadata(
    metadata: Metadata, tags: Sequence[Tag] = (), conditions: Conditions = None
) -> OrganizationMetadataRead:
    """Return the metadata in a response, for an object of an organization."""
    fields = _fields(metadata, tags, conditions)
    return OrganizationMetadataRead(**fields, organization_id=metadata.labels[ORGANIZATION])


def read_project_metadata(
    metadata: Metadata, tags: Sequence[Tag] = (), conditions: Conditions = None
) -> ProjectMetadataRead:
    """Return the metadata in a response, for an object of a project."""
    labels = metadata.labels
    fields = _fields(metadata, tags, conditions)
    return ProjectMetadataRead(**fields, organization_id=labels[ORGANIZATION], project_id=labels[PROJECT])


def _fields(metadata: Metadata, tags: Sequence[Tag], conditions: Conditions) -> dict[str, Any]:
    assert metadata.creation_timestamp is not None, "a stored object has a creation time"
    annotations = metadata.annotations
    available = None if conditions is None else find_condition(conditions, "Available")
    healthy = None if conditions is None else find_condition(conditions, "Healthy")
    return {
        "id": metadata.name,
        "name": metadata.labels[NAME],
        "description": annotations.get(DESCRIPTION, msgspec.UNSET),
        "tags": _wire_tags(tags),
        "creation_time": metadata.creation_timestamp,
        "created_by": annotations.get(CREATOR, ""),
        "created_by_name": annotations.get(CREATOR_NAME, ""),
        "modified_time": _modified(annotations),
        "modified_by": annotations.get(MODIFIER, ""),
        "modified_by_name": annotations.get(MODIFIER_NAME, ""),
        "deletion_time": metadata.deletion_timestamp,
        "provisioning_status": provisioning_status(metadata, conditions),
        "provisioning_status_detail": _provisioning_detail(metadata, available),
        "health_status": _health(conditions, healthy),
        "health_status_detail": _detail(healthy),
    }


def _modified(annotations: Mapping[str, str]) -> datetime | None:
    """Return the time of the last change, or None if the annotation is missing or invalid."""
    text = annotations.get(MODIFIED)
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo is not None else None


def _wire_tags(tags: Sequence[Tag]) -> tuple[TagWire, ...]:
    return tuple(TagWire(name=tag.name, value=tag.value) for tag in tags)


def provisioning_status(metadata: Metadata, conditions: Conditions) -> Provisioning:
    """Return the provisioning status of an object in responses."""
    if metadata.deletion_timestamp is not None:
        return "deprovisioning"
    if conditions is None:
        return "provisioned"
    available = find_condition(conditions, "Available")
    if available is None:
        return "pending"
    return "provisioning" if _is_behind(metadata, available) else _PROVISIONING.get(available.reason, "provisioning")


def _provisioning_detail(metadata: Metadata, available: Condition | None) -> Detail | None:
    if available is not None and metadata.deletion_timestamp is None and _is_behind(metadata, available):
        return _CHANGED
    return _detail(available)


def _is_behind(metadata: Metadata, condition: Condition) -> bool:
    """Return whether a condition is about an older generation."""
    return condition.observed_generation is not None and condition.observed_generation < metadata.generation


def _health(conditions: Conditions, healthy: Condition | None) -> Health:
    if conditions is None:
        return "healthy"
    return "unknown" if healthy is None else _HEALTH.get(healthy.reason, "unknown")


def _detail(found: Condition | None) -> Detail | None:
    return None if found is None else Detail(reason=found.reason, message=found.message)
