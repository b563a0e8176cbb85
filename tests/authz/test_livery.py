"""The livery keeps its matrix: every operation, for every caller, about everything, through every door."""

import base64
import re

import pytest

from tests.authz.livery import CALLERS, ROWS
from tests.authz.livery_subject import LiverySubject, livery
from tests.example.api import table
from tests.kit.asgi.client import Client
from tests.kit.proofs.authorization.matrix import ABROAD, ABSENT, PLACES, Caller, Row, Target, targets, visible
from tests.kit.proofs.authorization.trial import try_all

NAMES = [row.operation for row in ROWS]
GUARDED = [row for row in ROWS if row.right is not None]
WITH_IDS = [row for row in ROWS if "{" in row.path]
HIDDEN = [row for row in ROWS if row.names == "object"]
READS = [row for row in ROWS if row.method == "GET"]
LISTS = [row for row in ROWS if row.operation in {"list_yards", "list_mounts"}]
KNOWN = [caller for caller in CALLERS if caller.is_known]


def _names(rows: list[Row]) -> list[str]:
    return [row.operation for row in rows]


def test_every_operation_has_a_row_and_every_row_an_operation() -> None:
    assert sorted(route.name for route in table().routes) == sorted(NAMES)


@pytest.mark.parametrize("row", ROWS, ids=NAMES)
def test_a_route_declares_what_its_row_says(row: Row) -> None:
    route = next(route for route in table().routes if route.name == row.operation)
    permission = route.permission
    declared = None if permission is None else (permission.endpoint, permission.verb)
    assert (route.method, route.path, route.scope) == (row.method, row.path, row.scope)
    assert (declared, route.success) == (row.right, row.success)


@pytest.mark.parametrize("door", ["api", "socket"])
@pytest.mark.parametrize("row", ROWS, ids=NAMES)
async def test_everybody_is_answered_as_the_matrix_says(row: Row, door: str) -> None:
    async with livery() as subject:
        await try_all(subject, row, CALLERS, door)


@pytest.mark.parametrize("row", GUARDED, ids=_names(GUARDED))
async def test_the_port_refuses_whom_the_api_refuses(row: Row) -> None:
    async with livery() as subject:
        await try_all(subject, row, KNOWN, "port")


@pytest.mark.parametrize("row", WITH_IDS, ids=_names(WITH_IDS))
async def test_a_bad_id_is_told_before_anybody_is_asked_who_it_is(row: Row) -> None:
    async with livery() as subject:
        anonymous = CALLERS[0]
        request = await subject.request(row, next(targets(row)))
        for name in request.values.keys() & {"organizationID", "projectID", "yardID", "mountID", "operationID"}:
            if f"{{{name}}}" in row.path:
                bad = request.having(name, "nonsense")
                outcome = await subject.transports["api"].ask(anonymous, bad)
                assert (outcome.status, name in outcome.said) == (400, True), f"{name}: {outcome}"


@pytest.mark.parametrize("row", READS, ids=_names(READS))
async def test_a_head_is_answered_as_the_read_would_be(row: Row) -> None:
    async with livery() as subject:
        for caller in CALLERS:
            for target in targets(row):
                path, query = (request := await subject.request(row, target)).target, request.query
                headers = subject.credentials.headers(caller)
                read = await Client(app=subject.app.asgi).send("GET", path, query=query, headers=headers)
                head = await Client(app=subject.app.asgi).send("HEAD", path, query=query, headers=headers)
                assert (head.status, head.body) == (read.status, b""), f"{caller.name}, {target.label}"


async def test_a_certificate_that_no_trusted_proxy_vouches_for_is_nobodys() -> None:
    async with livery() as subject:
        stranger = Client(app=subject.app.asgi, peer=("192.0.2.1", 4711))
        for row in ROWS:
            request = await subject.request(row, next(targets(row)))
            headers = subject.credentials.headers(_named("service for a user"))
            reply = await stranger.send(
                row.method, request.target, query=request.query, body=request.body, headers=headers
            )
            assert reply.status == 401, row.operation


