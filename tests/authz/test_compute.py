"""Compute keeps its matrix: every operation, for every caller, about everything, through every door."""

import msgspec
import pytest

from remuda.compute.app import TABLE
from remuda.identity.kinds.users import Grant, Role
from remuda.identity.rbac.roles import role_id
from remuda.resources import service as core
from tests.kit.proofs.authorization.compute_callers import CALLERS, KNOWN
from tests.kit.proofs.authorization.compute_operations import RESOURCES, ROWS, ComputeRow
from tests.kit.proofs.authorization.compute_rule import RULE
from tests.kit.proofs.authorization.compute_subject import ComputeSubject, on_socket
from tests.kit.proofs.authorization.matrix import PLACES, Caller, Target, visible
from tests.kit.proofs.authorization.trial import try_all

LABELS = [row.label for row in ROWS]


def test_every_operation_has_a_row_and_every_row_an_operation() -> None:
    assert {route.name for route in TABLE.routes} == {row.operation for row in ROWS}
    assert len(set(LABELS)) == len(LABELS)


@pytest.mark.parametrize("row", ROWS, ids=LABELS)
def test_a_route_declares_what_its_row_says(row: ComputeRow) -> None:
    (route,) = [route for route in TABLE.routes if route.name == row.operation]
    declared = None if route.permission is None else (route.permission.endpoint, route.permission.verb)
    assert (route.method, route.path, route.scope, declared) == (row.method, row.path, row.scope, row.right)
    assert route.success == (row.declares or row.success)


@pytest.mark.parametrize("resource", RESOURCES)
async def test_everybody_is_answered_as_the_matrix_says(compute_subject: ComputeSubject, resource: str) -> None:
    for row in RESOURCES[resource]:
        await try_all(compute_subject, row, CALLERS, "api", RULE)


@pytest.mark.thorough
@pytest.mark.parametrize("resource", RESOURCES)
async def test_the_service_rejects_whom_the_api_rejects(compute_subject: ComputeSubject, resource: str) -> None:
    for row in RESOURCES[resource]:
        if row.scope != "public":
            await try_all(compute_subject, row, KNOWN, "port", RULE)


@pytest.mark.thorough
@pytest.mark.parametrize("resource", RESOURCES)
async def test_a_client_in_another_process_is_answered_the_same(resource: str) -> None:
    async with on_socket() as subject:
        for row in RESOURCES[resource]:
            await try_all(subject, row, CALLERS, "socket", RULE)


async def test_a_list_shows_all_that_one_may_see_and_nothing_else(compute_subject: ComputeSubject) -> None:
    row, seen = _row("list_instances"), set()
    there = {place: await compute_subject.shown(row, place) for place in PLACES}
    for caller in KNOWN:
        for target in RULE.targets(row):
            for transport in ("api", "port"):
                shown = await _listed(compute_subject, row, caller, target, transport)
                wanted = {there[place] for place in visible(row, caller, target)}
                assert shown == wanted, f"{caller.name}, {target.label}, through the {transport}"
                seen.add(len(shown))
    assert seen == {0, 1, 2, 3}, "some see more than others"


async def test_the_trial_finds_a_check_that_is_missing(
    compute_subject: ComputeSubject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(core, "require_for", lambda *_: None)
    with pytest.raises(AssertionError, match=r"member, home: 200 .*, and 403 was to be"):
        await try_all(compute_subject, _row("get_instance"), KNOWN, "api", RULE)


async def test_the_trial_finds_a_role_that_allows_too_much(compute_subject: ComputeSubject) -> None:
    store = compute_subject.compute.store
    role = await store.get(Role, role_id("reader"))
    others = [grant for grant in role.spec.scopes.project if grant.name != "compute:instances"]
    more = Grant(name="compute:instances", operations=("read", "update"))
    scopes = msgspec.structs.replace(role.spec.scopes, project=(*others, more))
    await store.update(msgspec.structs.replace(role, spec=msgspec.structs.replace(role.spec, scopes=scopes)))
    with pytest.raises(AssertionError, match=r"reader, home: 200 .*, and 403 was to be"):
        await try_all(compute_subject, _row("get_instance_ssh_key"), KNOWN, "api", RULE)


async def _listed(subject: ComputeSubject, row: ComputeRow, caller: Caller, target: Target, door: str) -> set[str]:
    """Return what a list shows."""
    outcome = await subject.transports[door].ask(caller, await subject.request(row, target))
    assert outcome.status == 200, outcome
    return {item["metadata"]["id"] for item in outcome.answer}


def _row(label: str) -> ComputeRow:
    return next(row for row in ROWS if row.label == label)
