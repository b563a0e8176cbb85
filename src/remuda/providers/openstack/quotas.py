"""Quotas of projects at OpenStack. They are lifted: our own quotas count, not those of the cloud."""

from collections.abc import Mapping

import structlog

from remuda.providers.openstack.client import CloudSession
from remuda.providers.openstack.errors import Denied

_UNLIMITED: Mapping[str, tuple[str, str, tuple[str, ...]]] = {
    "compute": (
        "/os-quota-sets/{project}",
        "quota_set",
        ("instances", "cores", "ram", "key_pairs", "metadata_items", "server_groups", "server_group_members"),
    ),
    "network": (
        "/quotas/{project}",
        "quota",
        (
            *("network", "subnet", "subnetpool", "port", "router", "floatingip"),
            *("security_group", "security_group_rule", "rbac_policy"),
        ),
    ),
    "block-storage": (
        "/os-quota-sets/{project}",
        "quota_set",
        ("volumes", "gigabytes", "snapshots", "backups", "backup_gigabytes", "per_volume_gigabytes", "groups"),
    ),
}
"""Paths, envelopes and names of quotas, by service."""


async def lift_quotas(manager: CloudSession, project: str) -> None:
    """Lift the quotas of a project. Where the cloud denies that, its own quotas apply."""
    services = await manager.services()
    for service, (path, key, names) in _UNLIMITED.items():
        if service in services:
            try:
                await manager.put(service, path.format(project=project), {key: dict.fromkeys(names, -1)})
            except Denied as error:
                structlog.get_logger().warning("quotas not lifted", service=service, reason=error.reason)


async def restore_quotas(manager: CloudSession, project: str) -> None:
    """Remove the quotas that were set. Where the cloud denies that, they stay, for a project that is gone."""
    services = await manager.services()
    for service, (path, _, _) in _UNLIMITED.items():
        if service in services:
            try:
                await manager.delete(service, path.format(project=project))
            except Denied as error:
                structlog.get_logger().warning("quotas not removed", service=service, reason=error.reason)
