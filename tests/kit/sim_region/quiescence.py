"""What must hold in region and at its clouds when everything has come to rest."""

from collections.abc import Iterator
from typing import Any

from remuda.identity.kinds.quotas import Allocation
from remuda.kernel.conditions import find_condition
from remuda.region.authorities.rules import reference_of as reference_of_authority
from remuda.region.filestorage.rules import reference_of as reference_of_storage
from remuda.region.kinds.authorities import AUTHORITY
from remuda.region.kinds.filestorage import FILE_STORAGE
from remuda.region.kinds.networks import IDENTITY
from remuda.region.kinds.servers import cloud_uid_of
from remuda.region.networks.rules import reference_of as reference_of_identity
from remuda.resources.conventions import PROJECT, RESOURCE_ID
from tests.kit.sim_region.history import IMAGES
from tests.kit.sim_region.snapshot import AT_CLOUD, CONTROLLED, RegionSnapshot, Row

SAID = {"AddressesExhausted", "PublicAddressesExhausted", "NoCapacity", "QuotaExceeded", "AddressTaken"}
"""Why something may not be provisioned although nothing is wrong with us."""
_OURS = tuple(f"{kind.qualified}/" for kind in (IDENTITY, AUTHORITY, FILE_STORAGE))


def unrest(seen: RegionSnapshot, *, is_empty: bool) -> list[str]:
    """Return what keeps everything from being at rest; if it `is_empty`, whatever is there does."""
    left = [*_operations(seen), *_going(seen), *_ledgers(seen), *_paid(seen), *_kept(seen), *_addresses(seen)]
    left += [*_said(seen), *_at_clouds(seen), *_orphans(seen), *_images(seen)]
    if is_empty:
        left += [f"the {kind} {name} is left" for kind in (*CONTROLLED, "record", "project") for name in seen.of(kind)]
        left += [f"{row.name} is left at a cloud" for row in seen.rows.values()]
        left += [f"the image {name} is left" for name in (*seen.images, *seen.of("import"))]
    return left


def _operations(seen: RegionSnapshot) -> Iterator[str]:
    for each in seen.operations.values():
        if each.is_open:
            yield f"the operation {each.spec.saga} {each.name} is {each.phase}"


def _going(seen: RegionSnapshot) -> Iterator[str]:
    """Everything that was to go is gone."""
    for kind in (*CONTROLLED, "record", "address", "project"):
        for each in seen.of(kind).values():
            if each.is_deleting:
                yield f"the {kind} {each.name} is still going: {each.metadata.finalizers}"
    for name in seen.of("record").keys() - seen.of("identity").keys():
        yield f"the record {name} has outlived its identity"


def _said(seen: RegionSnapshot) -> Iterator[str]:
    """Everything that is there is provisioned, or says why not."""
    failed = {row.owner[2]: row for row in seen.at_cloud("servers") if row.state == "failed"}
    for kind, each in seen.controlled:
        available = find_condition(each.status.conditions, "Available")
        reason = "nothing" if available is None else available.reason
        if each.is_deleting or reason == "Provisioned":
            continue
        if reason in SAID or _is_broken(each, reason, failed.get(cloud_uid_of(each))):
            continue
        if reason == "ProviderRejected" and _has_no_image(seen, each):
            continue
        yield f"the {kind} {each.name} says {reason}: {'' if available is None else available.message}"


def _has_no_image(seen: RegionSnapshot, server: Any) -> bool:
    """Tell whether the image of a server was given up at the moment at which somebody asked for the server."""
    return server.spec.image.id not in {*seen.images, *IMAGES}


def _is_broken(server: Any, reason: str, row: Row | None) -> bool:
    """Tell whether a server's cloud has given up on it, and it says so; and no other is to take its place."""
    if row is None or not (row.was_up or reason == "Errored"):
        return False
    healthy, status = find_condition(server.status.conditions, "Healthy"), server.status
    has_failed = status.rebuild is not None and status.rebuild.state == "Failed"
    is_rebuilt = (status.applied_image_id, status.applied_rebuilds) == (server.spec.image.id, server.spec.rebuilds)
    has_image = is_rebuilt or has_failed
    is_settled = status.replacement.completed == server.spec.replacement and has_image
    return is_settled and healthy is not None and healthy.status == "False"


