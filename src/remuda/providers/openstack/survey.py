"""Survey of a cloud: what it offers, and what it lacks for everything that a region can do.

Permissions are tried in the region's own project, and undone. If the project was not there before, a survey that fails
removes it again.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any

import msgspec

from remuda.kernel.errors import Unavailable
from remuda.providers.contract.catalogue import CloudExternalNetwork, CloudFlavor, CloudImage
from remuda.providers.contract.common import InUse
from remuda.providers.openstack.catalogue import OpenStackExternalNetworks, OpenStackFlavors
from remuda.providers.openstack.client import CloudSession
from remuda.providers.openstack.errors import ApiError, QuotaUsedUp
from remuda.providers.openstack.image_properties import image_of
from remuda.providers.openstack.images import OpenStackImages
from remuda.providers.openstack.probe import ProbeFailed
from remuda.providers.openstack.provider import OpenStackSettings
from remuda.providers.openstack.tenancies import MEMBER_ROLES, OWN_PROJECT, TenancyAccess

REQUIRED_SERVICES = ("compute", "image", "network")
_FORBIDDEN, _CONFLICT = 403, 409


class _Named(msgspec.Struct, frozen=True):
    id: str
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lack:
    """Thing that a cloud lacks, and what its operator enters to add it."""

    capability: str
    message: str
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """Offer of a cloud, and the things that it lacks."""

    flavors: Sequence[CloudFlavor]
    images: Sequence[CloudImage]
    external_networks: Sequence[CloudExternalNetwork]
    lacks: Sequence[Lack]


@asynccontextmanager
async def own_project_kept(access: TenancyAccess) -> AsyncIterator[None]:
    """Remove the region's own project if it was not there before the block, and the block fails."""
    existed = await access.find_project(OWN_PROJECT) is not None
    try:
        yield
    except BaseException:
        if not existed:
            await _delete_own_project(access)
        raise


async def remove_own_project(access: TenancyAccess) -> None:
    """Remove the region's own project, or raise InUse while it has images: Glance would keep them for ever."""
    project = await access.find_project(OWN_PROJECT)
    if project is None:
        return
    own = await access.own()
    if await own.items("image", "/images", "images", dict[str, Any], owner=project.id, visibility="all", limit=1):
        raise InUse("project", project.name)
    await _delete_own_project(access)


async def _delete_own_project(access: TenancyAccess) -> None:
    project = await access.find_project(OWN_PROJECT)
    if project is not None:
        await access.domain.delete("identity", f"/projects/{project.id}")


async def survey(access: TenancyAccess, settings: OpenStackSettings) -> Survey:
    """Return what a cloud offers and lacks, or raise ProbeFailed if it lacks a service without which nothing works."""
    services = await access.domain.services()
    for service in REQUIRED_SERVICES:
        if service not in services:
            where = f"the region {settings.address.region}" if settings.address.region else "the catalogue"
            raise ProbeFailed("region", f"is wrong, or {where} has no {service} service", "openstack catalog list")
    own = await access.own()
    networks = OpenStackExternalNetworks(access, settings.external_network_ids, settings.external_network_tags)
    flavors, external, found = await asyncio.gather(
        OpenStackFlavors(access, settings.flavors).flavors(),
        networks.external_networks(),
        OpenStackImages(access).images(),
    )
    lacks = await asyncio.gather(
        _unlabelled(own),
        _missing_roles(access),
        _quota_lacks(own, own_project=await _own_id(access), services=services),
        _vlan_lacks(own, settings.physical_network),
        _placement_lacks(own, services),
    )
    images = [each for each in found if not each.organization]
    return Survey(
        flavors=flavors,
        images=images,
        external_networks=external,
        lacks=[*_offer_lacks(flavors, images, external), *chain.from_iterable(lacks)],
    )


async def _own_id(access: TenancyAccess) -> str:
    project = await access.find_project(OWN_PROJECT)
    assert project is not None, "a session in it exists"
    return project.id


def _offer_lacks(
    flavors: Sequence[CloudFlavor], images: Sequence[CloudImage], external: Sequence[CloudExternalNetwork]
) -> Iterator[Lack]:
    if not flavors:
        yield Lack(
            capability="servers",
            message="no flavor is offered",
            command="openstack flavor create --public --vcpus 2 --ram 4096 --disk 40 m1.medium",
        )
    if not images:
        yield Lack(
            capability="servers",
            message="no public image has the properties that a region needs",
            command=f"openstack image set --public {_PROPERTIES} IMAGE",
        )
    if not external:
        yield Lack(
            capability="public addresses",
            message="no external network is offered",
            command="openstack network create --external --provider-network-type flat "
            "--provider-physical-network PHYSICAL public",
        )


_PROPERTIES = " ".join(
    f"--property {name}={value}"
    for name, value in (
        ("unikorn:os:kernel", "linux"),
        ("unikorn:os:family", "debian"),
        ("unikorn:os:distro", "ubuntu"),
        ("unikorn:os:version", "24.04"),
        ("unikorn:virtualization", "virtualized"),
    )
)
"""Properties of an image that is offered, with values as an example."""


