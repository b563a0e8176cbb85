"""The room's port: users, service accounts and groups.

Every method takes the context of the call, checks the caller's rights itself, and has at most one effect; what needs
more than one is an operation. A path that names an organization outside the caller's rights is 403, whether it exists
or not; an id of another organization's object is 404.
"""

from dataclasses import dataclass

from remuda.identity.users.groups import Groups
from remuda.identity.users.service import Accounts, Users


@dataclass(frozen=True, slots=True, kw_only=True)
class People:
    """Everybody there is."""

    users: Users
    accounts: Accounts
    groups: Groups
