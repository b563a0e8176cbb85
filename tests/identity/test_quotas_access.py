"""Who may see and do what about quotas, what is not there, and what was used when."""

import msgspec
import pytest

from remuda.access.principal import Context, Principal
from remuda.identity.kinds.quotas import Allocation, QuotaMetadata
from remuda.identity.kinds.tenancy import Project
from remuda.identity.quotas.ledger import seed_quota_metadata
from remuda.identity.quotas.schema import UsageQuery
from tests.kit.identity.quotas import (
    ALL,
    BASE,
    NOWHERE,
    OTHER_PROJECT,
    ROWS,
    SERVICE,
    asked,
    limits,
    made,
    quota,
)
from tests.kit.identity.resource_api import ORG, OTHER_ORG, PROJECT, IdentityApi, member
from tests.kit.proofs.linearizability.quota_clients import Quotas


async def test_what_is_not_there_is_not_found(quotas: IdentityApi[Quotas]) -> None:
    client = quotas.ask(SERVICE)
    row = await made(client, asked(servers=1))
    nowhere = f"/api/v1/organizations/{NOWHERE}"
    assert (await client.get(f"{nowhere}/quotas")).status == 404
    assert (await client.put(f"{nowhere}/quotas", limits(servers=1))).status == 404
    assert (await client.get(f"{nowhere}/allocations")).status == 404
    assert (await client.post(f"{nowhere}/projects/{PROJECT}/allocations", asked(servers=1))).status == 404
    gone = f"{BASE}/projects/{NOWHERE}"
    assert (await client.post(f"{gone}/allocations", asked(servers=1))).status == 404
    assert (await client.get(f"{gone}/quotas")).status == 404
    assert (await client.put(f"{gone}/quotas", limits(servers=1))).status == 404
    unknown = await client.get(f"{BASE}/allocations", {"projectID": NOWHERE})
    assert (unknown.status, unknown.json) == (200, []), "it may have been there once"
    for path in (f"{ROWS}/{NOWHERE}", f"{BASE}/projects/{OTHER_PROJECT}/allocations/{row}"):
        assert (await client.get(path)).status == 404
        assert (await client.put(path, asked(servers=1))).status == 404
        assert (await client.delete(path)).status == 404
        assert (await client.post(f"{path}/confirm")).status == 404
        assert (await client.post(f"{path}/renew")).status == 404
    assert (await client.get(f"{ROWS}/{row}")).status == 200


async def test_a_project_that_is_being_deleted_keeps_its_ledger_until_the_end(quotas: IdentityApi[Quotas]) -> None:
    client = quotas.ask(SERVICE)
    project = await quotas.store.get(Project, PROJECT)
    kept = msgspec.structs.replace(
        project, metadata=msgspec.structs.replace(project.metadata, finalizers=("test.remuda/kept",))
    )
    await quotas.store.update(kept)
    row = f"{ROWS}/{await made(client, asked(servers=1))}"
    await quotas.store.delete(Project, PROJECT, uid=project.uid)
    assert (await client.put(row, asked(servers=2))).status == 200
    assert (await client.get(row)).status == 200
    await made(client, asked("owner-2", servers=1))
    assert len((await quotas.store.list(Allocation, index=("active", PROJECT))).items) == 2
    assert (await client.delete(row)).status == 202


