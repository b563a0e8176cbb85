"""Region speaks the wire contract: an existing client finds every operation as it knows it, but for the deprecated."""

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from remuda.http.openapi import document
from remuda.region.app import TABLE
from tests.kit.reference import contract as wire
from tests.kit.reference.agreement import Agreement
from tests.kit.reference.contract import Operation, wire_contract
from tests.kit.region.environment import RegionEnvironment

CONTRACT = wire_contract("region")
DOCUMENT: Any = msgspec.json.decode(msgspec.json.encode(document(TABLE, version="0")))
SOME_ID = "f0000000-0000-4000-8000-0000000000ff"


def _deprecated() -> list[tuple[str, str]]:
    """Return the methods and paths that existing services still answer, and nobody is to use."""
    told = msgspec.json.decode((Path(wire.__file__).parents[2] / "wire" / "region.json").read_bytes())
    return [(each["method"], each["path"]) for each in told["operations"] if each["tier"] == "deprecated"]


def _label(operation: Operation) -> str:
    return operation.label


def test_the_contract_has_all_operations_of_both_tiers() -> None:
    assert len(CONTRACT.operations) == 50
    assert {each.tier for each in CONTRACT.operations} == {"public", "internal"}


@pytest.mark.parametrize("operation", CONTRACT.operations, ids=_label)
def test_an_operation_is_as_existing_clients_know_it(operation: Operation) -> None:
    assert Agreement(CONTRACT, DOCUMENT).differences(operation) == []


@pytest.mark.parametrize("operation", CONTRACT.operations, ids=_label)
def test_an_operation_asks_who_it_is_where_the_contract_says_so(operation: Operation) -> None:
    (route,) = [route for route in TABLE.routes if (route.method, route.path) == (operation.method, operation.path)]
    assert (route.scope != "public") == operation.authenticated


async def test_m19_what_is_deprecated_is_not_there_for_anybody(region: RegionEnvironment) -> None:
    deprecated = _deprecated()
    assert len(deprecated) == 24
    for method, path in deprecated:
        real = path.replace("{organizationID}", region.organization).replace("{projectID}", region.project)
        target = re.sub(r"\{[^{}]+\}", SOME_ID, real)
        for client in (region.root, region.client(None)):
            reply = await client.send(method, target, body={} if method in {"POST", "PUT"} else None)
            assert (reply.status, reply.json["error"]) == (404, "not_found"), f"{method} {path}"
