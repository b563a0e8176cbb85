"""What is said of file storage after it was seen at its provider.

What has not changed is said as before, so that a look at what has settled writes nothing: the time of a usage is when
it was first seen to be that.
"""

from datetime import datetime

from msgspec.structs import replace

from remuda.kernel.conditions import Condition, set_condition
from remuda.providers.contract.common import id_in
from remuda.providers.contract.filestorage import Attachment as CloudAttachment
from remuda.providers.contract.filestorage import FileStorage as CloudStorage
from remuda.region.kinds.filestorage import (
    Attachment,
    AttachmentStatus,
    FileStorage,
    FileStorageStatus,
    SnapshotPolicyStatus,
)
from remuda.region.kinds.lifecycle import IpRange


def seen_as(storage: FileStorage, found: CloudStorage, now: datetime) -> FileStorage:
    """Return file storage that says what was seen of it."""
    status, now = storage.status, now.replace(microsecond=0)
    is_same = status.usage == found.used_bytes and status.usage_timestamp is not None
    attached = {id_in(each.network.name): each for each in found.spec.attachments}
    taken = {policy.name for policy in found.spec.policies}
    seen = replace(
        status,
        size=found.spec.size_bytes,
        mount_path=found.mount_path,
        attachments=tuple(_attachment(each, attached.get(each.network_id)) for each in storage.spec.attachments),
        snapshot_policies=tuple(
            _policy(policy.name, status, is_there=policy.name in taken, now=now)
            for policy in storage.spec.snapshot_policies
        ),
        usage=found.used_bytes,
        usage_timestamp=status.usage_timestamp if is_same else now,
        provider_id=found.spec.handle.name,
    )
    return replace(storage, status=seen)


def _attachment(wanted: Attachment, found: CloudAttachment | None) -> AttachmentStatus:
    if found is None:
        return AttachmentStatus(
            network_id=wanted.network_id, provisioning_status="Provisioning", message="being attached"
        )
    return AttachmentStatus(
        network_id=wanted.network_id,
        provisioning_status="Provisioned",
        message="attached",
        segmentation_id=found.vlan,
        ip_range=IpRange(start_ip=found.addresses.first, end_ip=found.addresses.last),
    )


def _policy(name: str, status: FileStorageStatus, *, is_there: bool, now: datetime) -> SnapshotPolicyStatus:
    said = next((each.conditions for each in status.snapshot_policies if each.name == name), ())
    available = Condition(
        type="Available",
        status="True" if is_there else "False",
        reason="Provisioned" if is_there else "Provisioning",
        message="snapshots are taken" if is_there else "being set up",
        last_transition_time=now,
    )
    return SnapshotPolicyStatus(name=name, conditions=set_condition(said, available))
