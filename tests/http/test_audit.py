from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from remuda.access.principal import AccessList, OrganizationAccess, Permission, Principal
from remuda.http.audit import STREAM, Audit, AuditOperation, AuditTarget, Component, FindOwner, audited_target
from remuda.kernel.errors import Conflict, StoreClosed
from remuda.store.sqlite.store import SqliteStore
from tests.kit.sample_api.collections import sample_store
from tests.kit.sample_kinds import Horse, horse

ORGANIZATION = "b0000000-0000-4000-8000-000000000001"
PATH = {"organizationID": ORGANIZATION, "horseID": "h-1"}
ROUTE = "/api/v1/organizations/{organizationID}/horses/{horseID}"
ANNA = Principal(
    subject="unikorn-compute",
    type="system",
    actor="anna@example.com",
    service="unikorn-compute",
    project="p-1",
    organizations=(ORGANIZATION,),
)


def audit(
    log: SqliteStore,
    *,
    principal: Principal = ANNA,
    path: dict[str, str] | None = None,
    is_everywhere: bool = False,
    owners: Mapping[str, FindOwner] | None = None,
) -> Audit:
    return Audit(
        log,
        component=Component(name="sample", version="1.2.3"),
        principal=principal,
        operation=AuditOperation(method="PUT", route=ROUTE),
        path=PATH if path is None else path,
        success=201,
        trace_id="f" * 32,
        is_everywhere=is_everywhere,
        owners=owners,
    )


async def records(log: SqliteStore, subject: str = f"organization/{ORGANIZATION}") -> list[dict[str, Any]]:
    page = await log.read(STREAM, subject)
    return [msgspec.json.decode(entry.data) for entry in page.entries]


async def test_a_success_is_in_the_commit_of_the_write_that_carried_it_out(tmp_path: Path) -> None:
    async with sample_store(tmp_path) as store:
        one = audit(store)
        await store.create(horse("h-1"), log=one.record_success("horses", "h-1"))
        assert await records(store) == [
            {
                "component": {"name": "sample", "version": "1.2.3"},
                "actor": {"subject": "unikorn-compute", "actor": "anna@example.com", "service": "unikorn-compute"},
                "operation": {"method": "PUT", "route": ROUTE},
                "scope": {**PATH, "project": "p-1"},
                "resource": {"type": "horses", "id": "h-1"},
                "result": {"status": 201},
                "trace_id": "f" * 32,
            }
        ]
        await one.finish(201)
        assert len(await records(store)) == 1, "one record for one request"


async def test_a_write_that_is_refused_takes_its_record_with_it_and_the_failure_is_recorded(tmp_path: Path) -> None:
    async with sample_store(tmp_path) as store:
        old = await store.create(horse("h-1", labels={"herd": "a"}))
        await store.update(msgspec.structs.replace(old, metadata=msgspec.structs.replace(old.metadata, labels={})))
        one = audit(store)
        with pytest.raises(Conflict):
            await store.update(old, log=one.record_success("horses", "h-1"))
        await one.finish(409)
        assert [record["result"] for record in await records(store)] == [{"status": 409}]


async def test_a_success_that_no_write_audited_is_recorded_at_the_end(tmp_path: Path) -> None:
    async with sample_store(tmp_path) as store:
        await audit(store).finish(202)
        await audit(store).finish(201, AuditTarget(type="foals", id="f-1"))
        kept = await records(store)
        assert [(record["resource"], record["result"]["status"]) for record in kept] == [
            ({"type": "horses", "id": "h-1"}, 202),
            ({"type": "foals", "id": "f-1"}, 201),
        ]


@pytest.mark.parametrize("status", [400, 403, 404, 422, 500, 503])
async def test_a_failure_is_recorded_with_its_status(tmp_path: Path, status: int) -> None:
    async with sample_store(tmp_path) as store:
        await audit(store).finish(status)
        assert [record["result"]["status"] for record in await records(store)] == [status]


@pytest.mark.parametrize(
    ("path", "organization", "organizations", "subject"),
    [
        ({"organizationID": "o-1"}, "o-1", ("o-3",), "organization/o-1"),
        ({"organizationID": "o-3"}, "o-2", ("o-3", "o-4"), "organization/o-3"),
        ({}, "o-2", ("o-3",), "organization/o-2"),
        ({}, None, ("o-3",), "organization/o-3"),
        ({}, None, ("o-3", "o-4"), "system"),
        ({}, None, (), "system"),
    ],
)
async def test_an_organization_finds_its_own_records(
    tmp_path: Path, path: dict[str, str], organization: str | None, organizations: tuple[str, ...], subject: str
) -> None:
    anna = Principal(subject="anna", type="user", organization=organization, organizations=organizations)
    async with sample_store(tmp_path) as store:
        await audit(store, principal=anna, path=path).finish(403)
        (record,) = await records(store, subject)
        assert record["actor"] == {"subject": "anna"}


RIGHT = frozenset({Permission("sample:horses", "read")})