@pytest.mark.parametrize(
    ("method", "path", "right"),
    [
        ("GET", f"{BASE}/quotas", "identity:quotas R"),
        ("PUT", f"{BASE}/quotas", "identity:quotas U"),
        ("GET", f"{BASE}/allocations", "identity:quotas R"),
        ("GET", f"{BASE}/projects/{PROJECT}/quotas", "identity:quotas R"),
        ("PUT", f"{BASE}/projects/{PROJECT}/quotas", "identity:projects U"),
        ("POST", ROWS, "identity:allocations C"),
        ("GET", f"{ROWS}/ROW", "identity:allocations R"),
        ("PUT", f"{ROWS}/ROW", "identity:allocations U"),
        ("POST", f"{ROWS}/ROW/confirm", "identity:allocations U"),
        ("POST", f"{ROWS}/ROW/renew", "identity:allocations C"),
        ("DELETE", f"{ROWS}/ROW", "identity:allocations D"),
    ],
)
async def test_each_operation_asks_for_its_right_and_no_other(
    quotas: IdentityApi[Quotas], method: str, path: str, right: str
) -> None:
    row = await made(quotas.ask(SERVICE), asked(servers=1))
    body = limits(servers=5) if path.endswith("quotas") else asked("owner-2" if method == "POST" else "owner-1")
    endpoint, letter = right.split()
    others = "".join(each for each in "CRUD" if each != letter)
    inside = {PROJECT.replace("-", "_"): f"{endpoint} CRUD"}

    async def status(who: Principal | None) -> int:
        sent = body if method in {"PUT", "POST"} and "ROW/" not in path else None
        reply = await quotas.ask(who).send(method, path.replace("ROW", row), body=sent)
        return reply.status

    assert await status(None) == 401
    assert await status(member("stranger", OTHER_ORG, ALL)) == 403
    assert await status(member("other", ORG, f"{endpoint} {others}, identity:groups CRUD")) == 403
    in_project = await status(member("insider", ORG, "", **inside))
    assert (in_project < 300) == (endpoint == "identity:allocations"), "limits are the organization's"
    if in_project == 403:
        also = ", identity:projects R" if path.endswith("/quotas") and method == "GET" else ""
        assert await status(member("holder", ORG, right + also)) < 300


READER = member("reader", ORG, "identity:quotas R", **{PROJECT.replace("-", "_"): "identity:projects R"})
"""As the role `reader` has it, in one project."""


async def test_usage_shows_what_is_in_the_projects_that_one_may_read(quotas: IdentityApi[Quotas]) -> None:
    client, clock = quotas.ask(SERVICE), quotas.world.clock
    before = clock.now().isoformat()
    await made(client, asked("owner-1", servers=1))
    there = await client.post(f"{BASE}/projects/{OTHER_PROJECT}/allocations", asked("owner-2", servers=1))
    assert there.status == 201
    await clock.sleep(60)

    async def owners(who: Principal, **query: str) -> list[str]:
        reply = await quotas.ask(who).get(f"{BASE}/allocations", query)
        assert reply.status == 200, reply
        return sorted(each["spec"]["id"] for each in reply.json)

    nowhere = member("member", ORG, "identity:quotas R")
    auditor = member("auditor", ORG, "identity:quotas R, identity:projects R")
    for query in ({}, {"kind": "servers"}, {"since": before}, {"projectID": OTHER_PROJECT}):
        is_there = "projectID" in query
        assert await owners(nowhere, **query) == []
        assert await owners(READER, **query) == ([] if is_there else ["owner-1"])
        assert await owners(auditor, **query) == (["owner-2"] if is_there else ["owner-1", "owner-2"])


async def test_the_limits_of_a_project_are_for_who_may_read_it(quotas: IdentityApi[Quotas]) -> None:
    client = quotas.ask(READER)
    assert (await client.get(f"{BASE}/projects/{PROJECT}/quotas")).status == 200
    refused = await client.get(f"{BASE}/projects/{OTHER_PROJECT}/quotas")
    assert refused.status == 403
    assert "'read' on endpoint 'identity:projects'" in refused.json["error_description"]


