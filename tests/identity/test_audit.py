"""Reading the audit: by organization and by system, the latest first, in pages, with filters."""

import asyncio
from collections.abc import Callable, Coroutine
from datetime import datetime
from typing import Any

import pytest

from remuda.access.principal import Principal
from remuda.http.audit import Actor, AuditOperation, AuditTarget, audit_record
from remuda.http.routes import AnyRoute, Call, Route
from remuda.http.schema import Parameters
from remuda.http.shares import Holder
from remuda.identity import audit as api
from remuda.identity.audit import AuditLog
from remuda.kernel.errors import Invalid
from remuda.store.logs import Log, LogPage
from tests.kit.asgi.contract import Reply
from tests.kit.environment import provided_by
from tests.kit.identity.resource_api import ORG, OTHER_ORG, IdentityApi, everywhere, member, run_identity_api
from tests.kit.simulation.store import SEALER

AUDIT = f"/api/v1/organizations/{ORG}/audit"
ADMINISTRATOR = member("admin@example.com", text="identity:organizations RU")
AUDITOR = member("auditor@example.com", text="identity:organizations R")
USER = member("user@example.com", text="identity:quotas R")
PLATFORM = everywhere("root@example.com", "identity:organizations CRUD")


class ThingPath(Parameters, frozen=True, rename={"organization": "organizationID", "thing": "thingID"}):
    organization: str
    thing: str


async def _change(auditing: AuditLog, call: Call[ThingPath, Any, Any]) -> None:  # noqa: ARG001  a handler
    if call.path.thing == "bad":
        raise Invalid("thing", "is bad", remedy="name a good one")


def routes() -> list[AnyRoute]:
    """Return the resource's own, and one that changes something."""
    change: AnyRoute = Route(
        method="PUT",
        path="/api/v1/organizations/{organizationID}/things/{thingID}",
        name="change_thing",
        summary="Change a thing",
        scope="authenticated",
        path_type=ThingPath,
        handler=_change,
    )
    return [*api.ROUTES, change]


