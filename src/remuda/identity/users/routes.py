"""The room's routes.

The room's handlers: each asks the service and renders what it says.
"""

from remuda.http.responses import Collection, Shown
from remuda.http.routes import AnyRoute, Call, ListQuery, Nothing, Route
from remuda.identity.kinds.users import Group
from remuda.identity.names import ORGANIZATION, OrganizationPath, permission
from remuda.identity.users.facade import People
from remuda.identity.users.groups import GROUPS
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
from remuda.identity.users.service import ACCOUNTS, USERS


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


_USERS = f"{ORGANIZATION}/{USERS}"
_ACCOUNTS = f"{ORGANIZATION}/{ACCOUNTS}"
_GROUPS = f"{ORGANIZATION}/{GROUPS}"


def routes() -> list[AnyRoute]:
    """Return them all."""
    return [*_users(), *_accounts(), *_groups()]


def _users() -> list[AnyRoute]:
    return [
        Route(
            method="GET",
            path=_USERS,
            name="list_users",
            summary="List the users of an organization",
            scope="organization",
            permission=permission(USERS, "read"),
            path_type=OrganizationPath,
            answer_type=list[UserRead],
            handler=list_users,
        ),
        Route(
            method="POST",
            path=_USERS,
            name="create_user",
            summary="Make somebody a user of an organization",
            description="Who is a user of it already keeps its state, and is from then on in the groups given.",
            scope="organization",
            permission=permission(USERS, "create"),
            path_type=OrganizationPath,
            body_type=UserWrite,
            answer_type=UserRead,
            success=201,
            handler=create_user,
        ),
        Route(
            method="PUT",
            path=f"{_USERS}/{{userID}}",
            name="update_user",
            summary="Change a user's state and groups",
            scope="organization",
            permission=permission(USERS, "update"),
            path_type=UserPath,
            body_type=UserWrite,
            answer_type=UserRead,
            handler=update_user,
        ),
        Route(
            method="DELETE",
            path=f"{_USERS}/{{userID}}",
            name="delete_user",
            summary="Remove a user from an organization",
            scope="organization",
            permission=permission(USERS, "delete"),
            path_type=UserPath,
            handler=delete_user,
        ),
    ]


def _accounts() -> list[AnyRoute]:
    return [
        Route(
            method="GET",
            path=_ACCOUNTS,
            name="list_service_accounts",
            summary="List the service accounts of an organization",
            description="A service account without the permission sees itself.",
            scope="organization",
            permission=permission(ACCOUNTS, "read"),
            path_type=OrganizationPath,
            answer_type=list[AccountRead],
            handler=list_accounts,
        ),
        Route(
            method="POST",
            path=_ACCOUNTS,
            name="create_service_account",
            summary="Make a service account, whose token is shown this once",
            scope="organization",
            permission=permission(ACCOUNTS, "create"),
            path_type=OrganizationPath,
            body_type=AccountWrite,
            answer_type=AccountRead,
            success=201,
            holds_secret=True,
            handler=create_account,
        ),
        Route(
            method="PUT",
            path=f"{_ACCOUNTS}/{{serviceAccountID}}",
            name="update_service_account",
            summary="Change a service account and its groups",
            scope="organization",
            permission=permission(ACCOUNTS, "update"),
            path_type=AccountPath,
            body_type=AccountWrite,
            answer_type=AccountRead,
            handler=update_account,
        ),
        Route(
            method="DELETE",
            path=f"{_ACCOUNTS}/{{serviceAccountID}}",
            name="delete_service_account",
            summary="Delete a service account, and end its token",
            scope="organization",
            permission=permission(ACCOUNTS, "delete"),
            path_type=AccountPath,
            handler=delete_account,
        ),
        Route(
            method="POST",
            path=f"{_ACCOUNTS}/{{serviceAccountID}}/rotate",
            name="rotate_service_account",
            summary="Give a service account a new token, which is shown this once, and end the old one",
            description="A service account may do this to itself without the permission.",
            scope="organization",
            permission=permission(ACCOUNTS, "update"),
            path_type=AccountPath,
            answer_type=AccountRead,
            holds_secret=True,
            handler=rotate_account,
        ),
    ]


def _groups() -> list[AnyRoute]:
    return [
        Route(
            method="GET",
            path=_GROUPS,
            name="list_groups",
            summary="List the groups of an organization",
            scope="organization",
            permission=permission(GROUPS, "read"),
            path_type=OrganizationPath,
            query_type=ListQuery,
            answer_type=list[GroupRead],
            handler=list_groups,
        ),
        Route(
            method="POST",
            path=_GROUPS,
            name="create_group",
            summary="Make a group",
            scope="organization",
            permission=permission(GROUPS, "create"),
            path_type=OrganizationPath,
            body_type=GroupWrite,
            answer_type=GroupRead,
            success=201,
            handler=create_group,
        ),
        Route(
            method="GET",
            path=f"{_GROUPS}/{{groupid}}",
            name="get_group",
            summary="Read a group",
            scope="organization",
            permission=permission(GROUPS, "read"),
            path_type=GroupPath,
            answer_type=GroupRead,
            handler=get_group,
        ),
        Route(
            method="PUT",
            path=f"{_GROUPS}/{{groupid}}",
            name="update_group",
            summary="Change a group, and who is in it",
            scope="organization",
            permission=permission(GROUPS, "update"),
            path_type=GroupPath,
            body_type=GroupWrite,
            is_conditional=True,
            handler=update_group,
        ),
        Route(
            method="DELETE",
            path=f"{_GROUPS}/{{groupid}}",
            name="delete_group",
            summary="Delete a group",
            scope="organization",
            permission=permission(GROUPS, "delete"),
            path_type=GroupPath,
            is_conditional=True,
            handler=delete_group,
        ),
    ]
