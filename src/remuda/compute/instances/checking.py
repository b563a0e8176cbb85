"""What an instance cannot be, judged before anything is made: region must never have to refuse its server later.

Whatever region knows is asked as the caller: what it may not see is not there, or refused, in region's own words.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from remuda.access.principal import Context
from remuda.cloudinit.user_data import check_user_data, read_user_data
from remuda.compute.catalogue.rules import is_for_instances, usable_flavors
from remuda.compute.instances.schema import InstanceSpecWire, NetworkingWire
from remuda.compute.ports import RegionPort
from remuda.compute.seen import NetworkSeen
from remuda.kernel.errors import Invalid, Malformed
from remuda.quota.ports import Place
from remuda.resources.crud import each_once
from remuda.resources.ipv4 import prefix_or_refuse
from remuda.resources.schema import FlavorRead, ImageRead

_GB, _GIB = 10**9, 1 << 30


@dataclass(frozen=True, slots=True)
class Choice:
    """What an instance is made of."""

    flavor: FlavorRead
    image: ImageRead

    @property
    def gpus(self) -> int:
        """How many physical GPUs it has."""
        return gpus_of(self.flavor)


def gpus_of(flavor: FlavorRead) -> int:
    """Return how many physical GPUs a flavor has."""
    return 0 if flavor.spec.gpu is None else flavor.spec.gpu.physical_count


def check_network(network: NetworkSeen, place: Place) -> None:
    """Refuse a network of another project, or one that is about to go. Where the network is, the instance is."""
    if network.place != place:
        raise Invalid(
            "spec.networkId",
            "is of another project than spec.projectId says",
            remedy="name a network of that project, or the project that the network is in",
        )
    if network.is_marked:
        raise Malformed("network is being deleted")


async def choose(region: RegionPort, context: Context, network: NetworkSeen, wanted: InstanceSpecWire) -> Choice:
    """Return the flavor and image that are wanted in a network's region, if they are offered there and fit."""
    organization = network.place.organization
    flavor = find_flavor(await region.flavors(context, organization, network.region), wanted.flavor_id)
    image = find_image(await region.images(context, organization, network.region), wanted.image_id)
    check_fit(flavor, image)
    return Choice(flavor, image)


def find_flavor(flavors: Iterable[FlavorRead], flavor: str) -> FlavorRead:
    """Return a flavor that instances can have."""
    for each in usable_flavors(flavors):
        if each.metadata.id == flavor:
            return each
    raise Malformed("requested flavor does not exist or is not accessible")


def find_image(images: Iterable[ImageRead], image: str) -> ImageRead:
    """Return an image that is meant for instances, in whatever state."""
    for each in images:
        if each.metadata.id == image and is_for_instances(each):
            return each
    raise Malformed("requested image does not exist or is not accessible")


def check_fit(flavor: FlavorRead, image: ImageRead) -> None:
    """Refuse an image that cannot be used, or not with this flavor."""
    has, needs = flavor.spec, image.spec
    if image.status.state != "ready":
        raise Malformed(f"requested image is not ready for use: it is {image.status.state}")
    if needs.architecture != has.architecture:
        raise Malformed(
            f"image architecture {needs.architecture} is not compatible with flavor architecture {has.architecture}"
        )
    # A flavor without a disk boots from a volume. On the wire a disk is in whole GB, rounded down: the most that it can
    # have been is what counts, which is exact for disks of whole GiB, as images are.
    if has.disk and (has.disk + 1) * _GB <= needs.size_gib * _GIB:
        raise Malformed(f"flavor disk of {has.disk} GB is too small for an image of {needs.size_gib} GiB")
    runs_on = "baremetal" if has.baremetal else "virtualized"
    if needs.virtualization not in {"any", runs_on}:
        raise Malformed(f"image virtualization {needs.virtualization} is not compatible with a {runs_on} flavor")


async def check_access(region: RegionPort, context: Context, network: NetworkSeen, wanted: InstanceSpecWire) -> None:
    """Refuse what lets traffic or people in, where it is not the network's or the project's own."""
    await check_groups(region, context, wanted.networking, network.id)
    await check_authority(region, context, wanted.ssh_certificate_authority_id, network.place)
    check_said(wanted)


async def check_groups(region: RegionPort, context: Context, networking: NetworkingWire | None, network: str) -> None:
    """Refuse security groups that the caller cannot read, or that are another network's."""
    for group in () if networking is None else each_once(networking.security_groups):
        if (await region.security_group(context, group)).network != network:
            raise Invalid(
                "spec.networking.securityGroups",
                "a referenced security group must belong to the same network as the instance",
            )


async def check_authority(region: RegionPort, context: Context, authority: str | None, place: Place) -> None:
    """Refuse an SSH certificate authority that the caller cannot read, or that is another project's."""
    if authority is not None and (await region.authority(context, authority)).place != place:
        raise Invalid(
            "spec.sshCertificateAuthorityId",
            "sshCertificateAuthorityId must reference an SSH certificate authority in the same organization and "
            "project as the instance",
        )


def check_said(wanted: InstanceSpecWire) -> None:
    """Refuse user data and prefixes that are none."""
    has_authority = wanted.ssh_certificate_authority_id is not None
    check_user_data(read_user_data(wanted.user_data), with_authority=has_authority)
    check_sources(wanted.networking)


def check_sources(networking: NetworkingWire | None) -> None:
    """Refuse prefixes that are none."""
    for prefix in () if networking is None else networking.allowed_source_addresses:
        prefix_or_refuse(prefix, "failed to parse IPv4 prefix")  # the words that clients know
