"""What the built-in roles allow in region, copied by hand from the reference (4.2 of identity, 1.10 of region)."""

from tests.kit.proofs.authorization.matrix import Rights

_VERBS = {"C": "create", "R": "read", "U": "update", "D": "delete"}


def rights(text: str) -> Rights:
    """Return rights from text such as `networks:v2 CRUD, images CRD`."""
    entries = [entry.split() for entry in text.split(",")]
    return frozenset((f"region:{name}", _VERBS[letter]) for name, letters in entries for letter in letters)


def reads(held: Rights) -> Rights:
    """Return the same, as far as it is reading."""
    return frozenset((endpoint, "read") for endpoint, _ in held)


_WORK = "networks:v2 CRUD, loadbalancers:v2 CRUD, volumes:v2 CRUD, filestorage:v2 CRUD, securitygroups:v2 CRUD"
_CHOICE = "regions R, flavors R, filestorageclass:v2 R, volumeclasses:v2 R"

ADMINISTRATOR = rights(f"{_CHOICE}, images CRD, {_WORK}, sshcertificateauthorities:v2 CRD")
"""In the organization."""
AUDITOR = reads(ADMINISTRATOR)
"""In the organization."""
USER = rights(f"{_CHOICE}, images CRD")
"""In the organization."""
USER_IN_PROJECT = rights(f"{_WORK}, sshcertificateauthorities:v2 CRD")
"""In projects that list the group."""
READER = reads(USER)
"""In the organization."""
READER_IN_PROJECT = reads(USER_IN_PROJECT)
"""In projects that list the group."""

PLATFORM_ADMINISTRATOR = rights(
    "regions CRUD, flavors CRUD, images CRUD, externalnetworks CRUD, identities CRUD, identities/references CRUD, "
    "networks CRUD, networks/references CRUD, networks:v2 CRUD, networks:v2/references CRUD, loadbalancers:v2 CRUD, "
    "securitygroups CRUD, securitygroups:v2 CRUD, servers CRUD, servers:v2 CRUD, volumes:v2 CRUD, filestorage:v2 CRUD, "
    "filestorageclass:v2 CRUD, volumeclasses:v2 R, sshcertificateauthorities:v2 CRD"
)
PLATFORM_READER = rights(
    "regions R, flavors R, images R, externalnetworks R, networks R, networks:v2 R, loadbalancers:v2 R, "
    "securitygroups R, securitygroups:v2 R, servers R, filestorage:v2 R, filestorageclass:v2 R, volumeclasses:v2 R, "
    "sshcertificateauthorities:v2 R"
)
SERVICES: dict[str, Rights] = {
    "unikorn-region": frozenset(),
    "unikorn-kubernetes": rights(
        "identities CRD, identities/references CD, regions R, regions/detail R, flavors R, images R, "
        "externalnetworks R, networks CRD"
    ),
    "unikorn-compute": rights(
        "identities CRD, regions R, flavors R, images RC, networks CRD, networks:v2 R, servers CRUD, servers:v2 CRUD, "
        "securitygroups CRUD, securitygroups:v2 R, sshcertificateauthorities:v2 R"
    ),
    "uni-storage": rights("networks:v2/references CRUD"),
}
"""By the names in their certificates, everywhere."""
