"""What operations have in hand of users, service accounts and groups.

To change a user or a service account together with its groups takes several writes, which an operation holds together.
A `Claim` on the object says which operation has it in hand, and what to put back; a `Mark` in a group says the same of
one member there.
"""

from collections.abc import Mapping

from remuda.identity.kinds.states import UserState
from remuda.kernel.tags import Tag
from remuda.store.objects import StoredStruct


class Before(StoredStruct, frozen=True):
    """What an operation puts back if it is undone."""

    name: str = ""
    annotations: Mapping[str, str] = {}
    tags: tuple[Tag, ...] = ()
    state: UserState = "active"


class Claim(StoredStruct, frozen=True):
    """The operation that last had an object in hand, and still has it while it is open."""

    operation: str
    before: Before | None = None
    """None if the operation made the object."""


class Mark(StoredStruct, frozen=True):
    """What an operation did to one member of a group, for as long as nobody else decides about the group's members."""

    member: str
    """The value of the index `member`."""
    operation: str
    was_in: bool = False
    """It was in the group before."""
