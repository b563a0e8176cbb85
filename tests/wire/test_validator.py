"""The validator lets pass what the wire contract knows, and nothing that a client would trip over."""

from typing import Any

import msgspec
import pytest

from remuda.http.routes import Table
from remuda.http.sse import Received
from remuda.identity.app import TABLE
from tests.kit.asgi.contract import Reply, UndocumentedError
from tests.kit.asgi.reference import ResponseContract, response_contract
from tests.kit.reference.contract import Operation, WireContract, wire_contract

ORG = "a0000000-0000-4000-8000-000000000001"
ORGANIZATIONS = "/api/v1/organizations"
ORGANIZATION = {
    "metadata": {
        "id": ORG,
        "name": "acme",
        "creationTime": "2030-01-01T00:00:00Z",
        "provisioningStatus": "provisioned",
        "healthStatus": "healthy",
    },
    "spec": {"organizationType": "adhoc"},
}


REGION = Table("region", title="Region", description="Without a route: the wire contract knows them all.", routes=[])
NETWORKS = "/api/v2/networks"
NETWORK = {
    "metadata": {
        **ORGANIZATION["metadata"],
        "organizationId": ORG,
        "projectId": ORG,
        "healthStatus": "unknown",
    },
    "spec": {"dnsNameservers": []},
    "status": {
        "regionId": ORG,
        "prefix": "10.0.0.0/16",
        "reservations": {"prefixLength": 25, "providerReservedPrefixLength": 28},
    },
}


def _json(status: int, body: Any) -> Reply:
    return Reply(status, {"content-type": "application/json"}, msgspec.json.encode(body))


def _error(status: int, code: str = "forbidden") -> Reply:
    return _json(status, {"error": code, "error_description": "no", "trace_id": "0" * 32})


PASSES = [
    ("GET", ORGANIZATIONS, _json(200, [ORGANIZATION])),
    ("HEAD", ORGANIZATIONS, Reply(200, {"content-type": "application/json"}, b"")),
    ("GET", ORGANIZATIONS, Reply(200, {"content-type": "text/event-stream"}, b"")),
    ("PUT", f"{ORGANIZATIONS}/{ORG}", Reply(200, {}, b"")),
    ("GET", ORGANIZATIONS, _error(403)),
    ("GET", ORGANIZATIONS, _error(429, "too_many_requests")),
    ("GET", ORGANIZATIONS, _error(503, "unavailable")),
    ("POST", "/oauth2/v2/token", _json(400, {"error": "authorization_pending", "error_description": "wait"})),
    ("POST", "/oauth2/v2/login", Reply(401, {"content-type": "text/html"}, b"<!doctype html>")),
    ("GET", "/oauth2/v2/logout", Reply(299, {}, b"what no existing client knows is not its business")),
]
FAILS = [
    ("GET", ORGANIZATIONS, _json(200, [{**ORGANIZATION, "spec": {"organizationType": "odd"}}])),
    ("GET", ORGANIZATIONS, _json(200, [{"metadata": ORGANIZATION["metadata"]}])),
    ("GET", ORGANIZATIONS, _json(200, ORGANIZATION)),
    ("GET", ORGANIZATIONS, Reply(200, {"content-type": "text/html"}, b"<!doctype html>")),
    ("GET", ORGANIZATIONS, _json(201, [ORGANIZATION])),
    ("GET", ORGANIZATIONS, _error(502)),
    ("GET", ORGANIZATIONS, _error(403, "odd")),
    ("GET", ORGANIZATIONS, _json(429, {"error": "odd"})),
    ("GET", ORGANIZATIONS, Reply(429, {"content-type": "text/html"}, b"<!doctype html>")),
    ("PUT", f"{ORGANIZATIONS}/{ORG}", _json(200, ORGANIZATION)),
    ("POST", "/oauth2/v2/token", _json(400, {"error": "odd", "error_description": "what?"})),
    ("POST", "/oauth2/v2/token", _json(401, {"error": "authorization_pending", "error_description": "wait"})),
]


@pytest.mark.parametrize(("method", "path", "reply"), PASSES)
def test_what_existing_clients_know_passes(method: str, path: str, reply: Reply) -> None:
    response_contract(TABLE).check_wire(method, path, reply)


@pytest.mark.parametrize(("method", "path", "reply"), FAILS)
def test_what_they_would_trip_over_does_not(method: str, path: str, reply: Reply) -> None:
    with pytest.raises(UndocumentedError, match="by the wire contract"):
        response_contract(TABLE).check_wire(method, path, reply)


def test_a_service_is_validated_by_its_own_contract() -> None:
    validator = response_contract(REGION)
    validator.check_wire("POST", NETWORKS, _json(201, NETWORK))
    validator.check_wire("GET", ORGANIZATIONS, _json(200, "what only identity knows"))
    for odd in ({**NETWORK, "status": {}}, {**NETWORK, "spec": {"dnsNameservers": None}}):
        with pytest.raises(UndocumentedError, match="by the wire contract"):
            validator.check_wire("POST", NETWORKS, _json(201, odd))
    with pytest.raises(UndocumentedError, match="by the wire contract"):
        validator.check_wire("POST", NETWORKS, _json(200, NETWORK))


def test_an_item_in_a_stream_is_validated_as_in_a_list() -> None:
    validator = response_contract(TABLE)
    validator.check_event(ORGANIZATIONS, Received(type="added", data=msgspec.json.encode(ORGANIZATION), id="1"))
    narrow = _knowing_fewer_statuses()
    with pytest.raises(UndocumentedError, match="healthStatus"):
        narrow.check_event(ORGANIZATIONS, Received(type="added", data=msgspec.json.encode(ORGANIZATION), id="1"))


def _knowing_fewer_statuses() -> ResponseContract:
    """Return a validator by a contract in which nothing is ever healthy, which our own document knows nothing of."""
    wire = wire_contract("identity")
    schemas = {**wire.schemas, "resourceHealthStatus": {"type": "string", "enum": ["unknown"]}}
    return ResponseContract(
        response_contract(TABLE).document, WireContract(operations=wire.operations, schemas=schemas)
    )


def test_an_operation_is_found_by_its_path_and_the_most_fixed_one_wins() -> None:
    wire = wire_contract("identity")
    found = wire.operation("GET", f"{ORGANIZATIONS}/{ORG}/acl")
    assert isinstance(found, Operation)
    assert found.path == "/api/v1/organizations/{organizationID}/acl"
    assert wire.operation("PATCH", ORGANIZATIONS) is None
    assert wire.operation("GET", "/api/v1/nowhere") is None
