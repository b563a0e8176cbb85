"""Built-in roles and their permissions, copied by hand from the reference."""

from remuda.access.principal import Permission
from remuda.identity.rbac.roles import RolePermissions
from tests.kit.identity.resource_api import permission_set


def each(prefix: str, names: str, letters: str) -> frozenset[Permission]:
    """Return one right to each of several endpoints of a service."""
    return permission_set(", ".join(f"{prefix}:{name} {letters}" for name in names.split()))


def reads(permissions: frozenset[Permission]) -> frozenset[Permission]:
    return frozenset(Permission(permission.endpoint, "read") for permission in permissions)


V2 = "networks:v2 loadbalancers:v2 volumes:v2 filestorage:v2 securitygroups:v2"
SHOP = (
    each("region", "regions flavors filestorageclass:v2 volumeclasses:v2", "R")
    | each("storage", "objectstorageclasses", "R")
    | each("kubernetes", "regions flavors images", "R")
    | each("compute", "regions flavors images", "R")
    | permission_set("identity:quotas R")
)
"""What everybody in an organization may look at, but for images."""


WORK = (
    each("region", V2, "CRUD")
    | permission_set("region:sshcertificateauthorities:v2 CRD")
    | each("storage", "objectstorageendpoints objectstorageendpoints/accesskeys", "CRUD")
    | each("kubernetes", "clusters virtualclusters", "CRUD")
    | each("compute", "instances clusters", "CRUD")
)
"""What is made and removed in the course of a day."""


ADMINISTRATOR = (
    permission_set("identity:organizations RU, region:images CRD")
    | each("identity", "oauth2providers serviceaccounts users roles groups projects", "CRUD")
    | SHOP
    | WORK
)


PLATFORM = (
    each(
        "identity",
        "organizations oauth2providers roles serviceaccounts users groups projects projects/references quotas"
        " allocations",
        "CRUD",
    )
    | each(
        "region",
        "regions flavors images externalnetworks identities identities/references networks networks/references"
        " networks:v2 networks:v2/references loadbalancers:v2 securitygroups securitygroups:v2 servers servers:v2"
        " volumes:v2 filestorage:v2 filestorageclass:v2",
        "CRUD",
    )
    | permission_set("region:volumeclasses:v2 R, region:sshcertificateauthorities:v2 CRD")
    | each("kubernetes", "regions flavors images clustermanagers clusters virtualclusters", "CRUD")
    | each("compute", "regions flavors images instances clusters", "CRUD")
    | each("storage", "objectstorageclasses objectstorageendpoints objectstorageendpoints/accesskeys", "CRUD")
)


NOT_FOR_PLATFORM_READERS = (
    each("region", "identities identities/references networks/references networks:v2/references", "R")
    | each("region", "servers:v2 volumes:v2", "R")
    | each("kubernetes", "clusters virtualclusters", "R")
    | each("compute", "instances clusters", "R")
    | permission_set("storage:objectstorageendpoints/accesskeys R, identity:projects/references R")
)


EXPECTED = {
    "administrator": RolePermissions(organization=ADMINISTRATOR),
    "auditor": RolePermissions(organization=reads(ADMINISTRATOR)),
    "user": RolePermissions(
        organization=SHOP | permission_set("region:images CRD"), project=WORK | permission_set("identity:projects R")
    ),
    "reader": RolePermissions(
        organization=SHOP | permission_set("region:images R"),
        project=reads(WORK) | permission_set("identity:projects R"),
    ),
    "platform-administrator": RolePermissions(everywhere=PLATFORM),
    "platform-reader": RolePermissions(everywhere=reads(PLATFORM) - NOT_FOR_PLATFORM_READERS),
    "region-service": RolePermissions(
        everywhere=permission_set("identity:allocations CRUD, identity:projects R, identity:projects/references CD")
    ),
    "kubernetes-service": RolePermissions(
        everywhere=permission_set("identity:projects R, identity:projects/references CD, identity:allocations CRUD")
        | permission_set("region:identities CRD, region:identities/references CD, region:networks CRD")
        | each("region", "regions regions/detail flavors images externalnetworks", "R")
    ),
    "compute-service": RolePermissions(
        everywhere=permission_set(
            "identity:projects R, identity:allocations CRUD, region:identities CRD, region:images RC"
        )
        | permission_set("identity:quotas R")  # ours: it compares what is held with what there is
        | each("region", "regions flavors networks:v2 securitygroups:v2 sshcertificateauthorities:v2", "R")
        | permission_set("region:networks CRD")
        | each("region", "servers servers:v2 securitygroups", "CRUD")
    ),
    "storage-service": RolePermissions(
        everywhere=permission_set("identity:projects R, identity:projects/references CD, identity:allocations CRUD")
        | permission_set("region:networks:v2/references CRUD")
    ),
}
