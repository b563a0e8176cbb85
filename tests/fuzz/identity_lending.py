"""Lends real things to generated requests of identity, so that they are not all about what is not there."""

from collections.abc import Callable, Mapping
from typing import Any

from schemathesis import Case

from remuda.identity.quotas.schema import MAX_QUANTITY
from tests.fuzz.identity_target import CALLBACK, DOMAIN, IdentityTarget
from tests.fuzz.lender import Lender

_UNPROVED = {"client_secret": "", "client_assertion": "", "client_assertion_type": ""}
"""Nothing that would have to hold."""
_LOGIN = {
    "client_id": "remuda-cli",
    "redirect_uri": "http://127.0.0.1/callback",
    "response_type": "code",
    "code_challenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
    "code_challenge_method": "S256",
    "prompt": "login",
    "max_age": "",
    "response_mode": "query",
    "request": "",
    "request_uri": "",
    "registration": "",
    "acr_values": "",
}


class IdentityLending(Lender):
    """A hook that is called before each request, and one after it."""

    def __init__(self, target: IdentityTarget) -> None:
        super().__init__(target, target.setup.ids)
        self._target, self._setup = target, target.setup
        self._forms: Mapping[str, Callable[[], dict[str, Any]]] = {
            "exchange_grant": self._exchange,
            "authorize_device": lambda: {"client_id": "remuda-cli", **_UNPROVED},
            "revoke_token": lambda: {"client_id": "", **_UNPROVED},
            "introspect_token": lambda: {"client_id": "", **_UNPROVED},
            "post_userinfo": lambda: {"access_token": ""},
            "authorize_by_form": lambda: _LOGIN,
        }

    def lent(self, case: Case[Any], name: str) -> str:
        """Return something real for a place in a path."""
        is_itself = case.path.endswith(f"{{{name}}}")
        if name == "organizationID" and "/domain" in case.path:
            return self._claiming(withdraws=case.method == "DELETE")
        if name == "organizationID" and not (is_itself and case.method == "DELETE"):
            return self._setup.organization
        if name == "projectID" and not is_itself:
            return self._setup.project
        return self.thing(name, keep=case.method in {"GET", "PUT"})

    def _claiming(self, *, withdraws: bool) -> str:
        """Return the organization that claims a domain, which is approved if the approval is to be withdrawn."""
        organization = self._setup.claiming
        if withdraws:
            path = f"/api/v1/organizations/{organization}/domain/approval"
            assert self._target.call("PUT", path, {"domain": DOMAIN}).status_code == 200
        return organization

    def query(self, case: Case[Any]) -> None:
        """Lend a login what a client sends with it; and the last turn there can be, since who is late is refused."""
        if case.query and "fencingToken" in case.query:
            case.query["fencingToken"] = MAX_QUANTITY
        if case.operation.definition.raw["operationId"] == "authorize":
            case.query = {**(case.query or {}), **_LOGIN}

    def body(self, case: Case[Any], body: dict[str, Any]) -> dict[str, Any]:
        """Return a body that names what there is."""
        operation = case.operation.definition.raw["operationId"]
        if operation in self._forms:
            return {**body, **self._forms[operation]()}
        requests: dict[str, Callable[[], dict[str, Any]]] = {
            "create_operator_token": lambda: {"request": self._target.sealed()},
            "create_operator_password_link": lambda: {"request": self._target.sealed_password_request()},
            "reset_second_factors": lambda: {"subject": self._target.known_person()},
            "approve_domain": lambda: {"domain": DOMAIN},
        }
        if operation in requests:
            return {**body, **requests[operation]()}
        if operation in {"create_password_link", "create_suspension"}:
            is_link = operation == "create_password_link"
            body = {name: value for name, value in body.items() if name != "organizationID"}
            return {**body, "subject": "root@remuda.test" if is_link else self._target.person()}
        spec = body.get("spec")
        if isinstance(spec, dict):
            return {**body, "spec": {**spec, **self._spec(operation, spec)}}
        if isinstance(body.get("quotas"), list):
            kinds = ["servers", "gpus", "networks"]
            known = zip(kinds, body["quotas"], strict=False)
            return {**body, "quotas": [{**each, "kind": kind} for kind, each in known if isinstance(each, dict)]}
        return body

    def _spec(self, operation: str, spec: dict[str, Any]) -> dict[str, Any]:
        """Return what a spec names, by what there is."""
        lent: dict[str, Any] = {
            "groupIDs": [self._setup.group],
            "roleIDs": [],
            "serviceAccountIDs": [],
            "userIDs": [],
            "subjects": [],
            "organizationType": "adhoc",
            "issuer": "https://idp.example.com",
            "redirectUris": [CALLBACK],
            "publicKey": "",
            "homeUri": "",
            "loginUri": "",
            "errorUri": "",
        }
        known = {name: value for name, value in lent.items() if name in spec}
        if "subject" in spec:
            known["subject"] = self._target.person()
        if "allocations" in spec:
            known |= {"allocations": [], "kind": "things.example.org"}
            known["id"] = self._owner() if operation == "change_allocation" else self._target.person().partition("@")[0]
        return known

    def _owner(self) -> str:
        """Return for what the allocation is that is lent."""
        name, setup = self.standing("allocationID"), self._setup
        path = f"/api/v1/organizations/{setup.organization}/projects/{setup.project}/allocations/{name}"
        found = self._target.call("GET", path)
        return str(found.json()["spec"]["id"]) if found.status_code == 200 else "nobody"

    def _exchange(self) -> dict[str, Any]:
        return {
            "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
            "subject_token": self._target.identity.root,
            "subject_token_type": "urn:ietf:params:oauth:token-type:access_token",
            "requested_token_type": "urn:ietf:params:oauth:token-type:access_token",
            "resource": [],
            "x_organization_id": "",
            "x_project_id": "",
        }
