"""Identity's API as it should be: every operation, with the right it asks for and where, from the reference (1 and 4.2).

What the reference does not have is ours: clients of OAuth2 and password links are for operators, limits of projects for
who may change all projects of the organization, usage for who may read its quotas (and shows what is in the projects
that they may read), the audit for who may read the organization, and what was revoked and all
projects together for every service.
"""

from collections.abc import Mapping
from typing import Any

from tests.kit.proofs.authorization.matrix import Row

_ORGANIZATIONS = "/api/v1/organizations"
_ORGANIZATION = _ORGANIZATIONS + "/{organizationID}"
_PROJECTS = _ORGANIZATION + "/projects"
_PROJECT = _PROJECTS + "/{projectID}"
DOMAIN = _ORGANIZATION + "/domain"
"""Path of the domain that an organization claims."""
_REFERENCE = _PROJECT + "/references/{reference}"
_PROVIDERS = _ORGANIZATION + "/oauth2providers"
_PROVIDER = _PROVIDERS + "/{providerID}"
_USERS = _ORGANIZATION + "/users"
_USER = _USERS + "/{userID}"
_ACCOUNTS = _ORGANIZATION + "/serviceaccounts"
_ACCOUNT = _ACCOUNTS + "/{serviceAccountID}"
_GROUPS = _ORGANIZATION + "/groups"
_GROUP = _GROUPS + "/{groupid}"
_ALLOCATIONS = _PROJECT + "/allocations"
_ALLOCATION = _ALLOCATIONS + "/{allocationID}"
_CLIENTS = "/api/v1/oauth2clients"
_CLIENT = _CLIENTS + "/{clientID}"
_OAUTH = "/oauth2/v2"

Values = Mapping[str, str]


def _named(values: Values, **spec: Any) -> Any:
    return {"metadata": {"name": values["name"]}, "spec": spec}


def _organization(values: Values) -> Any:
    return _named(values, organizationType="adhoc")


def _domain(values: Values) -> Any:
    return {"domain": claimed_domain(values["organizationID"])}


def claimed_domain(organization: str) -> str:
    """Return the domain that an organization of the matrix claims."""
    return f"{organization}.example.com"


def _project(values: Values) -> Any:
    return _named(values, groupIDs=[group for group in values["groups"].split() if group])


def _provider(values: Values) -> Any:
    return _named(values, issuer="https://idp.example.com", clientID="us")


def _user(values: Values) -> Any:
    return {"spec": {"subject": f"{values['name']}@example.com", "state": "active", "groupIDs": []}}


def _account(values: Values) -> Any:
    return _named(values, groupIDs=[])


def _group(values: Values) -> Any:
    return _named(values, roleIDs=[], serviceAccountIDs=[])


def _quotas(_values: Values) -> Any:
    return {"quotas": [{"kind": "servers", "quantity": 1000}]}


def _allocation(values: Values) -> Any:
    held = [{"kind": "servers", "committed": 0, "reserved": 0}]
    return _named(values, kind="things.example.org", id=values["owner"], allocations=held)


def _client(values: Values) -> Any:
    return _named(values, redirectUris=["https://app.example.com/callback"])


def _suspension(values: Values) -> Any:
    return {"subject": f"{values['name']}@example.com", "reason": "the matrix"}


def _link(_values: Values) -> Any:
    return {"subject": "member@example.com"}


def _reset(_values: Values) -> Any:
    return {"subject": "without.sessions@example.com"}


def _sealed(values: Values) -> Any:
    return {"request": values["sealed"]}


def _fields(*names: str, **fixed: str) -> Any:
    return lambda values: {**fixed, **{name: values[name] for name in names}}


def _row(
    method: str, path: str, operation: str, endpoint: str, verb: str, scope: str = "organization", **rest: Any
) -> Row:
    names = "place" if "{organizationID}" in path else "nothing"
    right = (f"identity:{endpoint}", verb)
    return Row(operation=operation, method=method, path=path, right=right, **{"scope": scope, "names": names} | rest)


