"""Identity speaks the wire contract: an existing client finds every operation as it knows it."""

from typing import Any

import msgspec
import pytest

from remuda.http.openapi import document
from remuda.identity.app import TABLE
from tests.kit.reference.agreement import Agreement
from tests.kit.reference.contract import Operation, wire_contract

CONTRACT = wire_contract("identity")
DOCUMENT: Any = msgspec.json.decode(msgspec.json.encode(document(TABLE, version="0")))


def _label(operation: Operation) -> str:
    return operation.label


def test_the_contract_has_all_operations_of_both_tiers() -> None:
    assert len(CONTRACT.operations) == 51
    assert {each.tier for each in CONTRACT.operations} == {"public", "internal"}


@pytest.mark.parametrize("operation", CONTRACT.operations, ids=_label)
def test_m27_an_operation_is_as_existing_clients_know_it(operation: Operation) -> None:
    assert Agreement(CONTRACT, DOCUMENT).differences(operation) == []


@pytest.mark.parametrize("operation", CONTRACT.operations, ids=_label)
def test_an_operation_asks_who_it_is_where_the_contract_says_so(operation: Operation) -> None:
    (route,) = [route for route in TABLE.routes if (route.method, route.path) == (operation.method, operation.path)]
    assert (route.scope != "public") == operation.authenticated
