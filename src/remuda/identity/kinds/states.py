"""How users and memberships stand."""

from typing import Literal

UserState = Literal["active", "pending", "suspended"]
"""Only who is active can log in, and only an active membership gives rights."""
