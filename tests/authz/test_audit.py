"""Whose audit a write is in: that of the organization it was about, unless the caller is a stranger there."""

from typing import Any

import msgspec

from tests.authz.livery import CALLERS, ROWS
from tests.authz.livery_subject import LiverySubject, livery
from tests.kit.asgi.client import Client
from tests.kit.proofs.authorization.matrix import ABROAD, ABSENT, HOME, Caller, Scope, Target


def caller(name: str) -> Caller:
    return next(each for each in CALLERS if each.name == name)


async def records(subject: LiverySubject, organization: str) -> list[dict[str, Any]]:
    name = organization if organization == "system" else f"organization/{organization}"
    page = await subject.app.ports.log.read("audit", name)
    return [msgspec.json.decode(entry.data) for entry in page.entries]


async def write(subject: LiverySubject, who: str, operation: str, target: Target) -> int:
    row = next(row for row in ROWS if row.operation == operation)
    request = await subject.request(row, target)
    client = Client(app=subject.app.asgi)
    headers = subject.credentials.headers(caller(who))
    return (await client.send(row.method, request.target, body=request.body, headers=headers)).status


async def test_a_strangers_refused_write_is_not_in_the_audit_of_the_organization_it_names() -> None:
    async with livery() as subject:
        there = Target(label="abroad", named=ABROAD, holder=ABROAD)
        assert await write(subject, "user", "create_yard", there) == 403
        assert await records(subject, ABROAD.organization) == []
        (record,) = await records(subject, "system")
        assert (record["result"], record["scope"]["organizationID"]) == ({"status": 403}, ABROAD.organization)


async def test_an_organization_that_is_not_there_has_no_audit() -> None:
    async with livery() as subject:
        nowhere = Scope(organization=ABSENT, project=ABSENT)
        assert await write(subject, "user", "create_yard", Target(label="nowhere", named=nowhere)) == 403
        assert await records(subject, ABSENT) == []
        assert len(await records(subject, "system")) == 1


async def test_what_an_operator_does_to_a_mount_is_in_the_audit_of_the_mounts_organization() -> None:
    async with livery() as subject:
        for operation in ("create_mount", "update_mount", "brand_mount", "delete_mount"):
            assert await write(subject, "admin", operation, Target(label="abroad", holder=ABROAD)) < 300
        kept = await records(subject, ABROAD.organization)
        assert [record["operation"]["method"] for record in kept] == ["POST", "PUT", "POST", "DELETE"]
        assert {record["resource"]["type"] for record in kept} == {"mounts"}
        assert all(record["resource"]["id"] for record in kept)


async def test_what_a_member_is_refused_is_in_the_audit_of_its_organization() -> None:
    async with livery() as subject:
        assert await write(subject, "member", "create_yard", Target(label="home", named=HOME)) == 403
        (record,) = await records(subject, HOME.organization)
        assert record["resource"] == {"type": "yards", "id": ""}
