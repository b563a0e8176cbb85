"""What lists and streams of identity show: all that one may see, and nothing else. And what a service account may."""

from collections.abc import Iterable

import msgspec
import pytest

from remuda.http.sse import EventReader
from tests.kit.asgi.client import Client, Stream
from tests.kit.identity.environment import ORGANIZATIONS, expect
from tests.kit.proofs.authorization.identity_callers import CALLERS, SERVICE_CALLERS
from tests.kit.proofs.authorization.identity_credentials import subject_of
from tests.kit.proofs.authorization.identity_operations import ROWS
from tests.kit.proofs.authorization.identity_rule import RULE, targets
from tests.kit.proofs.authorization.identity_subject import IdentitySubject, identity
from tests.kit.proofs.authorization.matrix import ABROAD, HOME, NEXT_DOOR, PLACES, Caller, Row, Target

KNOWN = [caller for caller in CALLERS if caller.is_known]
READS = [row for row in ROWS if row.method == "GET" and row.scope != "public"]
WITH_IDS = [row for row in ROWS if "{" in row.path]
LISTS = ("list_providers", "list_users", "list_service_accounts", "list_groups")
WATCHED = ("list_all_projects", "list_projects", "list_providers", "list_groups", "list_usage")
READ_PROJECTS, READ_ORGANIZATIONS = ("identity:projects", "read"), ("identity:organizations", "read")


def _row(operation: str) -> Row:
    return next(row for row in ROWS if row.operation == operation)


def _caller(name: str) -> Caller:
    return next(caller for caller in CALLERS if caller.name == name)


async def _listed(subject: IdentitySubject, row: Row, caller: Caller, target: Target) -> set[str] | None:
    outcome = await subject.transports["api"].ask(caller, await subject.request(row, target))
    return {item["metadata"]["id"] for item in outcome.answer} if outcome.status == 200 else None


@pytest.mark.parametrize("operation", LISTS)
async def test_a_list_shows_what_is_in_its_organization_and_nothing_of_another(operation: str) -> None:
    async with identity() as subject:
        row = _row(operation)
        farm, there = [await subject.shown(row, place) for place in (HOME, ABROAD)]
        for caller in KNOWN:
            for place, own, other in ((HOME, farm, there), (ABROAD, there, farm)):
                shown = await _listed(subject, row, caller, Target(label="", named=place))
                is_itself = caller.sort == "account" and shown == {subject.credentials.accounts[caller.name].id}
                assert shown is None or is_itself or (own in shown and other not in shown), f"{caller.name}, {place}"
        assert farm in (await _listed(subject, row, _caller("administrator"), Target(label="", named=HOME)) or ())


async def test_the_list_of_projects_shows_those_that_one_may_read() -> None:
    async with identity() as subject:
        row = _row("list_projects")
        for caller in KNOWN:
            for organization in (HOME.organization, ABROAD.organization):
                home = next(place for place in PLACES if place.organization == organization)
                shown = await _listed(subject, row, caller, Target(label="", named=home))
                wanted = {
                    place.project
                    for place in PLACES
                    if place.organization == organization and caller.may(READ_PROJECTS, place)
                }
                assert shown in (None, wanted), caller.name
        assert await _listed(subject, row, _caller("member"), Target(label="", named=HOME)) == set()
        assert await _listed(subject, row, _caller("user"), Target(label="", named=HOME)) == {HOME.project}
        both = {HOME.project, NEXT_DOOR.project}
        assert await _listed(subject, row, _caller("auditor"), Target(label="", named=HOME)) == both


async def test_whoever_may_read_projects_everywhere_is_shown_those_of_all_organizations() -> None:
    async with identity() as subject:
        row, everything = _row("list_all_projects"), Target(label="")
        assert HOME.organization != ABROAD.organization
        for caller in KNOWN:
            shown = await _listed(subject, row, caller, everything)
            is_allowed = READ_PROJECTS in caller.everywhere
            assert shown is None or (is_allowed and shown >= {place.project for place in PLACES}), caller.name
        assert await _listed(subject, row, _caller("unikorn-region for user"), everything)
        assert await _listed(subject, row, _caller("auditor"), everything) is None


async def test_usage_shows_what_is_in_the_projects_that_one_may_read() -> None:
    async with identity() as subject:
        row = _row("list_usage")
        rows = {place: await subject.shown(row, place) for place in PLACES}
        for caller in KNOWN:
            for home in (HOME, ABROAD):
                shown = await _listed(subject, row, caller, Target(label="", named=home))
                readable = {
                    rows[place]
                    for place in PLACES
                    if place.organization == home.organization and caller.may(READ_PROJECTS, place)
                }
                assert shown is None or shown & set(rows.values()) == readable, f"{caller.name}, {home}"
        assert await _listed(subject, row, _caller("member"), Target(label="", named=HOME)) is None
        seen = await _listed(subject, row, _caller("user"), Target(label="", named=HOME)) or set()
        assert seen & set(rows.values()) == {rows[HOME]}


