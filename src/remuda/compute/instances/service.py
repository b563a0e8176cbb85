"""Instances: the service that the API's routes call.

Every method takes the context of the call, checks the caller's permissions itself, and has at most one effect, or runs
an operation. Updates are in `updates`, and actions on a running instance in `actions`.

A new instance is validated before anything is created, so that region does not reject its server later. Region is asked
on behalf of the caller: an object that the caller may not see is not found or forbidden, as region responds.
"""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

import structlog

from remuda.access.principal import Context, requester_of
from remuda.cloudinit.user_data import check_user_data, read_user_data
from remuda.compute.catalogue import usable_flavors
from remuda.compute.instances import rules
from remuda.compute.instances.sagas import CREATE_INSTANCE, NewInstance
from remuda.compute.instances.schema import InstanceCreate, InstanceNetworkingWire, InstanceRead, InstanceSpecWire
from remuda.compute.kinds import INSTANCE, ComputeInstance
from remuda.compute.policies import check_deletion_allowed
from remuda.compute.ports import IdentityPort, RegionClient, is_deleting, project_in
from remuda.kernel.clock import Clock
from remuda.kernel.errors import (
    Conflict,
    Forbidden,
    Invalid,
    KeyReused,
    Malformed,
    NotFound,
    ResponseNotStored,
    Unreadable,
    Unsealable,
)
from remuda.kernel.randomness import Randomness
from remuda.operations.kinds import Operation
from remuda.operations.saga import read_input
from remuda.operations.service import Operations
from remuda.quota.ports import ProjectRef, payer_principal
from remuda.reconcile.results import ReconcileContext
from remuda.reconcile.sources import names
from remuda.region.api import RegionApi
from remuda.region.images.schema import ImageQuery
from remuda.region.networks.schema import NetworkRead
from remuda.resources.conventions import NETWORK
from remuda.resources.crud import each_once, find, request_deletion, requested_event, retry_on_conflict
from remuda.resources.ipv4 import parse_prefix
from remuda.resources.metadata import new_tags
from remuda.resources.schema import FlavorRead, ImageRead
from remuda.resources.service import ProjectResourceService
from remuda.service import DocumentChecks
from remuda.store.contract import Store


@dataclass(frozen=True, slots=True)
class InstanceOffer:
    """The flavor and image of an instance."""

    flavor: FlavorRead
    image: ImageRead

    @property
    def gpus(self) -> int:
        return gpus_of(self.flavor)


def gpus_of(flavor: FlavorRead) -> int:
    return 0 if flavor.spec.gpu is None else flavor.spec.gpu.physical_count


def check_network(network: NetworkRead, project: ProjectRef) -> None:
    """Reject a network of another project, or one that is being deleted."""
    if project_in(network.metadata) != project:
        raise Invalid(
            "spec.networkId",
            "is of another project than spec.projectId says",
            remedy="name a network of that project, or the project that the network is in",
        )
    if is_deleting(network):
        raise Malformed("network is being deleted")


async def require_enabled(region: RegionClient, region_id: str) -> None:
    """Raise Forbidden if nothing new can be created in a region."""
    found = await region.api.get_region(await region.caller.as_service(), region_id)
    if found.spec.disabled:
        name = found.metadata.name
        raise Forbidden(f"The region {name} is disabled, so nothing new can be created in it: choose another region.")


async def choose(region: RegionApi, caller: Context, network: NetworkRead, body: InstanceSpecWire) -> InstanceOffer:
    """Return the requested flavor and image, if the region of the network offers them and they fit together."""
    id_, images = network.status.region_id, ImageQuery(organizations=(network.metadata.organization_id,))
    flavor = find_flavor(await region.list_flavors(caller, id_), body.flavor_id)
    image = find_image(await region.list_images(caller, id_, images), body.image_id)
    check_fit(flavor, image)
    return InstanceOffer(flavor, image)


def find_flavor(flavors: Iterable[FlavorRead], flavor: str) -> FlavorRead:
    for each in usable_flavors(flavors):
        if each.metadata.id == flavor:
            return each
    raise Malformed("requested flavor does not exist or is not accessible")


def find_image(images: Iterable[ImageRead], image: str) -> ImageRead:
    """Return an image of the region, in any state."""
    for each in images:
        if each.metadata.id == image:
            return each
    raise Malformed("requested image does not exist or is not accessible")


def check_fit(flavor: FlavorRead, image: ImageRead) -> None:
    """Reject an image that is not ready, or does not fit the flavor."""
    has, needs = flavor.spec, image.spec
    if image.status.state != "ready":
        raise Malformed(f"requested image is not ready for use: it is {image.status.state}")
    if needs.architecture != has.architecture:
        raise Malformed(
            f"image architecture {needs.architecture} is not compatible with flavor architecture {has.architecture}"
        )
    # A flavor without a disk boots from a volume.
    if has.disk and has.disk_gib < needs.size_gib:
        raise Malformed(f"flavor disk of {has.disk_gib} GiB is too small for an image of {needs.size_gib} GiB")
    runs_on = "baremetal" if has.baremetal else "virtualized"
    if needs.virtualization not in {"any", runs_on}:
        raise Malformed(f"image virtualization {needs.virtualization} is not compatible with a {runs_on} flavor")


async def check_access(
    region: RegionApi, caller: Context, network: NetworkRead, body: InstanceSpecWire, documents: DocumentChecks
) -> None:
    """Reject security groups of another network, an SSH certificate authority of another project, invalid texts."""
    await check_groups(region, caller, body.networking, network.metadata.id)
    await check_authority(region, caller, body.ssh_certificate_authority_id, project_in(network.metadata))
    if body.user_data:
        has_authority = body.ssh_certificate_authority_id is not None
        await documents.run(
            "spec.userData", lambda: check_user_data(read_user_data(body.user_data), with_authority=has_authority)
        )
    check_sources(body.networking)


