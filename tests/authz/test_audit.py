"""Audit of writes: in the organization that a write is about, unless the caller is a stranger there."""

from typing import Any

import msgspec

from remuda.store.logs import Log
from tests.kit.proofs.authorization.identity_subject import identity
from tests.kit.proofs.authorization.matrix import ABROAD, ABSENT, HOME, Scope, Target
from tests.kit.proofs.authorization.region_subject import RegionSubject
from tests.kit.proofs.authorization.subjects import Subject


async def records(log: Log, organization: str, **facts: Any) -> list[dict[str, Any]]:
    """Return the records in the audit of an organization, or of the system, that have these facts."""
    name = organization if organization == "system" else f"organization/{organization}"
    page = await log.read("audit", name, limit=1000)
    found = [msgspec.json.decode(entry.data) for entry in page.entries]
    return [each for each in found if facts.items() <= each.items()]


async def write(subject: Subject, who: str, operation: str, target: Target) -> int:
    row = next(row for row in subject.rows if row.operation == operation)
    caller = next(each for each in subject.callers if each.name == who)
    return (await subject.transports["api"].ask(caller, await subject.request(row, target))).status


async def test_a_strangers_refused_write_is_not_in_the_audit_of_the_organization_it_names() -> None:
    async with identity() as subject:
        there = Target(label="abroad", named=ABROAD, holder=ABROAD)
        assert await write(subject, "user", "create_group", there) == 403
        assert await records(subject.identity.store, ABROAD.organization, result={"status": 403}) == []
        (record,) = await records(subject.identity.store, "system", result={"status": 403})
        assert record["scope"]["organizationID"] == ABROAD.organization


async def test_an_organization_that_is_not_there_has_no_audit() -> None:
    async with identity() as subject:
        nowhere = Scope(organization=ABSENT, project=ABSENT)
        assert await write(subject, "user", "create_group", Target(label="nowhere", named=nowhere)) == 403
        assert await records(subject.identity.store, ABSENT) == []
        assert len(await records(subject.identity.store, "system", result={"status": 403})) == 1


async def test_what_an_operator_does_to_an_object_is_in_the_audit_of_its_organization(
    region_subject: RegionSubject,
) -> None:
    target = Target(label="abroad", named=ABROAD, holder=ABROAD)
    for operation in ("create_network", "update_network", "delete_network"):
        assert await write(region_subject, "platform-administrator", operation, target) < 300
    found = await records(region_subject.region.store, ABROAD.organization)
    kept = [record for record in found if record["resource"]["type"] == "networks"]
    assert [record["operation"]["method"] for record in kept][-3:] == ["POST", "PUT", "DELETE"]
    assert all(record["resource"]["id"] for record in kept)


async def test_what_a_member_is_refused_is_in_the_audit_of_its_organization() -> None:
    async with identity() as subject:
        assert await write(subject, "member", "create_group", Target(label="home", named=HOME)) == 403
        (record,) = await records(subject.identity.store, HOME.organization, result={"status": 403})
        assert record["resource"] == {"type": "groups", "id": ""}
