"""Bounds of requests: every text, list and map in a request body has a largest size, in its schema or in a rule."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from remuda.app import tables
from remuda.http.openapi import document

_BOUNDED_BY_RULES: Mapping[str, str] = {
    "AllocationSpec.allocations": "identity/quotas/rules.py: at most 50, each kind once",
    "AllocationSpec.id": "identity/quotas/rules.py: a label of at most 63 characters",
    "AllocationSpec.kind": "identity/quotas/rules.py: a label of at most 63 characters",
    "Amount.kind": "identity/quotas/rules.py: a label of at most 63 characters",
    "QuotasPatch.quotas": "identity/quotas/rules.py: each kind of the catalogue once",
    "QuotasWrite.quotas": "identity/quotas/rules.py: each kind of the catalogue once",
    "token.audience": "identity/oauth/exchange.py: an audience of this installation, and not stored",
    "token.resource": "identity/oauth/exchange.py: a resource of this installation, and not stored",
    "Attachments.networkIds[]": "region/filestorage: the id of a network that exists",
    "AuthorityCreateSpec.publicKey": "region/authorities/rules.py: the largest supported key",
    "BalancerCreateSpec.vipAddress": "resources/ipv4.py: an address",
    "Member.address": "resources/ipv4.py: an address",
    "NetworkCreateSpec.dnsNameservers[]": "resources/ipv4.py: an address",
    "NetworkCreateSpec.prefix": "resources/ipv4.py: a network",
    "NetworkSpec.dnsNameservers[]": "resources/ipv4.py: an address",
    "InstanceNetworking.allowedSourceAddresses[]": "resources/ipv4.py: a network",
    "ServerNetworking.allowedSourceAddresses[]": "resources/ipv4.py: a network",
    "Route.nexthop": "resources/ipv4.py: an address",
    "Route.prefix": "resources/ipv4.py: a network",
    "Rule.prefix": "resources/ipv4.py: a network",
}
_BOUNDS = {"array": {"maxItems"}, "string": {"maxLength", "enum", "pattern", "format", "const"}}


def _unbounded(node: Any, path: str, schemas: Mapping[str, Any], seen: set[str]) -> Iterator[str]:
    """Yield the positions of a schema that have no largest size."""
    if isinstance(node, list):
        for each in node:
            yield from _unbounded(each, path, schemas, seen)
    if not isinstance(node, dict):
        return
    if "$ref" in node:
        name = node["$ref"].rpartition("/")[2]
        if name not in seen:
            seen.add(name)
            yield from _unbounded(schemas[name], name, schemas, seen)
        return
    kind = node.get("type")
    if kind in _BOUNDS and not _BOUNDS[kind] & node.keys():
        yield path
    if kind == "object" and node.get("additionalProperties") and "maxProperties" not in node:
        yield f"{path}{{}}"
    for name, child in node.get("properties", {}).items():
        yield from _unbounded(child, f"{path}.{name}", schemas, seen)
    yield from _unbounded(node.get("items"), f"{path}[]", schemas, seen)
    yield from _unbounded(node.get("additionalProperties"), f"{path}{{}}", schemas, seen)
    yield from _unbounded(node.get("anyOf"), path, schemas, seen)


@pytest.mark.parametrize("service", sorted(tables()))
def test_every_text_and_list_of_a_request_has_a_largest_size(service: str) -> None:
    found, seen = set[str](), set[str]()
    read = document(tables()[service].table, version="1", server="/")
    schemas = read.get("components", {}).get("schemas", {})
    for path, operations in read["paths"].items():
        for operation in operations.values():
            body = operation.get("requestBody", {}) if isinstance(operation, dict) else {}
            for media in body.get("content", {}).values():
                found.update(_unbounded(media["schema"], path.rpartition("/")[2], schemas, seen))
    assert found - _BOUNDED_BY_RULES.keys() == set(), "give it a bound in its schema"