async def _unlabelled(own: CloudSession) -> list[Lack]:
    found: list[dict[str, Any]] = await own.items(
        "image", "/images", "images", dict[str, Any], visibility="public", limit=200
    )
    return [
        Lack(
            capability="images",
            message=f"the image {each.get('name') or each['id']} is not offered: it has not the properties",
            command=f"openstack image set {_PROPERTIES} {each['id']}",
        )
        for each in found
        if image_of(each) is None
    ]


async def _missing_roles(access: TenancyAccess) -> list[Lack]:
    known = {each.name for each in await access.domain.items("identity", "/roles", "roles", _Named)}
    return [
        Lack(capability="networks", message=f"there is no role {role}", command=f"openstack role create {role}")
        for role in MEMBER_ROLES
        if role not in known
    ]


_RULE = "role:manager and project_id:%(project_id)s"
_QUOTAS: Mapping[str, tuple[str, str, str, Sequence[tuple[str, str]]]] = {
    "compute": (
        "/os-quota-sets/{project}",
        "quota_set",
        "instances",
        [("nova", "os_compute_api:os-quota-sets:update"), ("nova", "os_compute_api:os-quota-sets:delete")],
    ),
    "network": ("/quotas/{project}", "quota", "port", [("neutron", "update_quota"), ("neutron", "delete_quota")]),
    "block-storage": (
        "/os-quota-sets/{project}",
        "quota_set",
        "volumes",
        [("cinder", "volume_extension:quotas:update"), ("cinder", "volume_extension:quotas:delete")],
    ),
}
"""For each service the path, the envelope and one quota, and the policy lines that allow to set it."""

_ADMINS = {"nova": "rule:context_is_admin", "neutron": "rule:admin_only", "cinder": "rule:admin_api"}


def _policy(service: str, rule: str, check: str) -> str:
    """Return a line for the policy file of a service."""
    return f'/etc/{service}/policy.yaml: "{rule}": "{check}"'


async def _quota_lacks(own: CloudSession, *, own_project: str, services: frozenset[str]) -> list[Lack]:
    lacks = []
    for service, (path, envelope, quota, rules) in _QUOTAS.items():
        if service in services and not await _try_set(own, service, path.format(project=own_project), envelope, quota):
            lacks += [
                Lack(
                    capability="quotas",
                    message=f"the account may not set quotas of {name}: a policy line is missing",
                    command=_policy(name, rule, f"{_ADMINS[name]} or ({_RULE})"),
                )
                for name, rule in rules
            ]
    return lacks


async def _try_set(own: CloudSession, service: str, path: str, envelope: str, quota: str) -> bool:
    """Set a quota and remove it again; return whether both are allowed."""
    try:
        await own.put(service, path, {envelope: {quota: -1}})
        await own.delete(service, path)
    except ApiError as error:
        if error.http_status != _FORBIDDEN:
            raise
        return False
    except QuotaUsedUp:  # the message of a missing policy line speaks of quotas, too
        return False
    return True


_VLAN = 4094
_SEGMENT_RULES = (
    "create_network:provider:network_type",
    "create_network:provider:physical_network",
    "create_network:provider:segmentation_id",
)


async def _vlan_lacks(own: CloudSession, physical_network: str) -> list[Lack]:
    if not physical_network:
        return []
    segment = {
        "provider:network_type": "vlan",
        "provider:physical_network": physical_network,
        "provider:segmentation_id": _VLAN,
    }
    body = {"network": {"name": "remuda-probe", **segment}}
    try:
        created: _Named = await own.post("network", "/networks", body, "network", _Named)
    except ApiError as error:
        if error.http_status == _CONFLICT:
            return []  # the VLAN is in use, which is found out after the permission
        if error.http_status == _FORBIDDEN:
            return [
                Lack(
                    capability="VLAN networks",
                    message="the account may not create networks on a VLAN: a policy line is missing",
                    command=_policy("neutron", rule, f"rule:admin_only or ({_RULE})"),
                )
                for rule in _SEGMENT_RULES
            ]
        return [
            Lack(
                capability="VLAN networks",
                message=f"networks on the VLANs of {physical_network} cannot be created: {error.reason}",
                command="openstack network agent list",
            )
        ]
    await own.delete("network", f"/networks/{created.id}")
    return []


async def _placement_lacks(own: CloudSession, services: frozenset[str]) -> list[Lack]:
    lack = Lack(
        capability="pinned hosts",
        message="the account may not read the hosts of Placement: a policy line is missing",
        command=_policy("placement", "placement:resource_providers:list", "role:admin or role:manager"),
    )
    if "placement" not in services:
        return [lack]
    try:
        await own.items("placement", "/resource_providers", "resource_providers", dict[str, Any])
    except ApiError as error:
        if error.http_status != _FORBIDDEN:
            raise
        return [lack]
    except Unavailable:
        return []
    return []
