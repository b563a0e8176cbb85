"""Every answer is held against our own document and, where the wire contract documents its status, against that.

Any other status of an operation that existing clients know is 4xx or 503, in the error envelope; where a browser is
sent elsewhere, in a page.
"""

from functools import cache, lru_cache
from typing import Any

import jsonschema_rs
import msgspec

from remuda.http.openapi import document
from remuda.http.routes import Table
from remuda.http.sse import Received
from tests.kit.asgi.contract import STREAM, Contract, Document, Reply, UndocumentedError
from tests.kit.reference.contract import Operation, Schema, WireContract, wire_contract

_ADDED = {
    ("POST", "/oauth2/v2/login"): frozenset({200}),
    ("PUT", "/api/v2/instances/{instanceID}"): frozenset({200}),
}
"""Successes that the contract does not know, and its clients never see: our own login page asks again, and a dry run,
which only those get who ask for it, tells what a change would do."""
_OF_DEVICES = {"authorization_pending", "slow_down", "expired_token"}
"""What only those are told who ask for a device's tokens (RFC 8628), which no existing client does."""
_ENVELOPE = {"type": "object", "required": ["error", "error_description"], "properties": {"error": {"type": "string"}}}
"""An error of a status that the contract does not know, and whose code it cannot know either."""
_TOKENS = "/oauth2/v2/token"
_ITEMS = frozenset({"added", "modified", "deleted"})
"""Events that tell of an item."""


class ResponseContract(Contract):
    """Validates answers by our own document, then by the wire contract."""

    def __init__(self, ours: Document, wire: WireContract) -> None:
        super().__init__(ours)
        self.document, self._wire = ours, wire
        self._schemas: dict[str, Any] = {}
        self._operations: dict[tuple[str, str], Operation | None] = {}

    def check(self, method: str, path: str, reply: Reply) -> None:
        """Raise UndocumentedError unless both let this answer pass."""
        super().check(method, path, reply)
        self.check_wire(method, path, reply)

    def check_wire(self, method: str, path: str, reply: Reply) -> None:
        """Raise UndocumentedError unless the wire contract lets this answer pass."""
        operation = self._operation_of("GET" if method == "HEAD" else method, path)
        if operation is None:
            return
        place = f"{operation.label} {reply.status}, by the wire contract,"
        if str(reply.status) in operation.responses:
            self._check_documented(place, operation, reply, has_body=method != "HEAD")
        elif reply.status not in _ADDED.get((operation.method, operation.path), ()):
            self._check_other(place, operation, reply, has_body=method != "HEAD")

    def check_event(self, path: str, event: Received) -> None:
        """Raise UndocumentedError unless both let this event of a stream pass."""
        super().check_event(path, event)
        operation = self._operation_of("GET", path)
        if operation is None or event.type not in _ITEMS:
            return
        listed = operation.responses["200"]
        assert listed is not None, "a list has a body"
        data = msgspec.json.decode(event.data)
        self._check_schema(f"{operation.label} {event.type}, by the wire contract,", listed.schema, [data])

    def _operation_of(self, method: str, path: str) -> Operation | None:
        if (method, path) not in self._operations:
            self._operations[method, path] = self._wire.operation(method, path)
        return self._operations[method, path]

    def _check_documented(self, place: str, operation: Operation, reply: Reply, *, has_body: bool) -> None:
        body = operation.responses[str(reply.status)]
        if body is None:
            _demand(not reply.body, f"{place} has no body")
        elif reply.media == STREAM:
            _demand(body.is_json, f"{place} is no list, so nobody can watch it")
        else:
            _demand(reply.media == body.mime, f"{place} is {body.mime}, not {reply.media}")
            is_for_device = operation.path == _TOKENS and reply.status == 400 and reply.json["error"] in _OF_DEVICES
            if body.is_json and has_body and not is_for_device:
                self._check_schema(place, body.schema, reply.json)

    def _check_other(self, place: str, operation: Operation, reply: Reply, *, has_body: bool) -> None:
        if reply.status == 304:  # only who sends If-None-Match gets it
            _demand(not reply.body, f"{place} has no body")
            return
        _demand(400 <= reply.status < 500 or reply.status == 503, f"{place} is neither 4xx nor 503")
        if operation.is_for_browsers and reply.media == "text/html":
            return
        _demand(reply.media == "application/json", f"{place} is {reply.media}")
        if has_body:
            self._check_schema(place, _ENVELOPE, reply.json)

    def _check_schema(self, place: str, schema: Schema, value: Any) -> None:
        if place not in self._schemas:
            whole = dict(self._wire.whole(schema))
            self._schemas[place] = jsonschema_rs.Draft202012Validator(
                whole, validate_formats=True, formats={"ipv4": lambda _: True}
            )  # nobody holds anybody to that one: it also stands where prefixes are
        problems = [
            f"{'/'.join(map(str, each.instance_path))}: {each}" for each in self._schemas[place].iter_errors(value)
        ]
        _demand(not problems, f"{place} is not valid: {'; '.join(problems)}")


@lru_cache(maxsize=64)
def response_contract(table: Table) -> ResponseContract:
    """Return what every answer of a service is held against, or of a part of it."""
    return _validator(table.service, msgspec.json.encode(document(table, version="0")))


@cache
def _validator(service: str, ours: bytes) -> ResponseContract:
    """Compare by content: a resource makes its table again for each test, and each validator keeps many validators."""
    return ResponseContract(msgspec.json.decode(ours), wire_contract(service))


def _demand(holds: bool, sentence: str) -> None:  # noqa: FBT001  reads as an assertion
    if not holds:
        raise UndocumentedError(sentence)
