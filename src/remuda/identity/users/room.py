"""The room of people, put together."""

from remuda.identity.settings import IdentitySettings
from remuda.identity.users.changes import Changes, Grants
from remuda.identity.users.facade import People
from remuda.identity.users.groups import Groups
from remuda.identity.users.sagas import PeoplePorts
from remuda.identity.users.service import Accounts
from remuda.identity.users.users import Users
from remuda.operations.service import Operations


def people_room(ports: PeoplePorts, *, operations: Operations, grants: Grants, settings: IdentitySettings) -> People:
    """Return the room; `operations` has the sagas that are `bound` to the same ports."""
    store, clock = ports.store, ports.clock
    changes = Changes(store=store, operations=operations, grants=grants)
    return People(
        users=Users(store=store, changes=changes, tray=ports.tray),
        accounts=Accounts(store=store, clock=clock, changes=changes, tokens=ports.tokens, tray=ports.tray),
        groups=Groups(store=store, clock=clock, settings=settings, grants=grants),
    )
