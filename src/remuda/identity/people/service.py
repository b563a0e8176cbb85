"""The room's port: users, service accounts and groups.

Every method takes the context of the call, checks the caller's rights itself, and has at most one effect; what needs
more than one is an operation. A path that names an organization outside the caller's rights is 403, whether it exists
or not; an id of another organization's object is 404.
"""

from dataclasses import dataclass

from remuda.identity.people.accounts import Accounts
from remuda.identity.people.changes import Changes, Grants
from remuda.identity.people.groups import Groups
from remuda.identity.people.sagas import PeoplePorts
from remuda.identity.people.users import Users
from remuda.identity.settings import IdentitySettings
from remuda.operations.operations import Operations

__all__ = ["People", "people"]


@dataclass(frozen=True, slots=True, kw_only=True)
class People:
    """Everybody there is."""

    users: Users
    accounts: Accounts
    groups: Groups


def people(ports: PeoplePorts, *, operations: Operations, grants: Grants, settings: IdentitySettings) -> People:
    """Put the room together; `operations` has the sagas that are `bound` to the same ports."""
    store, clock = ports.store, ports.clock
    changes = Changes(store=store, operations=operations, grants=grants)
    return People(
        users=Users(store=store, changes=changes),
        accounts=Accounts(store=store, clock=clock, changes=changes, tokens=ports.tokens, tray=ports.tray),
        groups=Groups(store=store, clock=clock, settings=settings, grants=grants),
    )
