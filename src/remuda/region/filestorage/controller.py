"""What makes file storage true at a provider.

It goes in the other order: the storage, what it cost, its hold on its project. Only then do the networks that it was
attached to become free.

What is said of file storage after it was seen at its provider.

What has not changed is said as before, so that a look at what has settled writes nothing: the time of a usage is when
it was first seen to be that.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from msgspec.structs import replace

from remuda.kernel.clock import Clock
from remuda.kernel.conditions import Condition, set_condition
from remuda.kernel.errors import NotFound
from remuda.providers.contract.common import NoCapacity, Rejected, id_in
from remuda.providers.contract.filestorage import CloudAttachment
from remuda.providers.contract.filestorage import CloudFileStorage as CloudStorage
from remuda.providers.contract.filestorage import CloudFileStorageSpec as CloudStorageSpec
from remuda.providers.contract.filestorage import CloudSnapshotPolicy as CloudPolicy
from remuda.providers.contract.networks import AddressRange
from remuda.quota.reservation import QuotaAdmission, is_provisioned
from remuda.quota.sagas import operation_source, subject_of_kind
from remuda.reconcile.controller import Controller
from remuda.reconcile.lifecycle import Outcome, lifecycle_controller
from remuda.reconcile.ports import ControllerSettings, ReconcilePorts
from remuda.reconcile.results import Blocked, Done, Failed, ReconcileContext, Result
from remuda.reconcile.sources import Source, through
from remuda.region.catalogue.provider_registry import Cloud, Clouds, need
from remuda.region.deletion import until_gone
from remuda.region.filestorage import rules
from remuda.region.filestorage.classes import offered_as
from remuda.region.filestorage.sagas import charge_for
from remuda.region.kinds.common import IpRange, is_abandoned
from remuda.region.kinds.filestorage import (
    FILE_STORAGE,
    Attachment,
    AttachmentStatus,
    FileStorage,
    FileStorageClass,
    FileStorageStatus,
    Nfs,
    SnapshotPolicy,
    SnapshotPolicyStatus,
)
from remuda.region.kinds.networks import Identity, Network
from remuda.region.networks.rules import to_cloud
from remuda.region.ports import IdentityPort
from remuda.resources.conventions import CONTROLLER_FINALIZER, identity_of, region_of
from remuda.resources.crud import find
from remuda.store.contract import Store


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
            _policy_status(policy.name, status, is_there=policy.name in taken, now=now)
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


def _policy_status(name: str, status: FileStorageStatus, *, is_there: bool, now: datetime) -> SnapshotPolicyStatus:
    said = next((each.conditions for each in status.snapshot_policies if each.name == name), ())
    available = Condition(
        type="Available",
        status="True" if is_there else "False",
        reason="Provisioned" if is_there else "Provisioning",
        message="snapshots are taken" if is_there else "being set up",
        last_transition_time=now,
    )
    return SnapshotPolicyStatus(name=name, conditions=set_condition(said, available))


_LOOK_S = 300.0
"""How often to see how full storage is, where the provider tells nothing by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStorageController:
    """Keeps file storage at the provider for each of ours."""

    store: Store
    clock: Clock
    clouds: Clouds

    async def provision(self, storage: FileStorage, run: ReconcileContext) -> Result | Outcome[FileStorage]:
        """Look at the provider, and have there what is wanted."""
        storage_class = await find(self.store, FileStorageClass, storage.spec.storage_class_id)
        if storage_class is None:
            return Failed("DependencyNotFound", "its class is not there any more")
        cloud = await self.clouds.get(region_of(storage))
        found = await need(cloud.provider.file_storages).find_storage(rules.to_cloud(storage))
        attached = await self._attached(storage.spec.attachments, found)
        if not isinstance(attached, tuple):
            return attached
        wanted = _wanted(storage, offered_as(storage_class), attached)
        if cloud.provider.events is None:
            run.requeue_after(_LOOK_S)
        if found is not None and found.spec == wanted:
            return Outcome(Done(), seen_as(storage, found, self.clock.now()))
        run.acted = True
        return await self._converge(storage, wanted, found, cloud)

    async def deprovision(self, storage: FileStorage, run: ReconcileContext) -> Result:
        """Bring file storage one step nearer to being gone."""
        left = None if is_abandoned(storage) else await self._remove(storage)
        if left is not None:
            run.acted = True
            return left
        return Done()

    async def _remove(self, storage: FileStorage) -> Result | None:
        cloud = await self.clouds.get(region_of(storage))
        storages = need(cloud.provider.file_storages)
        handle = rules.to_cloud(storage)
        return await until_gone(handle, storages.find_storage, storages.remove_storage, cloud)

    async def _attached(
        self, wanted: Iterable[Attachment], found: CloudStorage | None
    ) -> tuple[CloudAttachment, ...] | Result:
        """Return the attachments as the provider knows them, or what they wait for.

        A network has to be there before storage is attached to it; what becomes of it later is no matter of ours.
        """
        present = {each.network for each in found.spec.attachments} if found is not None else set()
        attached = []
        for each in wanted:
            network = await self.store.get(Network, each.network_id)
            handle = to_cloud(network, await self.store.get(Identity, identity_of(network)))
            if handle not in present and not is_provisioned(network):
                return Blocked("DependencyNotReady", f"the network {network.name} is being made")
            if each.ip_range is None:
                return Failed("Errored", f"it has no addresses on the network {network.name}: attach it anew")
            addresses = AddressRange(each.ip_range.start_ip, each.ip_range.end_ip)
            attached.append(CloudAttachment(network=handle, addresses=addresses, vlan=each.segmentation_id))
        return tuple(attached)

    async def _converge(
        self, storage: FileStorage, wanted: CloudStorageSpec, found: CloudStorage | None, cloud: Cloud
    ) -> Result | Outcome[FileStorage]:
        now = self.clock.now()
        try:
            made = await need(cloud.provider.file_storages).converge_storage(wanted)
        except (Rejected, NoCapacity, NotFound) as error:
            failed = Failed("Errored", _why(error, wanted, found))
            return failed if found is None else Outcome(failed, seen_as(storage, found, now))
        return Outcome(Done(), seen_as(storage, made, now))


