"""Lends real things to generated requests of identity, so that they are not all about what is not there.

Four times of five an id that was made up is replaced by a real one, and what a body names by what there is; what was
made wrong on purpose stays wrong, and a path in which all ids are from answers stays what it is. Which requests are
lent something depends on what was made up alone, not on our ids, which are others each time.

The ground has to stay, because everything lent stands on it: who asks for its end is given something else to end.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from schemathesis import Case, HookContext, Response
from schemathesis.core.parameters import ParameterLocation

from tests.fuzz.identity_target import CALLBACK, IdentityTarget

_USES = 25
"""So often a thing is lent before a fresh one takes its place."""
_REFERENCE = "things.example.org%2F{number}"
"""Encoded once more than the generator does it, as clients have to."""
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


class IdentityLending:
    """A hook that is called before each request, and one after it."""

    def __init__(self, target: IdentityTarget) -> None:
        self._target, self._ground = target, target.ground
        self._standing: dict[str, tuple[str, int]] = {}
        self._real = set(self._ground.ids)
        """Every id that we know to be something's."""
        self._keys = 0
        self._forms: Mapping[str, Callable[[], dict[str, Any]]] = {
            "exchange_grant": self._exchange,
            "authorize_device": lambda: {"client_id": "remuda-cli", **_UNPROVED},
            "revoke_token": lambda: {"client_id": "", **_UNPROVED},
            "introspect_token": lambda: {"client_id": "", **_UNPROVED},
            "post_userinfo": lambda: {"access_token": ""},
            "authorize_by_form": lambda: _LOGIN,
        }

    def before_call(self, _context: HookContext, case: Case[Any], _kwargs: dict[str, Any]) -> None:
        """Lend what a request needs."""
        is_wrong = case.meta.is_negative_at if case.meta is not None else lambda _: False
        if case.path_parameters and not is_wrong(ParameterLocation.PATH):
            case.path_parameters = self._path(case, dict(case.path_parameters))
        if isinstance(case.body, dict) and not is_wrong(ParameterLocation.BODY) and _is_lent(repr(case.body)):
            case.body = self._body(case, case.body)
        if case.operation.definition.raw["operationId"] == "authorize" and not is_wrong(ParameterLocation.QUERY):
            case.query = {**(case.query or {}), **_LOGIN}
        if case.headers and not is_wrong(ParameterLocation.HEADER):
            self._headers(case)

    def after_call(self, _context: HookContext, case: Case[Any], response: Response) -> None:
        """Know what there is, and stop lending what was asked to go."""
        if response.status_code < 300 and "json" in response.headers.get("content-type", [""])[0]:
            self._real.update(_ids(response.json()))
        if case.method == "DELETE" and response.status_code < 300:
            gone = set((case.path_parameters or {}).values())
            self._standing = {kind: held for kind, held in self._standing.items() if held[0] not in gone}

    def _path(self, case: Case[Any], values: dict[str, Any]) -> dict[str, Any]:
        made_up = {name: value for name, value in values.items() if value not in self._real}
        seed = repr(sorted(made_up.items()))
        if made_up and _is_lent(seed):
            values = {name: self._lent(case, name, seed) for name in values}
        itself = case.path.rpartition("{")[2].removesuffix("}")
        if case.method == "DELETE" and values.get(itself) in self._ground.ids:
            values[itself] = self._thing(itself, keep=False)
        return values

    def _lent(self, case: Case[Any], name: str, seed: str) -> str:
        """Return something real for a place in a path."""
        if name == "reference":
            return _REFERENCE.format(number=len(seed) % 3)
        is_itself = case.path.endswith(f"{{{name}}}")
        if name == "organizationID" and not (is_itself and case.method == "DELETE"):
            return self._ground.organization
        if name == "projectID" and not is_itself:
            return self._ground.project
        return self._thing(name, keep=case.method in {"GET", "PUT"})

    def _body(self, case: Case[Any], body: dict[str, Any]) -> dict[str, Any]:
        operation = case.operation.definition.raw["operationId"]
        if operation in self._forms:
            return {**body, **self._forms[operation]()}
        if operation == "create_operator_token":
            return {**body, "request": self._target.sealed()}
        if operation == "make_password_link":
            return {**body, "subject": "root@remuda.test"}
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
            "groupIDs": [self._ground.group],
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
        name, _ = self._standing.get("allocationID", ("", 0))
        ground = self._ground
        path = f"/api/v1/organizations/{ground.organization}/projects/{ground.project}/allocations/{name}"
        found = self._target.call("GET", path)
        return str(found.json()["spec"]["id"]) if found.status_code == 200 else "nobody"

    def _exchange(self) -> dict[str, Any]:
        return {
            "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
            "subject_token": self._target.house.root,
            "subject_token_type": "urn:ietf:params:oauth:token-type:access_token",
            "requested_token_type": "urn:ietf:params:oauth:token-type:access_token",
            "resource": [],
            "x_organization_id": "",
            "x_project_id": "",
        }

    def _headers(self, case: Case[Any]) -> None:
        headers = case.headers
        if "Idempotency-Key" in headers and _is_lent(headers["Idempotency-Key"]):
            self._keys += 1
            headers["Idempotency-Key"] = f"{headers['Idempotency-Key'][:200]}{self._keys}"
        if "If-Match" in headers and case.method in {"PUT", "DELETE"}:
            path = case.path
            for name, value in (case.path_parameters or {}).items():
                path = path.replace(f"{{{name}}}", quote(str(value), safe=""))
            headers["If-Match"] = self._target.call("GET", path).headers.get("etag", "*")

    def _thing(self, kind: str, *, keep: bool) -> str:
        """Return a real one: one that has been lent before if it is kept, else one for this request alone."""
        name, uses = self._standing.get(kind, ("", 0))
        if not keep or not uses:
            name, uses = self._target.make(kind), _USES
        if keep:
            self._standing[kind] = name, uses - 1
        return name


def _ids(told: Any) -> Iterator[str]:
    """Yield the ids in an answer: of what it is about, or of all that it lists."""
    for each in told if isinstance(told, list) else [told]:
        match each:
            case {"metadata": {"id": str(name)}}:
                yield name


def _is_lent(seed: str) -> bool:
    return hashlib.sha256(seed.encode()).digest()[0] % 5 != 0