async def test_the_list_of_organizations_shows_where_one_belongs() -> None:
    async with identity() as subject:
        farm, there = HOME.organization, ABROAD.organization
        wanted: dict[str, set[str]] = {
            "nobody": set(),
            "suspended here": {farm},
            "member": {farm},
            "user": {farm},
            "foreigner": {there},
            "reader here and administrator there": {farm, there},
            "platform-administrator": {farm, there},
            "platform-reader": {farm, there},
            "account": {farm},
            "foreign account": {there},
            "idle account": {farm},
        }
        for name, organizations in wanted.items():
            row, everything = _row("list_organizations"), Target(label="")
            assert await _listed(subject, row, _caller(name), everything) == organizations, name
        email = Target(label="", query=(("email", subject_of("foreigner")),))
        assert await _listed(subject, _row("list_organizations"), _caller("platform-reader"), email) == {there}


@pytest.mark.parametrize("operation", WATCHED)
async def test_a_watch_shows_what_the_list_shows_and_is_refused_where_the_list_is(operation: str) -> None:
    async with identity() as subject:
        row = _row(operation)
        for caller in CALLERS:
            for target in targets(row):
                listed = await _listed(subject, row, caller, target)
                assert await _watched(subject, row, caller, target) == listed, f"{caller.name}, {target.label}"


async def _watched(subject: IdentitySubject, row: Row, caller: Caller, target: Target) -> set[str] | None:
    request = await subject.request(row, target)
    query = [*request.query, ("watch", "true")]
    client = Client(app=subject.identity.asgi)
    async with client.stream(request.target, query, **subject.credentials.headers(caller)) as stream:
        return await _present(stream) if (await stream.head()).status == 200 else None


async def _present(stream: Stream) -> set[str]:
    """Read a stream up to where it says that all that is there has been told."""
    reader = EventReader()
    ids: set[str] = set()
    async for chunk in stream.chunks():
        for event in reader.feed(chunk):
            if event.type == "bookmark":
                return ids
            ids.add(msgspec.json.decode(event.data)["metadata"]["id"])
    raise AssertionError("the stream ended before all was told")


async def test_a_head_is_answered_as_the_read_would_be() -> None:
    async with identity() as subject:
        for row in READS:
            for caller in (_caller(name) for name in ("anonymous", "user", "foreigner", "administrator")):
                for target in targets(row):
                    request = await subject.request(row, target)
                    path, query, headers = request.target, request.query, subject.credentials.headers(caller)
                    client = Client(app=subject.identity.asgi)
                    read = await client.send("GET", path, query=query, headers=headers)
                    head = await client.send("HEAD", path, query=query, headers=headers)
                    assert (head.status, head.body) == (read.status, b""), f"{row.operation}, {caller.name}"


async def test_a_bad_id_is_told_before_anybody_is_asked_who_it_is() -> None:
    async with identity() as subject:
        for row in WITH_IDS:
            request = await subject.request(row, next(iter(targets(row))))
            for name in _ids(row):
                outcome = await subject.transports["api"].ask(_caller("anonymous"), request.having(name, "non-sense!"))
                assert (outcome.status, name in outcome.said) == (400, True), f"{row.operation}, {name}: {outcome}"


def _ids(row: Row) -> Iterable[str]:
    return [part[1:-1] for part in row.path.split("/") if part.startswith("{") and part != "{reference}"]


async def test_a_certificate_that_no_proxy_of_ours_vouches_for_is_nobodys() -> None:
    async with identity() as subject:
        stranger = Client(app=subject.identity.asgi, peer=("192.0.2.1", 4711))
        services = [caller for caller in SERVICE_CALLERS if caller.own is not None]
        for row in (row for row in ROWS if row.scope != "public"):
            request = await subject.request(row, next(iter(targets(row))))
            for caller in services[:2]:
                headers = subject.credentials.headers(caller)
                reply = await stranger.send(row.method, request.target, body=request.body, headers=headers)
                assert reply.status == 401, f"{row.operation}, {caller.name}"