def _at_clouds(seen: RegionSnapshot) -> Iterator[str]:
    """The clouds have what there is, and nothing else."""
    for row in seen.rows.values():
        if seen.owner_of(row) is None:
            yield f"{row.table} has {row.name}, which is nobody's"
        elif row.table == "servers" and _is_provisioned(server := seen.owner_of(row)) and not _is_wanted(server, row):
            yield f"{row.name} is {row.made_of} and {row.state}, and {server.spec} was wanted"
        elif row.state in {"removing", "building", "rebuilding", "stopping", "queued", "pending"}:
            yield f"{row.name} is {row.state}"
    there = {(row.table, row.owner[2]) for row in seen.rows.values()}
    for table, kind in AT_CLOUD.items():
        for each in seen.of(kind).values():
            if _is_provisioned(each) and (table, cloud_uid_of(each)) not in there:
                yield f"the {kind} {each.name} is not among the {table} of its cloud"


def _is_provisioned(each: Any) -> bool:
    available = find_condition(each.status.conditions, "Available")
    return available is not None and available.reason == "Provisioned"


def _is_wanted(server: Any, row: Row) -> bool:
    is_rebuilt = server.status.applied_rebuilds == server.spec.rebuilds
    return row.was_up and is_rebuilt and row.made_of == (server.spec.flavor_id, server.spec.image.id)


def _ledgers(seen: RegionSnapshot) -> Iterator[str]:
    for head in seen.heads.values():
        if head.spec.intents:
            yield f"the head {head.name} has intents: {head.spec.intents}"
        for line in head.spec.projects:
            if line.project not in seen.of("project"):
                yield f"the head {head.name} still knows the project {line.project}, which is gone"


def _paid(seen: RegionSnapshot) -> Iterator[str]:
    """What is paid for is what there is, once."""
    paid = [_owner(row) for row in seen.row.values() if row.spec.state == "confirmed"]
    living = [row for row in seen.row.values() if row.spec.state != "released"]
    if len(paid) != len(living):
        yield "a row is not confirmed"
    for kind in ("network", "balancer", "storage"):
        for each in seen.of(kind).values():
            available = find_condition(each.status.conditions, "Available")
            is_refused = available is not None and available.reason == "QuotaExceeded"
            if paid.count(each.name) != 1 - is_refused:
                yield f"the {kind} {each.name} is paid for {paid.count(each.name)} times"
    there = {name for kind in ("network", "balancer", "storage") for name in seen.of(kind)}
    for row in living:
        if _owner(row) not in there:
            yield f"the row {row.name} holds something for {_owner(row)}, which is gone"


def _owner(row: Allocation) -> str:
    return row.metadata.labels[RESOURCE_ID]


def _kept(seen: RegionSnapshot) -> Iterator[str]:
    """Every project is kept by what is in it, and by nothing else of ours."""
    for project in seen.of("project").values():
        wanted = {reference_of_identity(each.name) for each in _in(seen, "identity", project.name)}
        wanted |= {reference_of_authority(each.spec.operation) for each in _in(seen, "authority", project.name)}
        wanted |= {reference_of_storage(each.spec.operation) for each in _in(seen, "storage", project.name)}
        found = {each for each in project.metadata.finalizers if each.startswith(_OURS)}
        if found != wanted:
            yield f"the project {project.name} is kept by {sorted(found)} instead of {sorted(wanted)}"


def _in(seen: RegionSnapshot, kind: str, project: str) -> list[Any]:
    return [each for each in seen.of(kind).values() if each.metadata.labels[PROJECT] == project]


def _addresses(seen: RegionSnapshot) -> Iterator[str]:
    """Every address is held by something that is there."""
    holders = {cloud_uid_of(each) for kind in ("server", "balancer") for each in seen.of(kind).values()}
    for address in seen.of("address").values():
        if address.spec.holder_uid not in holders:
            yield f"{address.name} is held by {address.spec.holder}, which is gone"


def _orphans(seen: RegionSnapshot) -> Iterator[str]:
    """Nothing at a cloud is nobody's, and no record says so of anything."""
    for orphan in seen.of("orphan").values():
        yield f"{orphan.spec.provider_name} is an orphan: {orphan.spec.cause}"


def _images(seen: RegionSnapshot) -> Iterator[str]:
    """Every image is at its cloud, or has failed to come there."""
    for each in seen.of("import").values():
        if each.is_deleting or each.status.state != "failed":
            yield f"the image {each.name} is {each.status.state}"
    for name, state in seen.images.items():
        if state != "ready":
            yield f"the image {name} is {state} at its cloud"
