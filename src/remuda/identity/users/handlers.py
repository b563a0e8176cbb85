"""The room's handlers: each asks the service and renders what it says."""

from remuda.http.responses import Collection, Shown
from remuda.http.routes import Call, ListQuery, Nothing
from remuda.identity.kinds.users import Group
from remuda.identity.names import OrganizationPath
from remuda.identity.users.facade import People
from remuda.identity.users.schema import (
    AccountPath,
    AccountRead,
    AccountWrite,
    GroupPath,
    GroupRead,
    GroupWrite,
    UserPath,
    UserRead,
    UserWrite,
)


async def list_users(people: People, call: Call[OrganizationPath, Nothing, Nothing]) -> list[UserRead]:
    return list(await people.users.list(call.context, call.path.organization))


async def create_user(people: People, call: Call[OrganizationPath, Nothing, UserWrite]) -> UserRead:
    """Make somebody a user of an organization."""
    return await people.users.create(call.context, call.path.organization, call.body)


async def update_user(people: People, call: Call[UserPath, Nothing, UserWrite]) -> UserRead:
    return await people.users.update(call.context, call.path.organization, call.path.user, call.body)


async def delete_user(people: People, call: Call[UserPath, Nothing, Nothing]) -> None:
    """End a membership."""
    await people.users.delete(call.context, call.path.organization, call.path.user)


async def list_accounts(people: People, call: Call[OrganizationPath, Nothing, Nothing]) -> list[AccountRead]:
    """Return the service accounts of an organization."""
    return list(await people.accounts.list(call.context, call.path.organization))


async def create_account(people: People, call: Call[OrganizationPath, Nothing, AccountWrite]) -> AccountRead:
    """Make a service account."""
    return await people.accounts.create(call.context, call.path.organization, call.body)


async def update_account(people: People, call: Call[AccountPath, Nothing, AccountWrite]) -> AccountRead:
    """Change a service account."""
    return await people.accounts.update(call.context, call.path.organization, call.path.account, call.body)


async def delete_account(people: People, call: Call[AccountPath, Nothing, Nothing]) -> None:
    await people.accounts.delete(call.context, call.path.organization, call.path.account)


async def rotate_account(people: People, call: Call[AccountPath, Nothing, Nothing]) -> AccountRead:
    """Give a service account a new token."""
    return await people.accounts.rotate(call.context, call.path.organization, call.path.account)


async def list_groups(
    people: People, call: Call[OrganizationPath, ListQuery, Nothing]
) -> Collection[Group, list[GroupRead]]:
    return await people.groups.list(call.context, call.path.organization)


async def create_group(people: People, call: Call[OrganizationPath, Nothing, GroupWrite]) -> Shown[GroupRead]:
    return Shown(people.groups.view, await people.groups.create(call.context, call.path.organization, call.body))


async def get_group(people: People, call: Call[GroupPath, Nothing, Nothing]) -> Shown[GroupRead]:
    return Shown(people.groups.view, await people.groups.get(call.context, call.path.organization, call.path.group))


async def update_group(people: People, call: Call[GroupPath, Nothing, GroupWrite]) -> None:
    await people.groups.update(call.context, call.path.organization, call.path.group, call.body)


async def delete_group(people: People, call: Call[GroupPath, Nothing, Nothing]) -> None:
    await people.groups.delete(call.context, call.path.organization, call.path.group)