async def test_a_service_account_sees_itself_and_nobody_else_unless_it_may() -> None:
    async with identity() as subject:
        row, farm = _row("list_service_accounts"), Target(label="", named=HOME)
        own = {name: {account.id} for name, account in subject.credentials.accounts.items()}
        assert await _listed(subject, row, _caller("account"), farm) == own["account"]
        assert await _listed(subject, row, _caller("idle account"), farm) == own["idle account"]
        assert await _listed(subject, row, _caller("foreign account"), farm) is None
        assert await _listed(subject, row, _caller("account"), Target(label="", named=ABROAD)) is None
        seen = await _listed(subject, row, _caller("administrating account"), farm) or set()
        assert seen >= own["account"] | own["idle account"] | own["administrating account"]


@pytest.mark.parametrize("name", ["account", "idle account"])
async def test_a_service_account_rotates_its_own_token_and_no_other(name: str) -> None:
    async with identity() as subject:
        environment, account = subject.identity, subject.credentials.accounts[name]
        path = f"{ORGANIZATIONS}/{HOME.organization}/serviceaccounts"
        other = subject.credentials.accounts["administrating account"]
        before = environment.change_count()
        assert (await environment.client(account.token).post(f"{path}/{other.id}/rotate")).status == 403
        elsewhere = f"{ORGANIZATIONS}/{ABROAD.organization}/serviceaccounts/{account.id}/rotate"
        assert (await environment.client(account.token).post(elsewhere)).status == 403
        assert environment.change_count() == before
        made = expect(await environment.client(account.token).post(f"{path}/{account.id}/rotate"), 200)
        assert (await environment.client(account.token).get(path)).status == 401
        expect(await environment.client(made["status"]["accessToken"]).get(path), 200)


async def test_a_service_cannot_rotate_the_account_that_it_impersonates() -> None:
    async with identity() as subject:
        account = subject.credentials.accounts["account"]
        path = f"{ORGANIZATIONS}/{HOME.organization}/serviceaccounts/{account.id}/rotate"
        headers = subject.credentials.headers(_caller("unikorn-region as account"))
        assert (await subject.identity.carrying(headers).post(path)).status == 403


def test_the_rule_says_of_some_cells_what_was_decided_by_reading() -> None:
    cells = [
        ("get_organization", "user", "home", 403),
        ("get_organization", "auditor", "home", 200),
        ("get_organization", "auditor", "abroad", 403),
        ("get_organization", "platform-reader", "nowhere", 404),
        ("delete_organization", "administrator", "home", 403),
        ("update_organization", "auditor", "home", 403),
        ("update_organization", "administrator", "home", 200),
        ("list_projects", "member", "home", 200),
        ("list_projects", "foreigner", "home", 403),
        ("list_projects", "foreigner", "nowhere", 403),
        ("get_project", "reader", "home", 200),
        ("get_project", "reader", "next door", 403),
        ("get_project", "administrator", "lent project", 404),
        ("get_project", "unikorn-region as member", "home", 403),
        ("get_project", "unikorn-region as administrator", "next door", 200),
        ("get_project", "unikorn-region as foreigner", "home", 403),
        ("add_project_reference", "administrator", "home", 403),
        ("add_project_reference", "unikorn-compute for user", "home", 403),
        ("add_project_reference", "uni-storage for user", "abroad", 201),
        ("add_project_reference", "unikorn-region as user", "home", 403),
        ("set_quotas", "administrator", "home", 403),
        ("set_quotas", "platform-administrator", "home", 200),
        ("get_quotas", "user", "home", 200),
        ("get_quotas", "unikorn-region for user", "home", 403),
        ("create_allocation", "user", "home", 403),
        ("create_allocation", "unikorn-compute for user", "home", 201),
        ("create_allocation", "unikorn-compute for user", "no such project", 404),
        ("get_allocation", "platform-reader", "next door's through home", 404),
        ("update_group", "administrator", "a foreigner's through home", 404),
        ("update_group", "administrator", "home's through abroad", 403),
        ("get_group", "expired", "home", 401),
        ("list_service_accounts", "idle account", "home", 200),
        ("list_service_accounts", "idle account", "abroad", 403),
        ("get_organization_acl", "foreigner", "home", 200),
        ("list_revocations", "administrator", "there", 403),
        ("list_revocations", "uni-storage for user", "there", 200),
        ("list_all_projects", "administrator", "there", 403),
        ("list_all_projects", "unikorn-region for user", "there", 200),
        ("list_all_projects", "unikorn-region as user", "there", 403),
        ("list_organizations", "unikorn-region for user", "", 404),
    ]
    for operation, caller, label, status in cells:
        row = _row(operation)
        target = next(target for target in targets(row) if target.label == label)
        assert RULE.expected(row, _caller(caller), target) == status, (operation, caller, label)
