"""The livery's rules, as pure functions: what a request may ask, what it makes of an object, and how that reads."""

from collections.abc import Sequence

from msgspec.structs import replace

from remuda.http.responses import etag_view
from remuda.kernel.conditions import Condition, find_condition
from remuda.kernel.errors import Invalid
from remuda.kernel.ids import derived_id
from remuda.kernel.tags import Tag
from remuda.store.objects import STORE_FINALIZERS, Metadata
from tests.example.kinds import (
    CREATOR,
    IN_CARE,
    IN_PASTURE,
    NAME,
    ORGANIZATION,
    PROJECT,
    YARD,
    YARD_LABEL,
    Mount,
    MountSpec,
    Yard,
    YardSpec,
    scope_labels,
)
from tests.example.wire import (
    Health,
    MetadataRead,
    MetadataWrite,
    MountRead,
    MountSpecWire,
    MountStatusRead,
    MountUpdate,
    Provisioning,
    TagWire,
    YardRead,
    YardSpecWire,
    YardWrite,
)

BREEDS = frozenset({"appaloosa", "criollo", "mule", "mustang", "quarter"})
RESERVED_TAGS = f"{YARD.group}/"

_PROVISIONING: dict[str, Provisioning] = {
    "Provisioned": "provisioned",
    "Errored": "error",
    "DependencyNotFound": "error",
    "Deprovisioning": "deprovisioning",
    "Deprovisioned": "deprovisioning",
}
_HEALTH: dict[str, Health] = {"Healthy": "healthy", "Degraded": "degraded", "Errored": "error"}


def check_tags(tags: Sequence[TagWire]) -> None:
    """Refuse a tag twice, and the tags that are the livery's own."""
    names = [tag.name for tag in tags]
    for name in names:
        if names.count(name) > 1:
            raise Invalid("metadata.tags", f"has {name!r} twice", remedy="give each tag one value")
        if name.startswith(RESERVED_TAGS):
            raise Invalid("metadata.tags", f"has the reserved name {name!r}", remedy=f"leave {RESERVED_TAGS} to us")


def check_breed(breed: str) -> None:
    """Refuse what no pasture has."""
    if breed not in BREEDS:
        raise Invalid("spec.breed", "is not one we keep", remedy=f"choose one of {', '.join(sorted(BREEDS))}")


def check_stalls(stalls: int, used: int) -> None:
    """Refuse to take away stalls in which mounts stand."""
    if stalls < used:
        raise Invalid("spec.stalls", f"is less than the {used} in use", remedy="remove mounts first, or ask for more")


def check_mount_update(mount: Mount, wanted: MountUpdate) -> None:
    """Refuse to change what a mount keeps for life."""
    if wanted.metadata.name != mount.metadata.labels[NAME]:
        raise Invalid("metadata.name", "cannot change", remedy="make a new mount under the new name")
    if wanted.spec.breed != mount.spec.breed:
        raise Invalid("spec.breed", "cannot change", remedy="make a new mount of that breed")


def check_reference(reference: str) -> None:
    """Refuse what is no reference of another service's, such as the finalizers by which we keep things ourselves."""
    owner, _, name = reference.partition("/")
    if "." not in owner or not name or reference in STORE_FINALIZERS or owner == YARD.group:
        raise Invalid("reference", "is not a resource's", remedy="write it as plural.group/id")


def mount_id(yard: str, name: str) -> str:
    """Return the id of the mount of this name: two of one name in a yard are the same one."""
    return derived_id(yard, name)


def new_yard(yard_id: str, organization: str, project: str, wanted: YardWrite, *, creator: str) -> Yard:
    """Return a yard as it is stored."""
    labels = {ORGANIZATION: organization, PROJECT: project, NAME: wanted.metadata.name}
    metadata = Metadata(name=yard_id, labels=labels, annotations={CREATOR: creator}, finalizers=(IN_CARE,))
    return Yard(metadata=metadata, spec=_yard_spec(wanted))


def changed_yard(yard: Yard, wanted: YardWrite) -> Yard:
    """Return a yard with all that a client may change replaced."""
    return replace(yard, metadata=_renamed(yard.metadata, wanted.metadata.name), spec=_yard_spec(wanted))