class Counted:
    """A log that counts what is looked at."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self.looked = 0
        self.most_at_once = 0

    async def append(self, records: Any) -> None:
        await self._log.append(records)

    async def read(self, stream: str, subject: str, *, after: int = 0, limit: int = 100) -> LogPage:
        return await self._log.read(stream, subject, after=after, limit=limit)

    async def read_back(self, stream: str, subject: str, *, before: int | None = None, limit: int = 100) -> LogPage:
        page = await self._log.read_back(stream, subject, before=before, limit=limit)
        self.looked += len(page.entries)
        self.most_at_once = max(self.most_at_once, len(page.entries))
        return page


AuditApi = IdentityApi[AuditLog]


def counted(environment: AuditApi) -> Counted:
    assert isinstance(environment.service.log, Counted)
    return environment.service.log


def run_audit(scenario: Callable[[AuditApi], Coroutine[Any, Any, None]]) -> None:
    run_identity_api(lambda _, store: AuditLog(log=Counted(store), sealer=SEALER), routes(), scenario)


audit = provided_by(run_audit)


async def happen(environment: AuditApi, number: int, *, organization: str | None = ORG, **more: Any) -> None:
    """Let something happen, a minute after what happened before."""
    given: dict[str, Any] = {
        "component": "identity",
        "actor": Actor(subject=f"user-{number % 2}"),
        "operation": AuditOperation(method="LOGIN", route="/oauth2/v2/login"),
        "resource": AuditTarget(type="users", id=f"u-{number}"),
        "status": 200,
        "trace_id": f"{number:032x}",
    }
    await environment.store.append([audit_record(**given | {"organization": organization} | more)])
    await environment.world.clock.sleep(60)


def numbers(reply: Reply) -> list[int]:
    assert reply.status == 200, reply.body
    return [int(entry["traceID"], 16) for entry in reply.json]


async def test_an_organization_sees_what_was_done_in_it_and_how_it_ended(audit: AuditApi) -> None:
    administrator = audit.ask(ADMINISTRATOR)
    assert (await administrator.put(f"/api/v1/organizations/{ORG}/things/good")).status == 200
    assert (await administrator.put(f"/api/v1/organizations/{ORG}/things/bad")).status == 422
    refused, changed = (await administrator.get(AUDIT)).json
    assert changed["actor"] == {"subject": "admin@example.com"}
    assert changed["operation"] == {
        "method": "PUT",
        "route": "/api/v1/organizations/{organizationID}/things/{thingID}",
    }
    assert (changed["resource"], changed["result"]) == ({"type": "things", "id": "good"}, {"status": 200})
    assert changed["scope"] == {"organizationID": ORG, "thingID": "good"}
    assert changed["component"]["name"] == "identity"
    assert (refused["resource"]["id"], refused["result"]) == ("bad", {"status": 422})
    assert datetime.fromisoformat(refused["time"]) >= datetime.fromisoformat(changed["time"])


async def test_it_tells_on_whose_behalf_a_service_acted(audit: AuditApi) -> None:
    actor = Actor(subject="unikorn-compute", actor="anna@example.com", service="unikorn-compute")
    await happen(audit, 1, actor=actor)
    (entry,) = (await audit.ask(AUDITOR).get(AUDIT)).json
    assert entry["actor"] == {
        "subject": "unikorn-compute",
        "actor": "anna@example.com",
        "service": "unikorn-compute",
    }


@pytest.mark.parametrize(
    ("who", "status"), [(ADMINISTRATOR, 200), (AUDITOR, 200), (PLATFORM, 200), (USER, 403), (None, 401)]
)
async def test_administrators_and_auditors_of_an_organization_may_read_it(
    audit: AuditApi, who: Principal | None, status: int
) -> None:
    await happen(audit, 1)
    reply = await audit.ask(who).get(AUDIT)
    assert reply.status == status
    assert status != 403 or "'read' on endpoint 'identity:organizations'" in reply.json["error_description"]


async def test_nobody_reads_the_audit_of_another_organization_or_of_the_system(audit: AuditApi) -> None:
    await happen(audit, 1, organization=OTHER_ORG)
    await happen(audit, 2, organization=None)
    mine = audit.ask(ADMINISTRATOR)
    assert (await mine.get(f"/api/v1/organizations/{OTHER_ORG}/audit")).status == 403
    assert (await mine.get("/api/v1/audit")).status == 403
    assert (await mine.get("/api/v1/audit", {"organizationID": ORG})).status == 403
    assert numbers(await mine.get(AUDIT)) == []


async def test_whoever_may_read_everything_reads_the_systems_records_and_anybodys(audit: AuditApi) -> None:
    await happen(audit, 1)
    await happen(audit, 2, organization=None)
    root = audit.ask(PLATFORM)
    assert numbers(await root.get("/api/v1/audit")) == [2]
    assert numbers(await root.get("/api/v1/audit", {"organizationID": ORG})) == [1]
    assert numbers(await root.get(AUDIT)) == [1]


async def test_pages_follow_each_other_from_the_latest_back(audit: AuditApi) -> None:
    for number in range(5):
        await happen(audit, number)
    client = audit.ask(AUDITOR)
    first = await client.get(AUDIT, {"limit": "2"})
    await happen(audit, 9)
    assert first.headers["link"].startswith("<?limit=2&continue=")
    second = await client.get(AUDIT, {"limit": "2", "continue": first.headers["x-continue"]})
    third = await client.get(AUDIT, {"limit": "2", "continue": second.headers["x-continue"]})
    assert [numbers(page) for page in (first, second, third)] == [[4, 3], [2, 1], [0]]
    assert "x-continue" not in third.headers
    exact = await client.get(AUDIT, {"limit": "6"})
    assert (len(numbers(exact)), "x-continue" in exact.headers) == (6, False)


async def test_a_page_is_a_hundred_unless_somebody_says_otherwise_and_never_over_a_thousand(audit: AuditApi) -> None:
    for number in range(130):
        await happen(audit, number)
    client = audit.ask(AUDITOR)
    reply = await client.get(AUDIT)
    assert (len(numbers(reply)), "x-continue" in reply.headers) == (100, True)
    assert (await client.get(AUDIT, {"limit": "1001"})).status == 400
    assert (await client.get(AUDIT, {"watch": "true"})).status == 400


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"actor": "user-1"}, [5, 3, 1]),
        ({"actor": "nobody"}, []),
        ({"resource": "users"}, [4, 3, 2, 1, 0]),
        ({"resource": "projects", "resourceID": "p-5"}, [5]),
        ({"resourceID": "u-3"}, [3]),
        ({"status": "403"}, [5]),
        ({"status": "4xx"}, [5]),
        ({"status": "2xx", "actor": "user-1"}, [3, 1]),
    ],
)
async def test_filters_narrow_what_is_told(audit: AuditApi, query: dict[str, str], found: list[int]) -> None:
    for number in range(5):
        await happen(audit, number)
    await happen(audit, 5, status=403, resource=AuditTarget(type="projects", id="p-5"))
    assert numbers(await audit.ask(AUDITOR).get(AUDIT, query)) == found


async def test_the_one_it_was_done_for_and_the_service_are_found_by_name_too(audit: AuditApi) -> None:
    await happen(audit, 1, actor=Actor(subject="compute", actor="anna", service="compute"))
    client = audit.ask(AUDITOR)
    for name in ("anna", "compute"):
        assert numbers(await client.get(AUDIT, {"actor": name})) == [1]


async def test_a_span_of_time_has_both_its_ends(audit: AuditApi) -> None:
    times = []
    for number in range(4):
        times.append(audit.world.clock.now().isoformat())
        await happen(audit, number)
    client = audit.ask(AUDITOR)
    assert numbers(await client.get(AUDIT, {"since": times[1], "until": times[2]})) == [2, 1]
    assert numbers(await client.get(AUDIT, {"since": times[3].replace("+00:00", "Z")})) == [3]
    for nonsense in ("yesterday", "2026-01-01T00:00:00", "2026-01-01"):
        reply = await client.get(AUDIT, {"since": nonsense})
        assert (reply.status, '"since"' in reply.json["error_description"]) == (400, True)


async def test_a_page_looks_at_ten_times_its_limit_and_goes_on_from_there(audit: AuditApi) -> None:
    await happen(audit, 1000, actor=Actor(subject="rare"))
    for number in range(45):
        await happen(audit, number)
    client, log = audit.ask(AUDITOR), counted(audit)
    query = {"limit": "2", "actor": "rare"}
    pages: list[list[int]] = []
    while len(pages) < 10:
        log.looked = 0
        reply = await client.get(AUDIT, query)
        assert log.looked <= 20
        pages.append(numbers(reply))
        if "x-continue" not in reply.headers:
            break
        query["continue"] = reply.headers["x-continue"]
    assert pages == [[], [], [1000]]


async def test_what_is_before_the_time_that_is_meant_is_not_looked_at(audit: AuditApi) -> None:
    for number in range(250):
        await happen(audit, number)
    since = audit.world.clock.now().isoformat()
    await happen(audit, 999)
    client, log = audit.ask(AUDITOR), counted(audit)
    reply = await client.get(AUDIT, {"limit": "1000", "since": since, "actor": "user-1"})
    assert (numbers(reply), "x-continue" in reply.headers) == ([999], False)
    assert log.looked <= 100


async def test_a_long_page_is_read_in_slices(audit: AuditApi) -> None:
    for number in range(250):
        await happen(audit, number)
    assert len(numbers(await audit.ask(AUDITOR).get(AUDIT, {"limit": "1000"}))) == 250
    assert counted(audit).most_at_once == 100


async def test_a_token_is_for_whom_it_was_given_to_and_for_those_records(audit: AuditApi) -> None:
    for number in range(3):
        await happen(audit, number)
        await happen(audit, number, organization=None)
    root = audit.ask(PLATFORM)
    token = (await root.get("/api/v1/audit", {"limit": "1"})).headers["x-continue"]
    for reply in (
        await root.get(AUDIT, {"continue": token}),
        await root.get("/api/v1/audit", {"continue": token, "organizationID": ORG}),
        await audit.ask(everywhere("other@example.com", "identity:organizations R")).get(
            "/api/v1/audit", {"continue": token}
        ),
        await root.get("/api/v1/audit", {"continue": "17"}),
    ):
        assert (reply.status, '"continue"' in reply.json["error_description"]) == (400, True)
    assert numbers(await root.get("/api/v1/audit", {"continue": token})) == [1, 0]


READERS = 60


async def _fill(environment: AuditApi, count: int, *, organization: str = ORG) -> None:
    """Store many records at once."""
    record = audit_record(
        component="identity",
        actor=Actor(subject="ann"),
        operation=AuditOperation(method="LOGIN", route="/oauth2/v2/login"),
        resource=AuditTarget(type="users", id="u"),
        status=200,
        trace_id="0" * 32,
        organization=organization,
    )
    await environment.store.append([record] * count)


async def test_m27_pages_of_one_organization_are_read_two_at_a_time_and_those_of_another_do_not_wait_for_them(
    audit: AuditApi,
) -> None:
    await _fill(audit, 300)
    await _fill(audit, 300, organization=OTHER_ORG)
    victim = member("victim@example.com", organization=OTHER_ORG, text="identity:organizations R")
    readers = [asyncio.create_task(audit.ask(ADMINISTRATOR).get(AUDIT, query={"limit": "300"})) for _ in range(READERS)]
    await asyncio.wait(readers, return_when=asyncio.FIRST_COMPLETED)
    reply = await audit.ask(victim).get(f"/api/v1/organizations/{OTHER_ORG}/audit", query={"limit": "300"})
    assert (reply.status, len(reply.json)) == (200, 300)
    done = sum(each.done() for each in readers)
    assert done < READERS / 2
    assert counted(audit).looked <= 300 * (done + 3), "two pages are read, and that of the other organization"
    assert {each.status for each in await asyncio.gather(*readers)} == {200}


async def test_m27_what_a_page_looks_at_counts_against_the_rate_limit(audit: AuditApi) -> None:
    await _fill(audit, 1_000)

    async def left(**query: str) -> int:
        headers = (await audit.ask(ADMINISTRATOR).get(AUDIT, query=query)).headers
        return int(headers["ratelimit"].partition("r=")[2].partition(";")[0])

    before = await left(limit="1")
    assert before - await left(limit="50") == 1
    before = await left(limit="1")
    assert before - await left(limit="1000", actor="nobody") == 20


async def test_m27_a_page_is_not_read_without_memory_for_it(audit: AuditApi) -> None:
    await _fill(audit, 300)
    app: Any = audit.app
    shares, other = app._app._ports.buffers.callers, 1 << 20
    for number in range(shares._limit // other - 1):
        shares.take((Holder("organization", f"other {number}"),), other)
    shares.take((Holder("organization", "another"),), other // 2)
    assert (await audit.ask(ADMINISTRATOR).get(AUDIT, query={"limit": "1000"})).status == 503
    assert counted(audit).looked == 0
    assert (await audit.ask(ADMINISTRATOR).get(AUDIT, query={"limit": "3"})).status == 200
