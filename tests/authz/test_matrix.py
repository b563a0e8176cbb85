"""The rule behind the matrix, held against cells that were decided by reading design section 7."""

import pytest

from tests.kit.proofs.authorization.callers import callers
from tests.kit.proofs.authorization.matrix import (
    ABROAD,
    HOME,
    LENT,
    NEXT_DOOR,
    NO_PROJECT,
    NOWHERE,
    Row,
    Scope,
    Target,
    expected,
)

READ, MAKE = ("x:things", "read"), ("x:things", "create")
CALLERS = {caller.name: caller for caller in callers(frozenset({READ, MAKE}), frozenset({("x:system", "read")}))}

LIST = Row(operation="list", method="GET", path="", scope="project", right=READ, names="place")
CREATE = Row(operation="create", method="POST", path="", scope="project", right=MAKE, names="place", success=201)
GET = Row(operation="get", method="GET", path="", scope="project", right=READ, names="object", thing="id")
WHOLE = Row(operation="whole", method="GET", path="", scope="organization", right=READ, names="place")
SYSTEM = Row(operation="system", method="GET", path="", scope="everywhere", right=("x:system", "read"))


def at(scope: Scope) -> Target:
    return Target(label="named", named=scope)


def held(scope: Scope | None) -> Target:
    return Target(label="held", holder=scope)


CELLS = [
    (LIST, "anonymous", at(HOME), 401),
    (LIST, "expired", at(NOWHERE), 401),
    (LIST, "nobody", at(HOME), 403),
    (LIST, "nobody", at(NOWHERE), 403),
    (LIST, "reader", at(HOME), 200),
    (LIST, "reader", at(NEXT_DOOR), 403),
    (LIST, "foreigner", at(HOME), 403),
    (LIST, "organization-admin", at(NEXT_DOOR), 200),
    (LIST, "organization-admin", at(LENT), 200),
    (LIST, "admin", at(NOWHERE), 200),
    (CREATE, "reader", at(HOME), 403),
    (CREATE, "user", at(HOME), 201),
    (CREATE, "organization-admin", at(NO_PROJECT), 404),
    (CREATE, "admin", at(NO_PROJECT), 201),
    (GET, "user", held(HOME), 200),
    (GET, "user", held(NEXT_DOOR), 403),
    (GET, "user", held(ABROAD), 404),
    (GET, "user", held(None), 404),
    (GET, "member", held(HOME), 403),
    (GET, "nobody", held(HOME), 404),
    (GET, "service for a foreigner", held(HOME), 200),
    (GET, "service as a foreigner", held(HOME), 404),
    (GET, "foreign service as a user", held(HOME), 404),
    (WHOLE, "user", at(HOME), 403),
    (WHOLE, "organization-admin", at(HOME), 200),
    (SYSTEM, "organization-admin", held(None), 403),
    (SYSTEM, "admin", held(None), 200),
]


@pytest.mark.parametrize(("row", "caller", "target", "status"), CELLS)
def test_the_rule_says_what_the_design_says(row: Row, caller: str, target: Target, status: int) -> None:
    assert expected(row, CALLERS[caller], target) == status
