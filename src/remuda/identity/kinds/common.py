"""API groups of identity's kinds, and states of users and memberships."""

from typing import Literal

SHARED = "identity.unikorn-cloud.org"
"""Group of the kinds that existing clusters have, too."""
REMUDA_GROUP = "identity.remuda"
"""Group of the kinds that only Remuda has."""
VERSION = "v1alpha1"
"""Version of all kinds."""


UserState = Literal["active", "pending", "suspended"]
"""Only an active user can log in, and only an active membership grants permissions."""
