"""Controller of file storage. Deletion is in this order: the storage at the provider, its quota, its project reference.

An unchanged observation leaves the status as it is: the time of a usage is when that value was observed first.
"""

from collections.abc import Iterable, Sequence
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
from remuda.providers.contract.networks import CloudAddressRange
from remuda.quota.lifecycle import QuotaHooks
from remuda.quota.ports import QuotaLedger
from remuda.quota.sagas import operation_source
from remuda.reconcile.controller import Controller
from remuda.reconcile.lifecycle import Outcome, lifecycle_controller
from remuda.reconcile.ports import ControllerSettings, ReconcilePorts
from remuda.reconcile.results import Blocked, Done, Failed, ReconcileContext, Result
from remuda.reconcile.sources import Source, indexed
from remuda.reconcile.status import is_provisioned
from remuda.region.catalogue.provider_registry import ProviderRegistry, RegionProvider, require
from remuda.region.filestorage import rules
from remuda.region.filestorage.classes import provider_class
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
from remuda.region.networks.rules import network_handle
from remuda.resources.conventions import CONTROLLER_FINALIZER, identity_of, region_of
from remuda.resources.crud import find
from remuda.store.contract import Store


def observed_storage(storage: FileStorage, found: CloudStorage, now: datetime) -> FileStorage:
    status, now = storage.status, now.replace(microsecond=0)
    is_same = status.usage == found.used_bytes and status.usage_timestamp is not None
    attached = {id_in(each.network.name): each for each in found.spec.attachments}
    active = {policy.name for policy in found.spec.policies}
    observed = replace(
        status,
        size=found.spec.size_bytes,
        mount_path=found.mount_path,
        attachments=tuple(_attachment(each, attached.get(each.network_id)) for each in storage.spec.attachments),
        snapshot_policies=tuple(
            _policy_status(policy.name, status, is_active=policy.name in active, now=now)
            for policy in storage.spec.snapshot_policies
        ),
        usage=found.used_bytes,
        usage_timestamp=status.usage_timestamp if is_same else now,
        provider_id=found.spec.handle.name,
    )
    return replace(storage, status=observed)


def _attachment(desired: Attachment, found: CloudAttachment | None) -> AttachmentStatus:
    if found is None:
        return AttachmentStatus(
            network_id=desired.network_id, provisioning_status="Provisioning", message="being attached"
        )
    return AttachmentStatus(
        network_id=desired.network_id,
        provisioning_status="Provisioned",
        message="attached",
        segmentation_id=found.vlan,
        ip_range=IpRange(start_ip=found.addresses.first, end_ip=found.addresses.last),
    )


def _policy_status(name: str, status: FileStorageStatus, *, is_active: bool, now: datetime) -> SnapshotPolicyStatus:
    conditions = next((each.conditions for each in status.snapshot_policies if each.name == name), ())
    available = Condition(
        type="Available",
        status="True" if is_active else "False",
        reason="Provisioned" if is_active else "Provisioning",
        message="snapshots are taken" if is_active else "being set up",
        last_transition_time=now,
    )
    return SnapshotPolicyStatus(name=name, conditions=set_condition(conditions, available))


