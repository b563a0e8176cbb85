"""Identity keeps its matrix: every operation, for every caller, about everything, through every door."""

import msgspec
import pytest

from remuda.identity.app import TABLE
from remuda.identity.kinds.users import Grant, Role
from remuda.identity.rbac.roles import role_id
from remuda.identity.users.groups import Groups
from tests.kit.proofs.authorization.identity_callers import CALLERS
from tests.kit.proofs.authorization.identity_operations import RESOURCES, ROWS
from tests.kit.proofs.authorization.identity_rule import RULE
from tests.kit.proofs.authorization.identity_subject import identity
from tests.kit.proofs.authorization.matrix import Row
from tests.kit.proofs.authorization.trial import try_all

NAMES = [row.operation for row in ROWS]
KNOWN = [caller for caller in CALLERS if caller.is_known]
GUARDED = [resource for resource in RESOURCES if resource != "public"]


def test_every_operation_has_a_row_and_every_row_an_operation() -> None:
    assert sorted(route.name for route in TABLE.routes) == sorted(NAMES)


@pytest.mark.parametrize("row", ROWS, ids=NAMES)
def test_a_route_declares_what_its_row_says(row: Row) -> None:
    (route,) = [route for route in TABLE.routes if route.name == row.operation]
    declared = None if route.permission is None else (route.permission.endpoint, route.permission.verb)
    assert (route.method, route.path, route.scope, declared) == (row.method, row.path, row.scope, row.right)
    assert row.scope == "public" or route.success == row.success


@pytest.mark.parametrize("resource", RESOURCES)
async def test_everybody_is_answered_as_the_matrix_says(resource: str) -> None:
    async with identity() as subject:
        for row in RESOURCES[resource]:
            await try_all(subject, row, CALLERS, "api", RULE)


@pytest.mark.thorough
@pytest.mark.parametrize("resource", GUARDED)
async def test_the_service_rejects_whom_the_api_rejects(resource: str) -> None:
    async with identity() as subject:
        for row in RESOURCES[resource]:
            await try_all(subject, row, KNOWN, "port", RULE)


@pytest.mark.thorough
@pytest.mark.parametrize("resource", GUARDED)
async def test_a_client_in_another_process_is_answered_the_same(resource: str) -> None:
    async with identity() as subject:
        for row in RESOURCES[resource]:
            await try_all(subject, row, CALLERS, "socket", RULE)


async def test_the_trial_finds_a_check_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Groups, "authorize", lambda *_: None)
    async with identity() as subject:
        with pytest.raises(AssertionError, match=r"member, home: 200 .*, and 403 was to be"):
            await try_all(subject, _row("get_group"), KNOWN, "api", RULE)


async def test_the_trial_finds_a_role_that_allows_too_much() -> None:
    async with identity() as subject:
        store = subject.identity.store
        role = await store.get(Role, role_id("user"))
        more = (*role.spec.scopes.project, Grant(name="identity:allocations", operations=("create",)))
        scopes = msgspec.structs.replace(role.spec.scopes, project=more)
        await store.update(msgspec.structs.replace(role, spec=msgspec.structs.replace(role.spec, scopes=scopes)))
        with pytest.raises(AssertionError, match=r"user, home: 201 .*, and 403 was to be"):
            await try_all(subject, _row("create_allocation"), KNOWN, "api", RULE)


def _row(operation: str) -> Row:
    return next(row for row in ROWS if row.operation == operation)