def new_mount(yard: Yard, name: str, spec: MountSpec, *, creator: str) -> Mount:
    """Return a mount as it is stored."""
    metadata = Metadata(
        name=mount_id(yard.name, name),
        labels=scope_labels(yard.metadata) | {NAME: name, YARD_LABEL: yard.name},
        annotations={CREATOR: creator},
        finalizers=(IN_PASTURE,),
        owner_references=(YARD.owner(yard),),
    )
    return Mount(metadata=metadata, spec=spec)


def changed_mount(mount: Mount, wanted: MountUpdate) -> Mount:
    """Return a mount with all that a client may change replaced."""
    spec = replace(
        mount.spec,
        paddock=wanted.spec.paddock,
        description=wanted.metadata.description,
        tags=stored_tags(wanted.metadata),
    )
    return replace(mount, spec=spec)


def read_yard(yard: Yard) -> YardRead:
    """Return a yard as clients read it."""
    metadata = _metadata(yard.metadata, yard.spec.description, yard.spec.tags, yard.status.conditions)
    return YardRead(metadata=metadata, spec=YardSpecWire(stalls=yard.spec.stalls))


def read_mount(mount: Mount) -> MountRead:
    """Return a mount as clients read it."""
    spec, status = mount.spec, mount.status
    return MountRead(
        metadata=_metadata(mount.metadata, spec.description, spec.tags, status.conditions),
        spec=MountSpecWire(breed=spec.breed, paddock=spec.paddock),
        status=MountStatusRead(
            yard_id=spec.yard, operation_id=spec.operation, pasture_id=status.pasture_id, paddock=status.paddock
        ),
    )


def writable_yard(yard: Yard) -> YardWrite:
    """Return the part of a yard that a client may change."""
    metadata = _writable(yard.metadata, yard.spec.description, yard.spec.tags)
    return YardWrite(metadata=metadata, spec=YardSpecWire(stalls=yard.spec.stalls))


def writable_mount(mount: Mount) -> MountUpdate:
    """Return the part of a mount that a client may change."""
    metadata = _writable(mount.metadata, mount.spec.description, mount.spec.tags)
    return MountUpdate(metadata=metadata, spec=MountSpecWire(breed=mount.spec.breed, paddock=mount.spec.paddock))


YARD_VIEW = etag_view(read_yard, writable_yard)
MOUNT_VIEW = etag_view(read_mount, writable_mount)


def _writable(metadata: Metadata, description: str, tags: tuple[Tag, ...]) -> MetadataWrite:
    return MetadataWrite(name=metadata.labels[NAME], description=description, tags=_wire_tags(tags))


def _wire_tags(tags: tuple[Tag, ...]) -> tuple[TagWire, ...]:
    return tuple(TagWire(name=tag.name, value=tag.value) for tag in tags)


def _yard_spec(wanted: YardWrite) -> YardSpec:
    return YardSpec(
        stalls=wanted.spec.stalls, description=wanted.metadata.description, tags=stored_tags(wanted.metadata)
    )


def stored_tags(metadata: MetadataWrite) -> tuple[Tag, ...]:
    """Return tags as they are stored."""
    return tuple(Tag(tag.name, tag.value) for tag in metadata.tags)


def _renamed(metadata: Metadata, name: str) -> Metadata:
    return replace(metadata, labels=dict(metadata.labels) | {NAME: name})


def _metadata(
    metadata: Metadata, description: str, tags: tuple[Tag, ...], conditions: tuple[Condition, ...]
) -> MetadataRead:
    assert metadata.creation_timestamp is not None, "a stored object has a creation time"
    return MetadataRead(
        id=metadata.name,
        name=metadata.labels[NAME],
        description=description,
        tags=_wire_tags(tags),
        creation_time=metadata.creation_timestamp,
        created_by=metadata.annotations.get(CREATOR, ""),
        deletion_time=metadata.deletion_timestamp,
        provisioning_status=_provisioning(metadata, conditions),
        health_status=_health(conditions),
        organization_id=metadata.labels[ORGANIZATION],
        project_id=metadata.labels[PROJECT],
    )


def _provisioning(metadata: Metadata, conditions: tuple[Condition, ...]) -> Provisioning:
    if metadata.deletion_timestamp is not None:
        return "deprovisioning"
    available = find_condition(conditions, "Available")
    return "pending" if available is None else _PROVISIONING.get(available.reason, "provisioning")


def _health(conditions: tuple[Condition, ...]) -> Health:
    healthy = find_condition(conditions, "Healthy")
    return "unknown" if healthy is None else _HEALTH.get(healthy.reason, "unknown")