def _why(error: Exception, wanted: CloudStorageSpec, found: CloudStorage | None) -> str:
    if isinstance(error, NoCapacity):
        return "the provider has no room for it"
    if isinstance(error, NotFound):
        return "the provider does not know its class, or a network that it is attached to"
    if found is not None and wanted.size_bytes < found.used_bytes:
        return "more is on it than would fit: make it larger again, or remove something"
    return "the provider refuses it as it is wanted: change it"


def _wanted(storage: FileStorage, offered: str, attachments: tuple[CloudAttachment, ...]) -> CloudStorageSpec:
    spec = storage.spec
    return CloudStorageSpec(
        handle=rules.to_cloud(storage),
        storage_class=offered,
        size_bytes=spec.size,
        has_root_squash=(spec.nfs or Nfs()).root_squash,
        attachments=attachments,
        policies=tuple(map(_cloud_policy, spec.snapshot_policies)),
    )


def _cloud_policy(policy: SnapshotPolicy) -> CloudPolicy:
    schedule = policy.schedule
    return CloudPolicy(
        name=policy.name,
        interval=schedule.interval,
        keep=policy.retention.keep,
        time_of_day=schedule.time_of_day,
        day_of_week=schedule.day_of_week or "",
        day_of_month=schedule.day_of_month,
    )


def driver(
    ports: ReconcilePorts, identity: IdentityPort, clouds: Clouds, *, settings: ControllerSettings | None = None
) -> Controller:
    """Return the controller of file storage."""
    store = ports.store
    storages = FileStorageController(store=store, clock=ports.clock, clouds=clouds)
    return lifecycle_controller(
        "filestorages",
        FileStorage,
        provision=storages.provision,
        deprovision=storages.deprovision,
        finalizer=CONTROLLER_FINALIZER,
        ports=ports,
        admission=QuotaAdmission(
            store=store,
            clock=ports.clock,
            identity=identity,
            charge=charge_for,
            reference=lambda storage: rules.reference_of(storage.spec.operation or storage.name),
        ),
        sources=(
            Source(
                Network, when=is_provisioned, keys=through(store, FileStorage, "network", lambda network: network.name)
            ),
            operation_source(subject_of_kind(FILE_STORAGE)),
        ),
        settings=settings,
    )