async def test_who_uses_what_since_when_can_be_listed_now_and_later(quotas: IdentityApi[Quotas]) -> None:
    client, clock = quotas.ask(SERVICE), quotas.world.clock
    path = f"{BASE}/allocations"

    async def owners(**query: str) -> list[str]:
        reply = await client.get(path, query)
        assert reply.status == 200, reply
        return sorted(each["spec"]["id"] for each in reply.json)

    def now() -> str:
        return clock.now().isoformat()

    before = now()
    await clock.sleep(3600)
    first = await made(client, asked("owner-1", servers=1))
    reply = await client.post(f"{BASE}/projects/{OTHER_PROJECT}/allocations", asked("owner-2", gpus=1))
    assert reply.status == 201
    await clock.sleep(3600)
    both = now()
    await clock.sleep(3600)
    await client.delete(f"{ROWS}/{first}")
    await clock.sleep(3600)
    after = now()
    await made(client, asked("owner-3", servers=1), idempotency_key="never-made")
    assert await owners() == ["owner-2", "owner-3"]
    assert await owners(projectID=PROJECT) == ["owner-3"]
    assert await owners(kind="servers") == ["owner-3"]
    assert await owners(kind="servers", projectID=OTHER_PROJECT) == []
    assert await owners(at=before) == []
    assert await owners(at=both) == ["owner-1", "owner-2"]
    assert await owners(at=both, kind="servers") == ["owner-1"]
    assert await owners(at=after) == ["owner-2"]
    assert await owners(since=before, until=both) == ["owner-1", "owner-2"]
    assert await owners(since=after) == ["owner-2", "owner-3"]
    assert await owners(until=before) == []
    listed = (await client.get(path, {"at": both, "kind": "servers"})).json[0]
    assert listed["metadata"]["projectId"] == PROJECT
    assert listed["status"]["state"] == "released"
    assert listed["status"]["started"] < both < listed["status"]["ended"]
    page = await client.get(path, {"limit": "1"})
    assert len(page.json) == 1
    assert len((await client.get(path, {"limit": "1", "continue": page.headers["x-continue"]})).json) == 1
    for wrong in ({"at": both, "since": both}, {"since": after, "until": both}):
        assert (await client.get(path, wrong)).status == 422
    assert (await client.get(path, {"at": "yesterday"})).status == 400


async def test_what_a_project_used_that_is_gone_can_be_listed(quotas: IdentityApi[Quotas]) -> None:
    client, clock = quotas.ask(SERVICE), quotas.world.clock
    before = clock.now().isoformat()
    row = f"{ROWS}/{await made(client, asked(servers=1))}"
    await clock.sleep(60)
    assert (await client.delete(row)).status == 202
    project = await quotas.store.get(Project, PROJECT)
    assert await quotas.store.delete(Project, PROJECT, uid=project.uid) is None
    listed = await client.get(f"{BASE}/allocations", {"projectID": PROJECT, "since": before})
    assert listed.status == 200
    assert [each["spec"]["id"] for each in listed.json] == ["owner-1"]
    assert (await client.get(f"{BASE}/allocations", {"projectID": PROJECT})).json == []


async def test_what_is_used_now_is_found_without_going_through_the_past(quotas: IdentityApi[Quotas]) -> None:
    context = Context(principal=SERVICE, operation=NOWHERE, trace_id="trace")
    for project, value in ((None, ORG), (PROJECT, PROJECT)):
        query = UsageQuery(kind="servers", project=project)
        found = await quotas.service.allocations.usage(context, ORG, query)
        assert found.index == ("active", value)


async def test_a_default_that_an_operator_lowers_stops_growth_and_nothing_else(quotas: IdentityApi[Quotas]) -> None:
    client = quotas.ask(SERVICE)
    row = f"{ROWS}/{await made(client, asked(servers=8))}"
    metadata = await quotas.store.get(QuotaMetadata, "servers")
    lowered = msgspec.structs.replace(metadata, spec=msgspec.structs.replace(metadata.spec, default=5))
    await quotas.store.update(lowered)
    await seed_quota_metadata(quotas.store)
    servers = await quota(client)
    assert (servers["quantity"], servers["used"], servers["free"]) == (5, 8, -3), "what an operator said stays"
    assert (await client.post(ROWS, asked("owner-2", servers=1))).status == 403
    assert (await client.put(row, asked(servers=7))).status == 200
    assert (await client.put(f"{BASE}/quotas", limits(gpus=1))).status == 200, "it lowers nothing that is used"
    assert (await client.put(f"{BASE}/quotas", limits(servers=4))).status == 403
