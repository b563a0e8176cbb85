"""API groups of identity's kinds, and states of users and memberships."""

from typing import Any, Literal

from remuda.store.kinds import Kind
from remuda.store.objects import ResourceT

SHARED = "identity.unikorn-cloud.org"
"""Group of the kinds that existing clusters have, too."""
REMUDA_GROUP = "identity.remuda"
"""Group of the kinds that only Remuda has."""
_VERSION = "v1alpha1"

DISPLAY_NAME = {"Display name": ".metadata.labels.unikorn-cloud\\.org/name"}

LOCAL_ISSUER = "uni"
"""Name of our own issuer in stored objects, tokens and configurations: it stays when the URL changes."""

UserState = Literal["active", "pending", "suspended"]
"""Only an active user can log in, and only an active membership grants permissions."""


def shared_kind(kind: type[ResourceT], plural: str, **fields: Any) -> Kind[ResourceT]:
    """Return a kind that existing clusters have, too. `fields` are those of `Kind`."""
    return Kind(type=kind, group=SHARED, version=_VERSION, plural=plural, **fields)


def remuda_kind(kind: type[ResourceT], plural: str, **fields: Any) -> Kind[ResourceT]:
    return Kind(type=kind, group=REMUDA_GROUP, version=_VERSION, plural=plural, **fields)