async def check_groups(
    region: RegionApi, caller: Context, networking: InstanceNetworkingWire | None, network: str
) -> None:
    """Reject security groups that the caller cannot read, or of another network."""
    for group in () if networking is None else each_once(networking.security_groups):
        if (await region.get_security_group(caller, group)).status.network_id != network:
            raise Invalid(
                "spec.networking.securityGroups",
                "a referenced security group must belong to the same network as the instance",
            )


async def check_authority(region: RegionApi, caller: Context, authority: str | None, project: ProjectRef) -> None:
    """Reject an SSH certificate authority that the caller cannot read, or of another project."""
    if authority is None:
        return
    found = await region.get_ssh_certificate_authority(caller, authority)
    if project_in(found.metadata) != project:
        raise Invalid(
            "spec.sshCertificateAuthorityId",
            "sshCertificateAuthorityId must reference an SSH certificate authority in the same organization and "
            "project as the instance",
        )


def check_sources(networking: InstanceNetworkingWire | None) -> None:
    for prefix in () if networking is None else networking.allowed_source_addresses:
        parse_prefix(prefix, "failed to parse IPv4 prefix")  # the words that clients know


@dataclass(frozen=True, slots=True, kw_only=True)
class Instances(ProjectResourceService[ComputeInstance, InstanceRead]):
    """Instances of all projects."""

    kind, endpoint, view, noun = INSTANCE, "compute:instances", rules.INSTANCE_VIEW, "instance"

    clock: Clock
    identity: IdentityPort
    region: RegionClient
    operations: Operations
    documents: DocumentChecks

    async def create(self, context: Context, body: InstanceCreate) -> ComputeInstance:
        """Create an instance on a network that has none of its name, if the quota of its project allows it."""
        project = ProjectRef(body.spec.organization_id, body.spec.project_id)
        await self.authorize_create(context, project.organization, project.project)
        created = await self._find_created(context, body)
        if created is not None:
            return created
        new = await self._validated(context, project, body)
        return await self.run_create(context, self.operations, CREATE_INSTANCE, new, organization=project.organization)

    async def delete(self, context: Context, id: str) -> None:  # noqa: A002  as in `ProjectResourceService`
        """Request the deletion of an instance that is not protected from it."""

        async def delete() -> None:
            found = await self.get_authorized(context, "delete", id)
            event = requested_event(context, INSTANCE, found, "DeletionRequested")
            await request_deletion(
                self.store,
                context,
                found,
                self.writable(context, found),
                [*self.audit(context, found), event],
                check=lambda: check_deletion_allowed(self.store, found),
                if_unchanged=True,
            )

        await retry_on_conflict(delete)

    def is_shown(self, found: ComputeInstance) -> bool:
        """Return whether an instance has its scope. Without it no permission can be checked."""
        return rules.has_scope(found)

    async def created_by(self, operation: Operation) -> ComputeInstance:
        """Return the instance that an operation has created; its id may belong to a later one."""
        found = await find(self.store, ComputeInstance, operation.spec.subject)
        if found is None or found.spec.operation != operation.name:
            raise ResponseNotStored
        return found

    async def _validated(self, context: Context, project: ProjectRef, body: InstanceCreate) -> NewInstance:
        """Validate a new instance, in the order that clients know, and return the input of the saga."""
        region = self.region.api
        caller = await self.region.caller.impersonating(context, project.organization, project.project)
        network = await region.get_network(caller, body.spec.network_id)
        check_network(network, project)
        await require_enabled(self.region, network.status.region_id)
        choice = await choose(region, caller, network, body.spec)
        await check_access(region, caller, network, body.spec, self.documents)
        new_tags(body.metadata, context.principal)
        return NewInstance(
            instance=rules.instance_id(network.metadata.id, body.metadata.name),
            requested=body,
            region=network.status.region_id,
            gpus=choice.gpus,
            requester=requester_of(payer_principal(context.principal, project)),
        )

    async def _find_created(self, context: Context, body: InstanceCreate) -> ComputeInstance | None:
        """Return the instance that the same request has created, whatever has changed since."""
        if context.key is None:
            return None
        name = rules.instance_id(body.spec.network_id, body.metadata.name)
        found = await find(self.store, ComputeInstance, name)
        operation = None if found is None else await find(self.store, Operation, found.spec.operation)
        if operation is None or operation.spec.request != context.operation or operation.phase != "done":
            return None
        if read_input(CREATE_INSTANCE, operation.spec).requested != body:
            raise KeyReused
        return found


async def delete_instances_on(store: Store, network: str, randomness: Randomness, *, controller: str) -> int:
    """Request the deletion of every instance on a network, and return their number. It can be repeated."""
    count = 0
    async for name in names(store, ComputeInstance, labels={NETWORK: network}):
        try:
            instance = await find(store, ComputeInstance, name, include_deleting=False)
        except (Unreadable, Unsealable):
            structlog.get_logger().exception("instance not deleted", instance=name, network=network)
            continue
        if instance is None:
            continue
        context = ReconcileContext(
            controller=controller, key=name, cause="event", registry=store.registry, randomness=randomness
        )
        event = context.event(
            instance, "NetworkDeleted", network=network, reason="the network is being deleted, and the instance with it"
        )
        with suppress(NotFound, Conflict):  # it was deleted meanwhile; an instance that followed it has its own event
            await store.delete(ComputeInstance, name, uid=instance.uid, log=[event])
            count += 1
    return count