_POLL_S = 300.0
"""The interval of polls for the usage, if the provider sends no events."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStorageController:
    """Provisions and deprovisions file storage."""

    store: Store
    clock: Clock
    providers: ProviderRegistry

    async def provision(self, storage: FileStorage, context: ReconcileContext) -> Result | Outcome[FileStorage]:
        storage_class = await find(self.store, FileStorageClass, storage.spec.storage_class_id)
        if storage_class is None:
            return Failed("DependencyNotFound", "its storage class was deleted")
        cloud = await self.providers.get(region_of(storage))
        found = await require(cloud.provider.file_storages).find_storage(rules.storage_handle(storage))
        attached = await self._attached(storage.spec.attachments, found)
        if not isinstance(attached, tuple):
            return attached
        desired = _desired(storage, provider_class(storage_class), attached)
        if cloud.provider.events is None:
            context.requeue_after(_POLL_S)
        if found is not None and found.spec == desired:
            return Outcome(Done(), observed_storage(storage, found, self.clock.now()))
        context.acted = True
        return await self._converge(storage, desired, found, cloud)

    async def deprovision(self, storage: FileStorage, context: ReconcileContext) -> Result:
        waiting = None if is_abandoned(storage) else await self._remove(storage)
        if waiting is not None:
            context.acted = True
            return waiting
        return Done()

    async def _remove(self, storage: FileStorage) -> Result | None:
        cloud = await self.providers.get(region_of(storage))
        storages = require(cloud.provider.file_storages)
        handle = rules.storage_handle(storage)
        return await cloud.delete(handle, storages.find_storage, storages.remove_storage)

    async def _attached(
        self, desired: Iterable[Attachment], found: CloudStorage | None
    ) -> tuple[CloudAttachment, ...] | Result:
        """Return the desired attachments, or the result while a network of a new attachment is not provisioned."""
        present = {each.network for each in found.spec.attachments} if found is not None else set()
        attached = []
        for each in desired:
            network = await self.store.get(Network, each.network_id)
            handle = network_handle(network, await self.store.get(Identity, identity_of(network)))
            if handle not in present and not is_provisioned(network):
                return Blocked("DependencyNotReady", f"the network {network.name} is being created")
            if each.ip_range is None:
                return Failed(
                    "Errored", f"it has no addresses on the network {network.name}: detach and attach it again"
                )
            addresses = CloudAddressRange(each.ip_range.start_ip, each.ip_range.end_ip)
            attached.append(CloudAttachment(network=handle, addresses=addresses, vlan=each.segmentation_id))
        return tuple(attached)

    async def _converge(
        self, storage: FileStorage, desired: CloudStorageSpec, found: CloudStorage | None, cloud: RegionProvider
    ) -> Result | Outcome[FileStorage]:
        now = self.clock.now()
        try:
            created = await require(cloud.provider.file_storages).converge_storage(desired)
        except (Rejected, NoCapacity, NotFound) as error:
            failed = Failed("Errored", _failure_message(error, desired, found))
            return failed if found is None else Outcome(failed, observed_storage(storage, found, now))
        return Outcome(Done(), observed_storage(storage, created, now))


def _failure_message(error: Exception, desired: CloudStorageSpec, found: CloudStorage | None) -> str:
    if isinstance(error, NoCapacity):
        return "the provider has no capacity for it"
    if isinstance(error, NotFound):
        return "the provider does not know its class, or a network that it is attached to"
    if found is not None and desired.size_bytes < found.used_bytes:
        return "its data does not fit: increase its size, or delete data"
    return "the provider rejected its spec: change it"


def _desired(storage: FileStorage, offered: str, attachments: tuple[CloudAttachment, ...]) -> CloudStorageSpec:
    spec = storage.spec
    return CloudStorageSpec(
        handle=rules.storage_handle(storage),
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


def controllers(
    ports: ReconcilePorts,
    ledger: QuotaLedger,
    providers: ProviderRegistry,
    *,
    settings: ControllerSettings | None = None,
) -> Sequence[Controller]:
    store = ports.store
    storages = FileStorageController(store=store, clock=ports.clock, providers=providers)
    return (
        lifecycle_controller(
            "filestorages",
            FileStorage,
            provision=storages.provision,
            deprovision=storages.deprovision,
            finalizer=CONTROLLER_FINALIZER,
            ports=ports,
            hooks=QuotaHooks(
                store=store,
                clock=ports.clock,
                ledger=ledger,
                charge=rules.charge_of,
                reference=lambda storage: rules.reference_of(storage.spec.operation or storage.name),
            ),
            sources=(
                Source(
                    Network,
                    when=is_provisioned,
                    keys=indexed(store, FileStorage, "network", lambda network: network.name),
                ),
                operation_source(FILE_STORAGE),
            ),
            settings=settings,
        ),
    )