@pytest.mark.parametrize(
    ("access", "subject"),
    [
        (AccessList(organizations={"o-1": OrganizationAccess()}), "organization/o-1"),
        (AccessList(everywhere=RIGHT), "organization/o-1"),
        (AccessList(organizations={"o-2": OrganizationAccess(permissions=RIGHT)}), "system"),
        (AccessList(), "system"),
    ],
)
async def test_a_stranger_does_not_write_into_the_records_of_an_organization(
    tmp_path: Path, access: AccessList, subject: str
) -> None:
    stranger = Principal(subject="bert", type="user", access=access, organizations=("o-2",))
    async with sample_store(tmp_path) as store:
        await audit(store, principal=stranger, path={"organizationID": "o-1"}).finish(403)
        (record,) = await records(store, subject)
        assert record["scope"] == {"organizationID": "o-1"}


async def test_m27_a_stranger_chooses_nothing_in_the_record_of_the_owner_not_even_the_trace(tmp_path: Path) -> None:
    async def owner_of_horse(named: Mapping[str, str]) -> str | None:
        return ORGANIZATION if named["horseID"] == "h-1" else None

    stranger = Principal(subject="bert", type="user", organizations=("o-2",))
    async with sample_store(tmp_path) as store:
        for principal in (stranger, ANNA):
            await audit(store, principal=principal, owners={"horseID": owner_of_horse}).finish(403)
        of_stranger, of_anna = await records(store)
        assert (of_stranger["actor"], of_stranger["trace_id"]) == ({"subject": "bert"}, "")
        assert of_anna["trace_id"] == "f" * 32
        (own,) = await records(store, "system")
        assert own["trace_id"] == "f" * 32


async def test_a_record_goes_where_the_object_belongs(tmp_path: Path) -> None:
    admin = Principal(subject="root", type="user", access=AccessList(everywhere=RIGHT), organizations=("o-9",))
    async with sample_store(tmp_path) as store:
        one = audit(store, principal=admin, path={})
        await store.create(horse("h-1"), log=one.record_success("horses", "h-1", organization="o-1"))
        other = audit(store, principal=admin, path={})
        other.record_success("horses", "h-2", organization="o-1")
        await other.finish(409)
        kept = await records(store, "organization/o-1")
        assert [record["result"]["status"] for record in kept] == [201, 409]


@pytest.mark.parametrize(
    ("path", "written", "subject"),
    [({}, None, "system"), ({}, "o-1", "organization/o-1"), ({"organizationID": "o-1"}, None, "organization/o-1")],
)
async def test_what_is_done_to_the_whole_system_is_not_told_where_its_administrator_is_a_member(
    tmp_path: Path, path: dict[str, str], written: str | None, subject: str
) -> None:
    access = AccessList(everywhere=RIGHT)
    root = Principal(subject="root", type="user", access=access, organization="o-9", organizations=("o-9",))
    async with sample_store(tmp_path) as store:
        one = audit(store, principal=root, path=path, is_everywhere=True)
        await store.create(horse("h-1"), log=one.record_success("horses", "h-1", organization=written))
        refused = audit(store, principal=root, path=path, is_everywhere=True)
        refused.record_success("horses", "h-1", organization=written)
        await refused.finish(409)
        assert [record["result"]["status"] for record in await records(store, subject)] == [201, 409]
        assert await records(store, "organization/o-9") == []


async def test_no_answer_but_a_failure_goes_out_without_its_record(tmp_path: Path) -> None:
    async with sample_store(tmp_path) as store:
        one = audit(store)
    with pytest.raises(StoreClosed):
        await one.finish(200)
    with pytest.raises(StoreClosed):
        await one.finish(403)
    with capture_logs() as lines:  # what fails the request fails the log as well
        await one.finish(503)
    assert [line["event"] for line in lines] == ["audit record not stored"]


@pytest.mark.parametrize(
    ("route", "target"),
    [
        ("/api/v1/organizations/{organizationID}", AuditTarget(type="organizations", id=ORGANIZATION)),
        ("/api/v1/organizations/{organizationID}/horses", AuditTarget(type="horses")),
        (ROUTE, AuditTarget(type="horses", id="h-1")),
        ("/{organizationID}/{horseID}", AuditTarget(type=ORGANIZATION, id="h-1")),
        ("/", AuditTarget(type="")),
    ],
)
def test_the_path_tells_what_a_request_is_about(route: str, target: AuditTarget) -> None:
    assert audited_target(AuditOperation(method="PUT", route=route), PATH) == target
    told = AuditOperation(method="POST", route=f"{route.rstrip('/')}/rotate", action="rotate")
    assert audited_target(told, PATH) == target, "what is done to it is another matter"


async def test_the_object_that_was_written_is_there_if_and_only_if_its_record_is(tmp_path: Path) -> None:
    async with sample_store(tmp_path) as store:
        await store.create(horse("h-1"), log=audit(store).record_success("horses", "h-1"))
    async with sample_store(tmp_path) as store:
        assert (await store.get(Horse, "h-1")).name == "h-1"
        assert len(await records(store)) == 1
