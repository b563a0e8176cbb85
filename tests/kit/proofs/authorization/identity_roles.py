"""What the built-in roles allow in identity, copied by hand from the reference (4.2)."""

from tests.kit.proofs.authorization.matrix import Rights

_VERBS = {"C": "create", "R": "read", "U": "update", "D": "delete"}


def rights(text: str) -> Rights:
    """Return rights from text such as `organizations RU, groups CRUD`."""
    entries = [entry.split() for entry in text.split(",")]
    return frozenset((f"identity:{name}", _VERBS[letter]) for name, letters in entries for letter in letters)


def _reads(held: Rights) -> Rights:
    return frozenset((endpoint, "read") for endpoint, _ in held)


ADMINISTRATOR = rights(
    "organizations RU, oauth2providers CRUD, serviceaccounts CRUD, users CRUD, roles CRUD, groups CRUD, "
    "projects CRUD, quotas R"
)
"""In the organization."""
AUDITOR = _reads(ADMINISTRATOR)
"""In the organization."""
USER = rights("quotas R")
"""In the organization; a reader's are the same."""
USER_IN_PROJECT = rights("projects R")
"""In projects that list the group; a reader's are the same."""

PLATFORM_ADMINISTRATOR = rights(
    "organizations CRUD, oauth2providers CRUD, roles CRUD, serviceaccounts CRUD, users CRUD, groups CRUD, "
    "projects CRUD, projects/references CRUD, quotas CRUD, allocations CRUD"
)
PLATFORM_READER = rights(
    "organizations R, oauth2providers R, roles R, serviceaccounts R, users R, groups R, projects R, quotas R, "
    "allocations R"
)
SERVICES = {
    "unikorn-region": rights("allocations CRUD, projects R, projects/references CD"),
    "unikorn-kubernetes": rights("allocations CRUD, projects R, projects/references CD"),
    "unikorn-compute": rights("allocations CRUD, projects R, quotas R"),
    "uni-storage": rights("allocations CRUD, projects R, projects/references CD"),
}
"""By the names in their certificates, everywhere."""
