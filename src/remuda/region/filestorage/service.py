"""File storage: the service that the API's routes call, and the addresses at which it is attached to networks.

File storage is reached at the first free addresses of a network's storage range, as many as the parallelism of its
class. Load balancers from before the range was reserved may hold some of them. An attachment never changes: only
networks that are new to a storage are validated.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address
from uuid import UUID

import msgspec

from remuda.access.checks import is_allowed_in_project, require_in_organization
from remuda.access.principal import Context, Principal, requester_of
from remuda.http.responses import Collection
from remuda.kernel.clock import Clock
from remuda.kernel.errors import Invalid, NotFound
from remuda.operations.service import Operations
from remuda.quota.lifecycle import project_ref
from remuda.quota.lock import require_unlocked
from remuda.quota.ports import ProjectRef, payer_principal
from remuda.quota.sagas import run_update
from remuda.reconcile.status import is_provisioned
from remuda.region.catalogue.provider_registry import ProviderRegistry, require, require_enabled
from remuda.region.filestorage import rules
from remuda.region.filestorage.classes import is_offered
from remuda.region.filestorage.rules import (
    CLASS_VIEW,
    STORAGE_VIEW,
    check_not_smaller_than_usage,
    check_policies,
    check_size,
    parallelism_of,
)
from remuda.region.filestorage.sagas import CREATE_STORAGE, UPDATE_STORAGE, NewStorage, Resized
from remuda.region.filestorage.schema import (
    ClassQuery,
    ClassRead,
    StorageCreate,
    StorageCreateSpec,
    StorageRead,
    StorageSpecWire,
    StorageUpdate,
)
from remuda.region.kinds.common import IpRange
from remuda.region.kinds.filestorage import FILE_STORAGE, Attachment, FileStorage, FileStorageClass
from remuda.region.kinds.networks import Address, Network, address_name
from remuda.region.names import permission
from remuda.region.networks.address_plan import Ipv4Range
from remuda.resources.conventions import ORGANIZATION, REGION, is_api_v2, region_of
from remuda.resources.crud import each_once, exists, find, retry_on_conflict
from remuda.resources.metadata import new_tags
from remuda.resources.service import ProjectResourceService
from remuda.store.contract import Store

_FIELD = "spec.attachments.networkIds"
_NO_USABLE_ADDRESS = "network storage range does not contain any usable addresses"


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachmentBuilder:
    """Builds attachments of storage of one class, in one project and region, on behalf of a principal."""

    store: Store
    principal: Principal
    project: ProjectRef
    region: str
    storage_class: FileStorageClass | None
    """None if it was deleted: then no new attachment is possible."""

    async def build(self, networks: Sequence[str], before: Sequence[Attachment] = ()) -> tuple[Attachment, ...]:
        """Return attachments to these networks, each once, or raise Invalid."""
        kept = {each.network_id: each for each in before}
        return tuple([kept.get(each) or await self._build(each) for each in each_once(networks)])

    async def _build(self, name: str) -> Attachment:
        if self.storage_class is None:
            raise Invalid("spec.storageClassId", "storage class not found")
        network = await self._network(name)
        at_cloud = network.status.openstack
        if at_cloud is None:
            raise Invalid(_FIELD, "network requested is not a suitable network")
        if at_cloud.storage_range is None:
            raise Invalid(_FIELD, "network requested does not have a storage range configured")
        count = parallelism_of(self.storage_class)
        used = await self._free_range(network, _parse_range(at_cloud.storage_range), count)
        return Attachment(
            network_id=name,
            segmentation_id=at_cloud.vlan_id,
            ip_range=IpRange(start_ip=str(used.first), end_ip=str(used.last)),
        )

    async def _free_range(self, network: Network, storage_range: Ipv4Range, count: int) -> Ipv4Range:
        """Return the first consecutive free addresses: `count` of them, or else the longest run."""
        best: Ipv4Range | None = None
        first = storage_range.first
        for ip in storage_range:
            if await exists(self.store, Address, address_name(network.name, ip)):
                first = ip + 1
            elif best is None or int(ip) - int(first) >= len(best):
                best = Ipv4Range(first, ip)
            if best is not None and len(best) == count:
                break
        if best is None:
            raise Invalid(_FIELD, _NO_USABLE_ADDRESS)
        return best

    async def _network(self, name: str) -> Network:
        if not _is_uuid(name):
            raise Invalid(_FIELD, "invalid network ID")
        network = await find(self.store, Network, name)
        if network is None or not is_api_v2(network):
            raise Invalid(_FIELD, "network not found")
        if project_ref(network) != self.project:
            raise Invalid(_FIELD, self._other_project_message(project_ref(network)))
        if region_of(network) != self.region:
            raise Invalid(_FIELD, "has a network of another region", remedy="name networks of the storage's region")
        if network.is_deleting or not is_provisioned(network):
            raise Invalid(_FIELD, "network not provisioned")
        return network

    def _other_project_message(self, project: ProjectRef) -> str:
        """Return the error for a network of another project, which is named only to callers that may read it."""
        read = permission("networks:v2", "read")
        if is_allowed_in_project(self.principal, read, project.organization, project.project):
            return "network not available in project"
        return "network not found"


def _is_uuid(text: str) -> bool:
    try:
        return str(UUID(text)) == text.lower()
    except ValueError:
        return False


def _parse_range(found: IpRange) -> Ipv4Range:
    try:
        first, last = IPv4Address(found.start_ip), IPv4Address(found.end_ip)
    except AddressValueError:
        raise Invalid(_FIELD, "network storage range is not a valid IPv4 range") from None
    if last < first:
        raise Invalid(_FIELD, _NO_USABLE_ADDRESS)
    return Ipv4Range(first, last)


_READ_CLASSES = permission("filestorageclass:v2", "read")
_Classes = Collection[FileStorageClass, list[ClassRead]]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStorageService(ProjectResourceService[FileStorage, StorageRead]):
    """File storage, whichever API version created it, and its classes."""

    kind, endpoint, view = FILE_STORAGE, "region:filestorage:v2", STORAGE_VIEW
    noun, is_versioned = "filestorage", False

    clock: Clock
    providers: ProviderRegistry
    operations: Operations

    async def list_classes(self, context: Context, query: ClassQuery) -> _Classes:
        """Return the offered classes that the caller may see, in regions that it may see."""
        regions = {region.name for region in await self.providers.visible_regions(context.principal)}
        if query.regions:
            regions.intersection_update(query.regions)
        return Collection(
            store=self.store, kind=FileStorageClass, view=CLASS_VIEW, visible=_visible(context.principal, regions)
        )

    async def create(self, context: Context, body: StorageCreate) -> FileStorage:
        """Create file storage if the quota of its project allows it."""
        spec, principal = body.spec, context.principal
        project = ProjectRef(spec.organization_id, spec.project_id)
        await self.authorize_create(context, project.organization, project.project)
        check_size(spec.size_gib)
        await self._check_region(principal, spec.region_id)
        storage_class = await self._class(principal, spec)
        builder = AttachmentBuilder(
            store=self.store, principal=principal, project=project, region=spec.region_id, storage_class=storage_class
        )
        attachments = await builder.build(_networks(spec))
        _check_policies(spec)
        new_tags(body.metadata, principal)
        new = NewStorage(
            storage=context.operation,
            requested=body,
            attachments=attachments,
            requester=requester_of(payer_principal(principal, project)),
        )
        return await self.run_create(context, self.operations, CREATE_STORAGE, new, organization=project.organization)

    async def update(self, context: Context, storage: str, body: StorageUpdate) -> FileStorage:
        async def change() -> FileStorage:
            found = await self.get_authorized(context, "update", storage)
            self.reject_if_deleting(found)
            await require_unlocked(self.store, found, found.spec.operation)
            self.check_if_match(context, found)
            check_size(body.spec.size_gib)
            check_not_smaller_than_usage(found, body.spec.size_gib)
            attachments = await self._attach(context.principal, found, body.spec)
            _check_policies(body.spec)
            now, log = self.clock.now(), self.audit(context, found)
            changed = rules.changed_storage(found, body, attachments, context.principal, now)
            if changed.spec.size == found.spec.size:
                return await self.save(context, found, changed)
            resized = Resized(update=body, attachments=attachments)
            await run_update(self.operations, UPDATE_STORAGE, context, found, resized, now=now, log=log)
            return await self.store.get(FileStorage, storage)

        return await retry_on_conflict(change)

    async def _check_region(self, principal: Principal, region: str) -> None:
        try:
            cloud = await self.providers.get_visible(principal, region)
        except NotFound:
            raise Invalid("spec.regionId", "region does not exist") from None
        require(cloud.provider.file_storages)
        require_enabled(cloud.region)

    async def _class(self, principal: Principal, requested: StorageCreateSpec) -> FileStorageClass:
        found = await find(self.store, FileStorageClass, requested.storage_class_id, include_deleting=False)
        if found is None or not is_offered(found):
            raise Invalid("spec.storageClassId", "storage class not found")
        organization = found.metadata.labels.get(ORGANIZATION)
        if organization is not None:
            require_in_organization(principal, _READ_CLASSES, organization)
        if found.metadata.labels.get(REGION) != requested.region_id:
            raise Invalid("spec.storageClassId", "storage class not available in region")
        return found

    async def _attach(
        self, principal: Principal, found: FileStorage, requested: StorageSpecWire
    ) -> tuple[Attachment, ...]:
        builder = AttachmentBuilder(
            store=self.store,
            principal=principal,
            project=project_ref(found),
            region=region_of(found),
            storage_class=await find(self.store, FileStorageClass, found.spec.storage_class_id),
        )
        return await builder.build(_networks(requested), found.spec.attachments)


def _networks(requested: StorageSpecWire) -> Sequence[str]:
    attachments = requested.attachments
    return () if isinstance(attachments, msgspec.UnsetType) else attachments.network_ids


def _check_policies(requested: StorageSpecWire) -> None:
    if not isinstance(requested.snapshot_policies, msgspec.UnsetType):
        check_policies(requested.snapshot_policies)


def _visible(principal: Principal, regions: set[str]) -> Callable[[FileStorageClass], bool]:
    access = principal.access
    readable = {name for name, inside in access.organizations.items() if _READ_CLASSES in inside.permissions}

    def is_visible(found: FileStorageClass) -> bool:
        organization = found.metadata.labels.get(ORGANIZATION)
        is_readable = organization is None or _READ_CLASSES in access.everywhere or organization in readable
        return is_readable and is_offered(found) and found.metadata.labels.get(REGION) in regions

    return is_visible