def _open(method: str, path: str, operation: str, scope: str = "authenticated", **rest: Any) -> Row:
    names = "place" if "{organizationID}" in path else "nothing"
    return Row(operation=operation, method=method, path=path, **{"scope": scope, "names": names} | rest)


# fmt: off
# ruff: noqa: E501  a table is read line by line
TENANCY = (
    _open("GET", _ORGANIZATIONS, "list_organizations"),
    _row("POST", _ORGANIZATIONS, "create_organization", "organizations", "create", "everywhere", success=202, body=_organization),
    _row("GET", _ORGANIZATION, "get_organization", "organizations", "read"),
    _row("PUT", _ORGANIZATION, "update_organization", "organizations", "update", body=_organization),
    _row("DELETE", _ORGANIZATION, "delete_organization", "organizations", "delete", "everywhere", success=202),
    _row("GET", DOMAIN, "get_domain", "organizations", "read"),
    _row("PUT", f"{DOMAIN}/approval", "approve_domain", "organizations", "update", "everywhere", body=_domain),
    _row("DELETE", f"{DOMAIN}/approval", "withdraw_domain_approval", "organizations", "update", "everywhere", success=204),
    _row("GET", "/api/v1/projects", "list_all_projects", "projects", "read", "everywhere"),
    _row("GET", _PROJECTS, "list_projects", "projects", "read", "project"),
    _row("POST", _PROJECTS, "create_project", "projects", "create", success=202, body=_project),
    _row("GET", _PROJECT, "get_project", "projects", "read", "project"),
    _row("PUT", _PROJECT, "update_project", "projects", "update", "project", body=_project),
    _row("DELETE", _PROJECT, "delete_project", "projects", "delete", "project", success=202),
    _row("PUT", _REFERENCE, "add_project_reference", "projects/references", "create", "project", success=201),
    _row("DELETE", _REFERENCE, "remove_project_reference", "projects/references", "delete", "project", success=204),
    _open("GET", "/api/v1/oauth2providers", "list_platform_providers"),
    _row("GET", _PROVIDERS, "list_providers", "oauth2providers", "read"),
    _row("POST", _PROVIDERS, "create_provider", "oauth2providers", "create", success=201, body=_provider),
    _row("PUT", _PROVIDER, "update_provider", "oauth2providers", "update", thing="providerID", body=_provider),
    _row("DELETE", _PROVIDER, "delete_provider", "oauth2providers", "delete", thing="providerID"),
    _open("GET", "/api/version", "read_version"),
)
USERS_AND_GROUPS = (
    _row("GET", _USERS, "list_users", "users", "read"),
    _row("POST", _USERS, "create_user", "users", "create", success=201, body=_user),
    _row("PUT", _USER, "update_user", "users", "update", thing="userID", body=_user),
    _row("DELETE", _USER, "delete_user", "users", "delete", thing="userID"),
    _row("GET", _ACCOUNTS, "list_service_accounts", "serviceaccounts", "read"),
    _row("POST", _ACCOUNTS, "create_service_account", "serviceaccounts", "create", success=201, body=_account),
    _row("PUT", _ACCOUNT, "update_service_account", "serviceaccounts", "update", thing="serviceAccountID", body=_account),
    _row("DELETE", _ACCOUNT, "delete_service_account", "serviceaccounts", "delete", thing="serviceAccountID"),
    _row("POST", f"{_ACCOUNT}/rotate", "rotate_service_account", "serviceaccounts", "update", thing="serviceAccountID"),
    _row("GET", _GROUPS, "list_groups", "groups", "read"),
    _row("POST", _GROUPS, "create_group", "groups", "create", success=201, body=_group),
    _row("GET", _GROUP, "get_group", "groups", "read", thing="groupid"),
    _row("PUT", _GROUP, "update_group", "groups", "update", thing="groupid", body=_group),
    _row("DELETE", _GROUP, "delete_group", "groups", "delete", thing="groupid"),
)
PERMISSIONS = (
    _row("GET", f"{_ORGANIZATION}/roles", "list_roles", "roles", "read"),
    _open("GET", "/api/v1/acl", "get_acl"),
    _open("GET", f"{_ORGANIZATION}/acl", "get_organization_acl"),
    _row("GET", "/api/v1/revocations", "list_revocations", "allocations", "read", "everywhere"),
)
QUOTAS = (
    _row("GET", f"{_ORGANIZATION}/quotas", "get_quotas", "quotas", "read"),
    _row("PUT", f"{_ORGANIZATION}/quotas", "set_quotas", "quotas", "update", body=_quotas),
    _row("PATCH", f"{_ORGANIZATION}/quotas", "change_quotas", "quotas", "update", body=_quotas),
    _row("GET", f"{_PROJECT}/quotas", "get_project_quotas", "quotas", "read"),
    _row("PUT", f"{_PROJECT}/quotas", "set_project_quotas", "projects", "update", body=_quotas),
    _row("PATCH", f"{_PROJECT}/quotas", "change_project_quotas", "projects", "update", body=_quotas),
    _row("GET", f"{_ORGANIZATION}/allocations", "list_usage", "quotas", "read"),
    _row("POST", _ALLOCATIONS, "create_allocation", "allocations", "create", "project", success=201, body=_allocation),
    _row("GET", _ALLOCATION, "get_allocation", "allocations", "read", "project", thing="allocationID"),
    _row("PUT", _ALLOCATION, "change_allocation", "allocations", "update", "project", thing="allocationID", body=_allocation),
    _row("DELETE", _ALLOCATION, "delete_allocation", "allocations", "delete", "project", thing="allocationID", success=202),
    _row("POST", f"{_ALLOCATION}/confirm", "confirm_allocation", "allocations", "update", "project", thing="allocationID"),
    _row("POST", f"{_ALLOCATION}/renew", "renew_allocation", "allocations", "create", "project", thing="allocationID"),
)
OPERATING = (
    _row("GET", _CLIENTS, "list_oauth2_clients", "oauth2providers", "read", "everywhere"),
    _row("POST", _CLIENTS, "create_oauth2_client", "oauth2providers", "create", "everywhere", success=201, body=_client),
    _row("GET", _CLIENT, "get_oauth2_client", "oauth2providers", "read", "everywhere", thing="clientID"),
    _row("PUT", _CLIENT, "update_oauth2_client", "oauth2providers", "update", "everywhere", thing="clientID", body=_client),
    _row("DELETE", _CLIENT, "delete_oauth2_client", "oauth2providers", "delete", "everywhere", thing="clientID", success=204),
    _row("POST", f"{_CLIENT}/rotate", "rotate_oauth2_client", "oauth2providers", "update", "everywhere", thing="clientID"),
    _row("POST", "/api/v1/passwords", "create_password_link", "users", "update", "everywhere", success=201, body=_link),
    _row("POST", "/api/v1/secondfactorresets", "reset_second_factors", "users", "update", "everywhere", success=204, body=_reset),
    _row("GET", "/api/v1/suspensions", "list_suspensions", "users", "read", "everywhere"),
    _row("POST", "/api/v1/suspensions", "create_suspension", "users", "update", "everywhere", success=201, body=_suspension),
    _row("DELETE", "/api/v1/suspensions/{suspensionID}", "delete_suspension", "users", "update", "everywhere", thing="suspensionID", success=204),
    _row("GET", f"{_ORGANIZATION}/audit", "list_audit", "organizations", "read"),
    _row("GET", "/api/v1/audit", "list_system_audit", "organizations", "read", "everywhere"),
)
PUBLIC = (
    _open("POST", f"{_OAUTH}/token", "exchange_grant", "public", is_form=True, body=_fields("subject_token", grant_type="urn:ietf:params:oauth:grant-type:token-exchange", subject_token_type="urn:ietf:params:oauth:token-type:access_token")),
    _open("POST", f"{_OAUTH}/device_authorization", "authorize_device", "public", is_form=True, body=_fields(client_id="remuda-cli")),
    _open("POST", f"{_OAUTH}/revoke", "revoke_token", "public", is_form=True, body=_fields(client_id="remuda-cli", token="of nobody")),
    _open("POST", f"{_OAUTH}/introspect", "introspect_token", "public", is_form=True, body=_fields("client_id", "client_secret", token="of nobody")),
    _open("GET", f"{_OAUTH}/userinfo", "read_userinfo", "public"),
    _open("POST", f"{_OAUTH}/userinfo", "post_userinfo", "public", is_form=True, body=_fields()),
    _open("GET", f"{_OAUTH}/jwks", "read_keys", "public"),
    _open("GET", "/.well-known/openid-configuration", "read_openid_configuration", "public"),
    _open("GET", "/.well-known/oauth-authorization-server", "read_authorization_server", "public"),
    _open("GET", "/.well-known/openid-protected-resource", "read_protected_resource", "public"),
    _open("GET", f"{_OAUTH}/authorization", "authorize", "public", success=400),
    _open("POST", f"{_OAUTH}/authorization", "authorize_by_form", "public", is_form=True, success=400, body=_fields(client_id="nobody", redirect_uri="https://nowhere.example.com/")),
    _open("POST", f"{_OAUTH}/login", "log_in", "public", is_form=True, success=400, body=_fields(state="nonsense", email="user@example.com", password="guessed")),
    _open("POST", f"{_OAUTH}/login/password", "replace_password", "public", is_form=True, success=400, body=_fields(state="nonsense", new_password="x", repeated_password="x")),
    _open("POST", f"{_OAUTH}/login/continue", "proceed_with_login", "public", is_form=True, success=400, body=_fields(state="nonsense")),
    _open("GET", "/oidc/callback", "complete_login", "public", success=400),
    _open("GET", f"{_OAUTH}/logout", "log_out", "public"),
    _open("POST", f"{_OAUTH}/logout", "log_out_by_form", "public", is_form=True, success=302, body=_fields()),
    _open("GET", f"{_OAUTH}/device", "show_device", "public"),
    _open("POST", f"{_OAUTH}/device", "connect_device", "public", is_form=True, success=400, body=_fields(user_code="of nobody")),
    _open("GET", f"{_OAUTH}/account", "show_account", "public"),
    _open("GET", f"{_OAUTH}/invitations", "show_invitations", "public"),
    _open("POST", f"{_OAUTH}/invitations", "decide_invitations", "public", is_form=True, success=400, body=_fields(state="nonsense")),
    _open("POST", f"{_OAUTH}/account", "change_account", "public", is_form=True, success=400, body=_fields(state="nonsense")),
    _open("GET", f"{_OAUTH}/password", "show_password", "public"),
    _open("POST", f"{_OAUTH}/password", "choose_password", "public", is_form=True, success=400, body=_fields(link="nonsense")),
    _open("POST", f"{_OAUTH}/login/factor", "verify_factor", "public", is_form=True, success=400, body=_fields(state="nonsense", code="123456")),
    _open("POST", f"{_OAUTH}/login/completion", "complete_enrolment", "public", is_form=True, success=400, body=_fields(state="nonsense")),
    _open("POST", f"{_OAUTH}/enrolment", "enrol_factor", "public", is_form=True, success=400, body=_fields(state="nonsense", kind="app")),
    _open("GET", f"{_OAUTH}/factors", "show_factors", "public"),
    _open("POST", f"{_OAUTH}/factors", "add_factor", "public", is_form=True, success=400, body=_fields(state="nonsense", kind="app")),
    _open("POST", f"{_OAUTH}/factors/removal", "remove_factor", "public", is_form=True, success=400, body=_fields(state="nonsense", authenticator="nothing")),
    _open("POST", f"{_OAUTH}/factors/recovery-codes", "replace_recovery_codes", "public", is_form=True, success=400, body=_fields(state="nonsense")),
    _open("POST", "/api/v1/operator/tokens", "create_operator_token", "public", body=_sealed),
    _open("POST", "/api/v1/operator/passwords", "create_operator_password_link", "public", success=401, body=_sealed),
)
# fmt: on

RESOURCES = {
    "tenancy": TENANCY,
    "users": USERS_AND_GROUPS,
    "permissions": PERMISSIONS,
    "quotas": QUOTAS,
    "operating": OPERATING,
    "public": PUBLIC,
}
ROWS = tuple(row for rows in RESOURCES.values() for row in rows)
