"""Where requests are recorded: every audited route, for every caller and about everything, with ids in capitals too.

The expectation is written here by hand, from the callers and targets of the authorization matrix: what exists decides,
then what is named, if the caller has access to it. Nothing else may show a request.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import cycle
from typing import Any, cast, get_args

import msgspec
import pytest

from remuda.app import tables
from remuda.http.audit import STREAM, AuditRecord
from remuda.http.routes import AnyRoute, Table
from remuda.identity.owners import owners_in_identity
from remuda.kernel.ids import is_id
from remuda.kernel.secrets import Secret
from remuda.region.catalogue.provider_registry import ProviderRegistry
from remuda.region.owners import owners_in_region
from remuda.store.contract import Store
from remuda.store.logs import StreamReader
from tests.kit.proofs.authorization.compute_rule import RULE as COMPUTE_RULE
from tests.kit.proofs.authorization.compute_subject import ComputeSubject
from tests.kit.proofs.authorization.identity_rule import RULE as IDENTITY_RULE
from tests.kit.proofs.authorization.identity_subject import identity
from tests.kit.proofs.authorization.matrix import ABSENT, PLACES, Caller, Row, Target
from tests.kit.proofs.authorization.region_rule import RULE as REGION_RULE
from tests.kit.proofs.authorization.region_subject import RegionSubject
from tests.kit.proofs.authorization.subjects import Subject
from tests.kit.proofs.authorization.transports import Request
from tests.kit.proofs.authorization.trial import Rule

CALLERS = frozenset(
    {
        "foreign account",
        "foreigner",
        "nobody",
        "platform-administrator",
        "reader here and administrator there",
        "unikorn-compute as foreigner",
        "unikorn-compute for user",
        "unikorn-region as foreigner",
        "user",
    }
)
"""A caller of the organization, of another one, of both and of none; an operator; services."""

SYSTEM = "system"


def is_audited(table: Table, route: AnyRoute) -> bool:
    return route.scope != "public" and (route.method != "GET" or table.action_of(route) != "")


def audited(subject: Subject, table: Table) -> Sequence[Row]:
    names = {route.name for route in table.routes if is_audited(table, route)}
    return [row for row in subject.rows if row.operation in names]


async def test_m27_identity_records_every_request_in_the_organization_of_the_object() -> None:
    async with identity() as subject:
        await check_all(subject, subject.identity.store, tables()["identity"].table, IDENTITY_RULE)


async def test_m27_region_records_every_request_in_the_organization_of_the_object(
    region_subject: RegionSubject,
) -> None:
    await check_all(region_subject, region_subject.region.store, tables()["region"].table, REGION_RULE)


async def test_m27_compute_records_every_request_in_the_organization_of_the_object(
    compute_subject: ComputeSubject,
) -> None:
    await check_all(compute_subject, compute_subject.compute.store, tables()["compute"].table, COMPUTE_RULE)


def test_of_every_parameter_it_is_known_to_whom_its_objects_belong() -> None:
    owners: dict[str, Mapping[str, object]] = {
        "identity": owners_in_identity(cast("Store", None)),
        "region": owners_in_region(cast("Store", None), cast("ProviderRegistry", None)),
    }
    for service, known in owners.items():
        table = tables()[service].table
        named = {name for route in table.routes if is_audited(table, route) for name in route.parameters}
        assert named - {"reference", "kind"} - {*known} <= {"organizationID"}, "add a line to owners.py"


@pytest.mark.parametrize("service", ["identity", "region", "compute"])
def test_every_read_of_a_secret_with_a_route_of_its_own_is_audited(service: str) -> None:
    table = tables()[service].table
    reads = [route for route in table.routes if route.method == "GET" and route.scope != "public"]
    # A route that is not declared to have a secret cannot encode one.
    secret = [route for route in reads if route.has_secret and holds_secret(route.response_type)]
    assert [route.name for route in secret if not is_audited(table, route)] == []


def holds_secret(annotation: Any) -> bool:
    """Return whether a type contains a secret anywhere."""
    if annotation is Secret:
        return True
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        return any(holds_secret(each.type) for each in msgspec.structs.fields(annotation))
    return any(holds_secret(each) for each in get_args(annotation))


async def check_all(subject: Subject, log: StreamReader, table: Table, rule: Rule) -> None:
    wrong: list[str] = []
    statuses: set[int] = set()
    spelling = cycle((False, True))
    for row in audited(subject, table):
        for caller, target in cells(subject, row, rule):
            request = await subject.request(row, target)
            before = await log.newest_position()
            sent = in_capitals(request) if next(spelling) else request
            status = (await subject.transports["api"].ask(caller, sent)).status
            if status < 400:
                for place in PLACES:
                    subject.use_up(place)
            statuses.add(status)
            found = await places_of(log, table, row, before)
            wanted = set(places(table.service, request, caller, target))
            if sorted(found) != sorted(wanted):
                case = f"{row.operation}, {caller.name}, {target.label}, {status}"
                wrong.append(f"{case}: recorded in {found}, and {sorted(wanted)} were to be")
    assert not wrong, "\n".join(wrong)
    assert {403, 404} <= statuses


def cells(subject: Subject, row: Row, rule: Rule) -> Iterator[tuple[Caller, Target]]:
    for caller in subject.callers:
        for target in rule.targets(row) if caller.name in CALLERS else ():
            is_spared = rule.is_spared(row, target) or row.operation in ELSEWHERE
            if rule.expected(row, caller, target) >= 400 or not is_spared:
                yield caller, target


def in_capitals(request: Request) -> Request:
    """Return a request with the UUIDs of its path in capitals. The id of a client is any text, in lower case."""
    return replace(
        request,
        values={
            name: text.upper() if is_id(text) and name != "clientID" else text for name, text in request.values.items()
        },
    )


async def places_of(log: StreamReader, table: Table, row: Row, after: int) -> list[str]:
    """Return where requests of an operation were recorded after a position."""
    found = []
    while True:
        page = await log.read_stream(STREAM, after=after)
        for entry in page.entries:
            record = msgspec.json.decode(entry.data, type=AuditRecord)
            route = (record.component.name, record.operation.method, record.operation.route)
            if route == (table.service, row.method, row.path):
                found.append(entry.subject.removeprefix("organization/"))
        if page.is_last:
            return found
        after = page.reached


ELSEWHERE = frozenset({"create_organization", "create_password_link", "reset_second_factors"})
"""What is recorded, if it succeeds, in a new organization, or in all organizations of a user."""


def places(service: str, request: Request, caller: Caller, target: Target) -> Iterator[str]:
    """Yield where a request must be recorded."""
    row = request.row
    named = request.values["organizationID"] if target.named is not None else None
    owner = owner_of(service, request, target)
    if owner is not None:
        yield owner
        if has_access(caller, owner) and (named is None or named == owner or "{organizationID}" not in row.path):
            return
    if named is not None:
        is_there = named != ABSENT or service != "identity"  # only identity knows which organizations there are
        yield named if has_access(caller, named) and is_there else SYSTEM
    else:
        yield (None if row.scope == "everywhere" else only(caller)) or SYSTEM


OF_NO_ORGANIZATION = frozenset({"clientID", "orphanID", "regionID", "suspensionID"})
"""Parameters that name what belongs to no organization."""


def owner_of(service: str, request: Request, target: Target) -> str | None:
    """Return the organization of the object of a request, if there is one."""
    row = request.row
    if row.thing in OF_NO_ORGANIZATION or (service == "compute" and row.thing == "networkID"):
        return None  # they belong to no organization, or to another service
    if row.thing:
        return None if target.holder is None else target.holder.organization
    parameters = [part[1:-1] for part in row.path.split("/") if part.startswith("{") and part != "{reference}"]
    if row.method == "POST" or not parameters or parameters[-1] == "regionID":
        return None
    named, project = request.values["organizationID"], request.values["projectID"]
    if parameters[-1] == "organizationID":
        return None if named == ABSENT else named
    owner = next((place.organization for place in PLACES if place.project == project), named)
    is_there = project != ABSENT and (service == "identity" or owner == named)
    return owner if is_there else None


def has_access(caller: Caller, organization: str) -> bool:
    return bool(caller.everywhere) or organization in homes(caller)


def homes(caller: Caller) -> set[str]:
    return {*caller.organizations, *(place.organization for place in caller.projects)}


def only(caller: Caller) -> str | None:
    """Return the only organization of a caller; a service has none here, because none pays for what it asks."""
    found = homes(caller)
    return found.pop() if len(found) == 1 and caller.own is None else None
