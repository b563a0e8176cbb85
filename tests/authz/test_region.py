"""Region keeps its matrix: every operation, for every caller, about everything, through every door."""

import msgspec
import pytest

from remuda.identity.kinds.users import Grant, Role
from remuda.identity.rbac.roles import role_id
from remuda.region.app import TABLE
from remuda.region.securitygroups.service import SecurityGroups
from tests.kit.proofs.authorization.matrix import PLACES, Caller, Row, Target, visible
from tests.kit.proofs.authorization.region_callers import CALLERS
from tests.kit.proofs.authorization.region_operations import RESOURCES, ROWS, RegionRow
from tests.kit.proofs.authorization.region_rule import RULE
from tests.kit.proofs.authorization.region_subject import LISTED, RegionSubject
from tests.kit.proofs.authorization.trial import try_all

NAMES = [row.operation for row in ROWS]
KNOWN = [caller for caller in CALLERS if caller.is_known]
LISTS = [row for row in ROWS if row.operation in LISTED]
FLAVORS = [row for row in ROWS if row.operation in {"list_flavors", "list_flavors_in"}]


def test_every_operation_has_a_row_and_every_row_an_operation() -> None:
    assert sorted(route.name for route in TABLE.routes) == sorted(NAMES)


@pytest.mark.parametrize("row", ROWS, ids=NAMES)
def test_a_route_declares_what_its_row_says(row: RegionRow) -> None:
    (route,) = [route for route in TABLE.routes if route.name == row.operation]
    declared = None if route.permission is None else (route.permission.endpoint, route.permission.verb)
    assert (route.method, route.path, route.scope, declared) == (row.method, row.path, row.scope, row.right)
    assert route.success == (row.declares or row.success)


@pytest.mark.parametrize("resource", RESOURCES)
async def test_everybody_is_answered_as_the_matrix_says(region_subject: RegionSubject, resource: str) -> None:
    for row in RESOURCES[resource]:
        await try_all(region_subject, row, CALLERS, "api", RULE)


@pytest.mark.thorough
@pytest.mark.parametrize("resource", RESOURCES)
async def test_the_service_rejects_whom_the_api_rejects(region_subject: RegionSubject, resource: str) -> None:
    for row in RESOURCES[resource]:
        if row.scope != "public":
            await try_all(region_subject, row, KNOWN, "port", RULE)


@pytest.mark.parametrize("row", LISTS, ids=[row.operation for row in LISTS])
async def test_a_list_shows_all_that_one_may_see_and_nothing_else(
    region_subject: RegionSubject, row: RegionRow
) -> None:
    there = {place: await region_subject.shown(row, place) for place in PLACES}
    seen = set()
    for caller in KNOWN:
        for target in RULE.targets(row):
            for transport in ("api", "port"):
                shown = await _listed(region_subject, row, caller, target, transport)
                wanted = {there[place] for place in visible(row, caller, target)}
                assert shown == wanted, f"{caller.name}, {target.label}, through the {transport}"
                seen.add(len(shown))
    assert seen == {0, 1, 2, 3}, "some see more than others"


@pytest.mark.parametrize("row", FLAVORS, ids=[row.operation for row in FLAVORS])
async def test_flavors_that_can_only_be_pinned_are_for_those_who_make_servers(
    region_subject: RegionSubject, row: RegionRow
) -> None:
    seen = set()
    for caller in KNOWN:
        request = await region_subject.request(row, next(iter(RULE.targets(row))))
        outcome = await region_subject.transports["api"].ask(caller, request)
        if outcome.status == 200:
            is_shown = any(each["spec"].get("pinnedOnly") for each in outcome.answer)
            assert is_shown == caller.may(("region:servers", "create"), PLACES[0]), caller.name
            seen.add(is_shown)
    assert seen == {True, False}


async def test_the_trial_finds_a_check_that_is_missing(
    region_subject: RegionSubject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SecurityGroups, "authorize", lambda *_: None)
    with pytest.raises(AssertionError, match=r"member, home: 200 .*, and 403 was to be"):
        await try_all(region_subject, _row("get_security_group"), KNOWN, "api", RULE)


async def test_the_trial_finds_a_role_that_allows_too_much(region_subject: RegionSubject) -> None:
    store = region_subject.region.store
    role = await store.get(Role, role_id("user"))
    more = (*role.spec.scopes.project, Grant(name="region:servers", operations=("read",)))
    scopes = msgspec.structs.replace(role.spec.scopes, project=more)
    await store.update(msgspec.structs.replace(role, spec=msgspec.structs.replace(role.spec, scopes=scopes)))
    with pytest.raises(AssertionError, match=r"user, home: 200 .*, and 403 was to be"):
        await try_all(region_subject, _row("get_server"), KNOWN, "api", RULE)


async def _listed(subject: RegionSubject, row: Row, caller: Caller, target: Target, door: str) -> set[str]:
    """Return what a list shows of what is not the setup on which it stands."""
    outcome = await subject.transports[door].ask(caller, await subject.request(row, target))
    assert outcome.status == 200, outcome
    return {item["metadata"]["id"] for item in outcome.answer} - subject.setups


def _row(operation: str) -> RegionRow:
    return next(row for row in ROWS if row.operation == operation)
