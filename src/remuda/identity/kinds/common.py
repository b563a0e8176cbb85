"""The API groups that identity's kinds belong to.

How users and memberships stand.
"""

from typing import Literal

SHARED = "identity.unikorn-cloud.org"
"""Kinds that existing clusters have too."""
OURS = "identity.remuda"
"""Kinds that only we have."""
VERSION = "v1alpha1"
"""The version of all of them."""


UserState = Literal["active", "pending", "suspended"]
"""Only who is active can log in, and only an active membership gives rights."""
