"""What the built-in roles allow in region, copied by hand from the reference (4.2 of identity, 1.10 of region)."""

from tests.kit.proofs.authorization.matrix import PermissionSet

_VERBS = {"C": "create", "R": "read", "U": "update", "D": "delete"}


def permission_set(text: str) -> PermissionSet:
    """Return permissions from text such as `networks:v2 CRUD, images CRD`."""
    entries = [entry.split() for entry in text.split(",")]
    return frozenset((f"region:{name}", _VERBS[letter]) for name, letters in entries for letter in letters)


def reads(held: PermissionSet) -> PermissionSet:
    """Return the same, as far as it is reading."""
    return frozenset((endpoint, "read") for endpoint, _ in held)


_WORK = "networks:v2 CRUD, loadbalancers:v2 CRUD, volumes:v2 CRUD, filestorage:v2 CRUD, securitygroups:v2 CRUD"
_CHOICE = "regions R, flavors R, filestorageclass:v2 R, volumeclasses:v2 R"

ADMINISTRATOR = permission_set(f"{_CHOICE}, images CRD, {_WORK}, sshcertificateauthorities:v2 CRD")
"""In the organization."""
AUDITOR = reads(ADMINISTRATOR)
"""In the organization."""
USER = permission_set(f"{_CHOICE}, images CRD")
"""In the organization."""
USER_IN_PROJECT = permission_set(f"{_WORK}, sshcertificateauthorities:v2 CRD")
"""In projects that list the group."""
READER = reads(USER)
"""In the organization."""
READER_IN_PROJECT = reads(USER_IN_PROJECT)
"""In projects that list the group."""

PLATFORM_ADMINISTRATOR = permission_set(
    "regions CRUD, flavors CRUD, images CRUD, externalnetworks CRUD, identities CRUD, identities/references CRUD, "
    "networks CRUD, networks/references CRUD, networks:v2 CRUD, networks:v2/references CRUD, loadbalancers:v2 CRUD, "
    "securitygroups CRUD, securitygroups:v2 CRUD, servers CRUD, servers:v2 CRUD, volumes:v2 CRUD, filestorage:v2 CRUD, "
    "filestorageclass:v2 CRUD, volumeclasses:v2 R, sshcertificateauthorities:v2 CRD"
)
PLATFORM_READER = permission_set(
    "regions R, flavors R, images R, externalnetworks R, networks R, networks:v2 R, loadbalancers:v2 R, "
    "securitygroups R, securitygroups:v2 R, servers R, filestorage:v2 R, filestorageclass:v2 R, volumeclasses:v2 R, "
    "sshcertificateauthorities:v2 R"
)
SERVICES: dict[str, PermissionSet] = {
    "unikorn-region": frozenset(),
    "unikorn-kubernetes": permission_set(
        "identities CRD, identities/references CD, regions R, regions/detail R, flavors R, images R, "
        "externalnetworks R, networks CRD"
    ),
    "unikorn-compute": permission_set(
        "identities CRD, regions R, flavors R, images RC, networks CRD, networks:v2 R, servers CRUD, servers:v2 CRUD, "
        "securitygroups CRUD, securitygroups:v2 R, sshcertificateauthorities:v2 R"
    ),
    "uni-storage": permission_set("networks:v2/references CRUD"),
}
"""By the names in their certificates, everywhere."""
