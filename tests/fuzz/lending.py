"""Lends real things to generated requests, so that they are not all about what is not there.

What a generator makes up names nothing that exists. Four times of five an id that it made up is replaced by that of a
real yard, mount or operation, a precondition by the present state, and a breed by one that exists; what was made wrong
on purpose stays wrong. Which requests are lent something depends on the request alone, so that a run can be repeated.
"""

import hashlib
from typing import Any
from urllib.parse import quote

from schemathesis import Case, HookContext, Response
from schemathesis.core.parameters import ParameterLocation

from tests.example.authenticator import ORGANIZATION, PROJECT
from tests.fuzz.target import Target

MOUNT_NAME = "bella"
_USES = 25
"""So often a thing is lent before a fresh one takes its place."""
_REFERENCE = "things.example.org%2F{number}"
"""Encoded once more than the generator does it, as clients have to."""


class Lending:
    """A hook that is called before each request, and one after it."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._standing: dict[str, tuple[str, int]] = {}
        self._real: set[str] = set()
        """Every id that we know to be something's."""
        self._keys = 0

    def before_call(self, _context: HookContext, case: Case[Any], _kwargs: dict[str, Any]) -> None:
        """Lend what a request needs."""
        is_wrong = case.meta.is_negative_at if case.meta is not None else lambda _: False
        if case.path_parameters and not is_wrong(ParameterLocation.PATH):
            case.path_parameters = self._path(case, dict(case.path_parameters))
        if isinstance(case.body, dict) and not is_wrong(ParameterLocation.BODY):
            case.body = self._body(case, case.body)
        if case.headers and not is_wrong(ParameterLocation.HEADER):
            self._headers(case)

    def after_call(self, _context: HookContext, case: Case[Any], response: Response) -> None:
        """Know what was made, and stop lending what was asked to go."""
        if case.method == "POST" and response.status_code in {201, 202}:
            self._real.add(response.json()["metadata"]["id"])
        if case.method == "DELETE" and response.status_code == 202:
            gone = set((case.path_parameters or {}).values())
            self._standing = {kind: held for kind, held in self._standing.items() if held[0] not in gone}

    def _path(self, case: Case[Any], values: dict[str, Any]) -> dict[str, Any]:
        seed = repr(sorted(values.items()))
        if not _is_lent(seed):
            return values
        if "organizationID" in values:
            values |= {"organizationID": ORGANIZATION, "projectID": PROJECT}
        for name in values.keys() & {"yardID", "mountID", "operationID"}:
            if values[name] not in self._real:
                values[name] = self._thing(name, keep=case.method in {"GET", "PUT"})
        if "reference" in values:
            values["reference"] = _REFERENCE.format(number=len(seed) % 3)
        return values

    def _body(self, case: Case[Any], body: dict[str, Any]) -> dict[str, Any]:
        spec, metadata = body.get("spec"), body.get("metadata")
        if not isinstance(spec, dict) or "breed" not in spec or not _is_lent(repr(body)):
            return body
        spec = {**spec, "breed": "mule"}
        if "yardId" in spec and spec["yardId"] not in self._real:
            spec["yardId"] = self._thing("yardID", keep=True)
        if case.method == "PUT" and isinstance(metadata, dict):
            metadata = {**metadata, "name": MOUNT_NAME}
        return {**body, "spec": spec, "metadata": metadata}

    def _headers(self, case: Case[Any]) -> None:
        headers = case.headers
        if "Idempotency-Key" in headers and _is_lent(headers["Idempotency-Key"]):
            self._keys += 1
            headers["Idempotency-Key"] = f"{headers['Idempotency-Key'][:200]}{self._keys}"
        if "If-Match" in headers and case.method in {"PUT", "DELETE"}:
            path = case.path
            for name, value in (case.path_parameters or {}).items():
                path = path.replace(f"{{{name}}}", quote(str(value), safe=""))
            etag = self._target.call("GET", path).headers.get("etag")
            if etag is not None:
                headers["If-Match"] = etag

    def _thing(self, kind: str, *, keep: bool) -> str:
        """Return a real one: one that has been lent before if it is kept, else one for this request alone."""
        name, uses = self._standing.get(kind, ("", 0))
        if not keep or not uses:
            make = {
                "yardID": self._target.make_yard,
                "mountID": lambda: self._target.make_mount(MOUNT_NAME),
                "operationID": self._target.make_operation,
            }
            name, uses = make[kind](), _USES
            self._real.add(name)
        if keep:
            self._standing[kind] = name, uses - 1
        return name


def _is_lent(seed: str) -> bool:
    return hashlib.sha256(seed.encode()).digest()[0] % 5 != 0
