"""Compute speaks the wire contract: an existing client finds every public operation as it knows it.

Compute clusters are deprecated, or were never shown to anybody: they are not built.
"""

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from remuda.compute.app import TABLE
from remuda.http.openapi import document
from tests.kit.compute.environment import ComputeEnvironment
from tests.kit.reference import contract as wire
from tests.kit.reference.agreement import Agreement
from tests.kit.reference.contract import Operation, wire_contract

CONTRACT = wire_contract("compute")
SPOKEN = [each for each in CONTRACT.operations if "clusters" not in each.path]
DOCUMENT: Any = msgspec.json.decode(msgspec.json.encode(document(TABLE, version="0")))
SOME_ID = "f0000000-0000-4000-8000-0000000000ff"


def _label(operation: Operation) -> str:
    return operation.label


def test_the_contract_has_all_operations_that_clients_use() -> None:
    assert [each.tier for each in SPOKEN].count("public") == 16
    assert [each.path for each in SPOKEN if each.tier != "public"] == ["/.well-known/openid-protected-resource"]


@pytest.mark.parametrize("operation", SPOKEN, ids=_label)
def test_an_operation_is_as_existing_clients_know_it(operation: Operation) -> None:
    assert Agreement(CONTRACT, DOCUMENT).differences(operation) == []


@pytest.mark.parametrize("operation", SPOKEN, ids=_label)
def test_an_operation_asks_who_it_is_where_the_contract_says_so(operation: Operation) -> None:
    (route,) = [route for route in TABLE.routes if (route.method, route.path) == (operation.method, operation.path)]
    assert (route.scope != "public") == operation.authenticated


async def test_clusters_are_not_there_for_anybody(compute: ComputeEnvironment) -> None:
    told = msgspec.json.decode((Path(wire.__file__).parents[2] / "wire" / "compute.json").read_bytes())
    clusters = [(each["method"], each["path"]) for each in told["operations"] if "clusters" in each["path"]]
    assert len(clusters) == 17
    for method, path in clusters:
        real = path.replace("{organizationID}", compute.region.organization)
        target = re.sub(r"\{[^{}]+\}", SOME_ID, real)
        for client in (compute.root, compute.client(None)):
            reply = await client.send(method, target, body={} if method in {"POST", "PUT"} else None)
            assert (reply.status, reply.json["error"]) == (404, "not_found"), f"{method} {path}"
