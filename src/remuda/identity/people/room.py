"""The room of people, put together."""

from remuda.identity.people.accounts import Accounts
from remuda.identity.people.changes import Changes, Grants
from remuda.identity.people.groups import Groups
from remuda.identity.people.sagas import PeoplePorts
from remuda.identity.people.service import People
from remuda.identity.people.users import Users
from remuda.identity.settings import IdentitySettings
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
