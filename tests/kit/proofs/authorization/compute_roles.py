"""What the built-in roles allow in compute, copied by hand from the reference (4.2 of identity), and whom else it asks.

Compute asks region as the caller, and a project's policy is for who may change projects: so who calls compute is known
by the permissions to those, too.
"""

from tests.kit.proofs.authorization import identity_roles as identity
from tests.kit.proofs.authorization import region_roles as region
from tests.kit.proofs.authorization.matrix import NONE, PermissionSet

_VERBS = {"C": "create", "R": "read", "U": "update", "D": "delete"}


def permission_set(text: str) -> PermissionSet:
    """Return permissions from text such as `regions R, instances CRUD`."""
    entries = [entry.split() for entry in text.split(",")]
    return frozenset((f"compute:{name}", _VERBS[letter]) for name, letters in entries for letter in letters)


_CHOICE = permission_set("regions R, flavors R, images R")
_WORK = permission_set("instances CRUD, clusters CRUD")
_SEEN = permission_set("instances R, clusters R")

BESIDE: dict[PermissionSet, PermissionSet] = {
    region.ADMINISTRATOR: _CHOICE | _WORK | identity.ADMINISTRATOR,
    region.AUDITOR: _CHOICE | _SEEN | identity.AUDITOR,
    region.USER: _CHOICE | identity.USER,
    region.USER_IN_PROJECT: _WORK | identity.USER_IN_PROJECT,
    region.READER: _CHOICE | identity.USER,
    region.READER_IN_PROJECT: _SEEN | identity.USER_IN_PROJECT,
    region.PLATFORM_ADMINISTRATOR: permission_set(
        "regions CRUD, flavors CRUD, images CRUD, instances CRUD, clusters CRUD"
    )
    | identity.PLATFORM_ADMINISTRATOR,
    region.PLATFORM_READER: _CHOICE | identity.PLATFORM_READER,
}
"""What a role allows, beside what it allows in region. A service's allows nothing: instances are users's."""


def whole(held: PermissionSet) -> PermissionSet:
    """Return all that a role allows, by what it allows in region."""
    return held | BESIDE.get(held, NONE)
