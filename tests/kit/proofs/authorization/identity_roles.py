"""What the built-in roles allow in identity, copied by hand from the reference (4.2)."""

from tests.kit.proofs.authorization.matrix import PermissionSet

_VERBS = {"C": "create", "R": "read", "U": "update", "D": "delete"}


def permission_set(text: str) -> PermissionSet:
    """Return permissions from text such as `organizations RU, groups CRUD`."""
    entries = [entry.split() for entry in text.split(",")]
    return frozenset((f"identity:{name}", _VERBS[letter]) for name, letters in entries for letter in letters)


def _reads(held: PermissionSet) -> PermissionSet:
    return frozenset((endpoint, "read") for endpoint, _ in held)


ADMINISTRATOR = permission_set(
    "organizations RU, oauth2providers CRUD, serviceaccounts CRUD, users CRUD, roles CRUD, groups CRUD, "
    "projects CRUD, quotas R"
)
"""In the organization."""
AUDITOR = _reads(ADMINISTRATOR)
"""In the organization."""
USER = permission_set("quotas R")
"""In the organization; a reader's are the same."""
USER_IN_PROJECT = permission_set("projects R")
"""In projects that list the group; a reader's are the same."""

PLATFORM_ADMINISTRATOR = permission_set(
    "organizations CRUD, oauth2providers CRUD, roles CRUD, serviceaccounts CRUD, users CRUD, groups CRUD, "
    "projects CRUD, projects/references CRUD, quotas CRUD, allocations CRUD"
)
PLATFORM_READER = permission_set(
    "organizations R, oauth2providers R, roles R, serviceaccounts R, users R, groups R, projects R, quotas R, "
    "allocations R"
)
SERVICES = {
    "unikorn-region": permission_set("allocations CRUD, projects R, projects/references CD"),
    "unikorn-kubernetes": permission_set("allocations CRUD, projects R, projects/references CD"),
    "unikorn-compute": permission_set("allocations CRUD, projects R, quotas R"),
    "uni-storage": permission_set("allocations CRUD, projects R, projects/references CD"),
}
"""By the names in their certificates, everywhere."""
