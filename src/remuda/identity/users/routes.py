"""Routes of users, service accounts and groups."""

from functools import partial

from remuda.http.crud import crud
from remuda.http.routes import AnyRoute, Route
from remuda.http.schema import NameQuery
from remuda.identity.names import ORGANIZATION, permission
from remuda.identity.users import schema
from remuda.identity.users.groups import GROUPS, Groups
from remuda.identity.users.service import ACCOUNTS, USERS, Accounts, Users
from remuda.resources.schema import OrganizationPath

ROUTES: list[AnyRoute] = [
    *crud(
        Users,
        path=f"{ORGANIZATION}/{USERS}",
        item=schema.UserPath,
        parent=OrganizationPath,
        name="user",
        noun="a user",
        scope="organization",
        permission=partial(permission, USERS),
        query=NameQuery,
        create=schema.UserWrite,
        update=schema.UserWrite,
        read=schema.UserRead,
        without=("get",),
        accepted=(),
        is_conditional=False,
        summaries={
            "list": "List the users of an organization",
            "create": "Create a user of an organization",
            "update": "Update a user's state and groups",
            "delete": "Remove a user from an organization",
        },
        descriptions={"create": "An existing user of it keeps its state, and gets the groups given."},
    ),
    *crud(
        Accounts,
        path=f"{ORGANIZATION}/{ACCOUNTS}",
        item=schema.AccountPath,
        parent=OrganizationPath,
        name="service_account",
        noun="a service account",
        scope="organization",
        permission=partial(permission, ACCOUNTS),
        query=NameQuery,
        create=schema.AccountWrite,
        update=schema.AccountWrite,
        read=schema.AccountRead,
        without=("get",),
        accepted=(),
        is_conditional=False,
        summaries={
            "list": "List the service accounts of an organization",
            "create": "Create a service account, whose token is shown this once",
            "update": "Update a service account and its groups",
            "delete": "Delete a service account, and revoke its token",
        },
        descriptions={"list": "A service account without the permission sees itself."},
        overrides={"create": {"has_secret": True}},
    ),
    Route(
        method="POST",
        path=f"{ORGANIZATION}/{ACCOUNTS}/{{serviceAccountID}}/rotate",
        name="rotate_service_account",
        summary="Replace the token of a service account; the new one is shown this once",
        description="A service account may do this to itself without the permission.",
        scope="organization",
        permission=permission(ACCOUNTS, "update"),
        path_type=schema.AccountPath,
        response_type=schema.AccountRead,
        has_secret=True,
        service=Accounts,
        calls=Accounts.rotate,
    ),
    *crud(
        Groups,
        path=f"{ORGANIZATION}/{GROUPS}",
        item=schema.GroupPath,
        parent=OrganizationPath,
        name="group",
        noun="a group",
        scope="organization",
        permission=partial(permission, GROUPS),
        create=schema.GroupWrite,
        update=schema.GroupWrite,
        read=schema.GroupRead,
        accepted=(),
        summaries={"list": "List the groups of an organization", "update": "Update a group and its members"},
    ),
]