async def test_a_page_does_not_tell_the_ids_of_what_one_may_not_see() -> None:
    async with livery() as subject:
        row = next(row for row in ROWS if row.operation == "list_mounts")
        hidden = []
        for _ in range(12):
            hidden.append(await subject.shown(row, ABROAD))
            subject.use_up(ABROAD)
        headers = subject.credentials.headers(_named("nobody"))
        page = await Client(app=subject.app.asgi).send("GET", row.path, query={"limit": "1"}, headers=headers)
        token = page.headers["x-continue"]
        parts = [base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)) for part in re.split("[.:]", token)]
        assert not any(name.encode() in told for name in hidden for told in [*parts, token.encode()])


async def test_a_token_of_one_caller_or_one_list_is_refused_elsewhere() -> None:
    async with livery() as subject:
        row = next(row for row in ROWS if row.operation == "list_mounts")
        for place in PLACES:
            await subject.shown(row, place)
        client = Client(app=subject.app.asgi)

        async def status(caller: str, token: str, path: str = row.path) -> int:
            query = {"limit": "1", "continue": token}
            reply = await client.send("GET", path, query=query, headers=subject.credentials.headers(_named(caller)))
            assert reply.status == 200 or reply.json["problems"][0]["pointer"] == "continue", reply
            return reply.status

        headers = subject.credentials.headers(_named("admin"))
        page = await client.send("GET", row.path, query={"limit": "1"}, headers=headers)
        token = page.headers["x-continue"]
        yards = await subject.request(LISTS[0], next(targets(LISTS[0])))
        assert await status("admin", token) == 200
        assert await status("user", token) == 400
        assert await status("admin", token, yards.target) == 400


@pytest.mark.parametrize("door", ["api", "port", "socket"])
@pytest.mark.parametrize("row", HIDDEN, ids=_names(HIDDEN))
async def test_what_is_hidden_looks_as_if_it_were_not_there(row: Row, door: str) -> None:
    async with livery() as subject:
        user = next(caller for caller in CALLERS if caller.name == "user")
        hidden = await subject.request(row, Target(label="hidden", holder=ABROAD))
        absent = await subject.request(row, Target(label="absent"))
        one, other = [await subject.transports[door].ask(user, request) for request in (hidden, absent)]
        assert (one.status, other.status) == (404, 404)
        assert one.said.replace(hidden.values[row.thing], ABSENT) == other.said


@pytest.mark.parametrize("door", ["api", "port", "socket"])
@pytest.mark.parametrize("row", LISTS, ids=_names(LISTS))
async def test_a_list_shows_all_that_one_may_see_and_nothing_else(row: Row, door: str) -> None:
    async with livery() as subject:
        there = {place: await subject.shown(row, place) for place in PLACES}
        for caller in KNOWN:
            for target in targets(row):
                shown = await _listed(subject, row, caller, target, door)
                wanted = {there[place] for place in visible(row, caller, target)}
                assert shown in (None, wanted), f"{caller.name}, {target.label}"
        # Somebody sees something, and somebody less than that.
        assert await _listed(subject, row, KNOWN[-1], next(targets(row)), door) in (None, set())
        assert await _listed(subject, row, _named("admin"), next(targets(row)), door)


@pytest.mark.parametrize("row", LISTS, ids=_names(LISTS))
async def test_a_watch_shows_what_the_list_shows_and_is_refused_where_the_list_is(row: Row) -> None:
    async with livery() as subject:
        for place in PLACES:
            await subject.shown(row, place)
        for caller in CALLERS:
            for target in targets(row):
                listed = await _listed(subject, row, caller, target, "api")
                assert await subject.watched(caller, row, target) == listed, f"{caller.name}, {target.label}"


async def _listed(subject: LiverySubject, row: Row, caller: Caller, target: Target, door: str) -> set[str] | None:
    outcome = await subject.transports[door].ask(caller, await subject.request(row, target))
    return {item["metadata"]["id"] for item in outcome.answer} if outcome.status == 200 else None


def _named(name: str) -> Caller:
    return next(caller for caller in CALLERS if caller.name == name)
