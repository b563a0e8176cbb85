"""The room's routes."""

from remuda.http.routes import AnyRoute, ListQuery, Route
from remuda.identity.names import ORGANIZATION, OrganizationPath
from remuda.identity.permissions import permission
from remuda.identity.users import handlers
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
from remuda.identity.users.service import ACCOUNTS
from remuda.identity.users.users import USERS

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
            handler=handlers.list_users,
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
            handler=handlers.create_user,
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
            handler=handlers.update_user,
        ),
        Route(
            method="DELETE",
            path=f"{_USERS}/{{userID}}",
            name="delete_user",
            summary="Remove a user from an organization",
            scope="organization",
            permission=permission(USERS, "delete"),
            path_type=UserPath,
            handler=handlers.delete_user,
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
            handler=handlers.list_accounts,
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
            handler=handlers.create_account,
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
            handler=handlers.update_account,
        ),
        Route(
            method="DELETE",
            path=f"{_ACCOUNTS}/{{serviceAccountID}}",
            name="delete_service_account",
            summary="Delete a service account, and end its token",
            scope="organization",
            permission=permission(ACCOUNTS, "delete"),
            path_type=AccountPath,
            handler=handlers.delete_account,
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
            handler=handlers.rotate_account,
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
            handler=handlers.list_groups,
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
            handler=handlers.create_group,
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
            handler=handlers.get_group,
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
            handler=handlers.update_group,
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
            handler=handlers.delete_group,
        ),
    ]
