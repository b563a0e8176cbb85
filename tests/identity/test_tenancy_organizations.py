"""Organizations over HTTP: who sees which, what may be asked of them, and how that is told."""

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from remuda.access.principal import Principal
from remuda.http.sse import EventReader, Received
from remuda.identity.kinds.tenancy import Organization
from tests.kit.identity.resource_api import everywhere, member
from tests.kit.identity.tenancy import (
    ABSENT,
    NOWHERE,
    ORGANIZATIONS,
    PLATFORM,
    PLATFORM_PROVIDER,
    STRANGE_ORGANIZATION,
    TenancyApi,
    administrator,
    forbidden,
    ids,
    join,
    made,
    make_organization,
    make_platform_provider,
    make_user,
    organization,
    prove_domain,
    provider,
    rejection,
    service_account,
    stranger,
    system,
    with_domain,
)

READS_ALL = everywhere("reader@example.com", "identity:organizations R")


async def first_events(tenancy: TenancyApi, who: Principal, query: dict[str, str], count: int) -> list[Received]:
    """Return the first events of a watch of organizations."""
    found: list[Received] = []
    async with tenancy.ask(who).stream(ORGANIZATIONS, query) as stream, asyncio.timeout(60):
        reader = EventReader()
        async for chunk in stream.chunks():
            found += reader.feed(chunk)
            if len(found) >= count:
                break
    return found


async def test_a_new_organization_is_pending_and_says_who_made_it(tenancy: TenancyApi) -> None:
    body = organization(name="acme")
    body["metadata"] |= {"description": "ours", "tags": [{"name": "tier", "value": "gold"}]}
    reply = await tenancy.ask(PLATFORM).post(ORGANIZATIONS, body)
    assert reply.status == 202
    metadata = reply.json["metadata"]
    assert metadata["name"] == "acme"
    assert metadata["description"] == "ours"
    assert metadata["tags"] == [{"name": "tier", "value": "gold"}]
    assert metadata["createdBy"] == "platform@example.com"
    assert (metadata["provisioningStatus"], metadata["healthStatus"]) == ("pending", "unknown")
    assert reply.json["spec"] == {"organizationType": "adhoc"}
    assert (await tenancy.ask(PLATFORM).get(f"{ORGANIZATIONS}/{metadata['id']}")).json == reply.json


async def test_the_same_request_under_its_key_makes_one_organization(tenancy: TenancyApi) -> None:
    client = tenancy.ask(PLATFORM)
    replies = [await client.post(ORGANIZATIONS, organization(), idempotency_key="once") for _ in range(2)]
    assert [reply.status for reply in replies] == [202, 202]
    assert replies[0].json == replies[1].json
    assert len(ids(await client.get(ORGANIZATIONS))) == 1


async def test_names_need_not_be_unique(tenancy: TenancyApi) -> None:
    assert await make_organization(tenancy, "acme") != await make_organization(tenancy, "acme")


async def test_making_and_removing_organizations_takes_the_right_everywhere(tenancy: TenancyApi) -> None:
    home = await make_organization(tenancy)
    local = member("boss@example.com", home, "identity:organizations CRUD")
    assert rejection(await tenancy.ask(local).post(ORGANIZATIONS, organization())) == forbidden(
        "create", "organizations", NOWHERE
    )
    for name in (home, ABSENT):
        assert rejection(await tenancy.ask(local).delete(f"{ORGANIZATIONS}/{name}")) == forbidden(
            "delete", "organizations", NOWHERE
        )


async def test_an_organization_is_read_and_changed_by_those_who_may(tenancy: TenancyApi) -> None:
    home = await make_organization(tenancy)
    path = f"{ORGANIZATIONS}/{home}"
    boss = tenancy.ask(administrator(home))
    assert (await boss.get(path)).json["metadata"]["id"] == home
    reply = await boss.put(path, organization(name="renamed"))
    assert (reply.status, reply.body) == (200, b"")
    metadata = (await boss.get(path)).json["metadata"]
    assert (metadata["name"], metadata["modifiedBy"]) == ("renamed", "admin@example.com")
    assert metadata["modifiedTime"]

    plain = tenancy.ask(member("plain@example.com", home))
    assert rejection(await plain.get(path)) == forbidden("read", "organizations")
    assert (await plain.put(path, organization())).status == 403


async def test_a_foreign_organization_is_forbidden_whether_it_exists_or_not(tenancy: TenancyApi) -> None:
    home, other = await make_organization(tenancy), await make_organization(tenancy, "other")
    boss = tenancy.ask(administrator(home))
    why = forbidden("read", "organizations", STRANGE_ORGANIZATION)
    for name in (other, ABSENT):
        assert rejection(await boss.get(f"{ORGANIZATIONS}/{name}")) == why
        assert (await boss.put(f"{ORGANIZATIONS}/{name}", organization())).status == 403


async def test_an_absent_organization_is_not_found_by_those_who_may_read_all(tenancy: TenancyApi) -> None:
    client, path = tenancy.ask(PLATFORM), f"{ORGANIZATIONS}/{ABSENT}"
    assert rejection(await client.get(path)) == (404, "resource not found")
    assert (await client.put(path, organization())).status == 404
    assert (await client.delete(path)).status == 404
    assert (await client.get(f"{ORGANIZATIONS}/nonsense")).status == 400


async def test_nobody_in_particular_sees_nothing(tenancy: TenancyApi) -> None:
    nobody = tenancy.ask(None)
    assert (await nobody.get(ORGANIZATIONS)).status == 401
    assert (await nobody.post(ORGANIZATIONS, organization())).status == 401
    assert (await nobody.get("/api/version")).status == 401


# Lists.


async def test_whoever_may_read_all_sees_all_sorted_by_id(tenancy: TenancyApi) -> None:
    there = sorted([await make_organization(tenancy, name) for name in ("a", "b", "c")])
    assert ids(await tenancy.ask(READS_ALL).get(ORGANIZATIONS)) == there
    page = await tenancy.ask(READS_ALL).get(ORGANIZATIONS, {"limit": "2"})
    assert ids(page) == there[:2]
    more = {"limit": "2", "continue": page.headers["x-continue"]}
    assert ids(await tenancy.ask(READS_ALL).get(ORGANIZATIONS, more)) == there[2:]


async def test_a_user_sees_where_it_is_a_member_even_where_that_is_suspended(tenancy: TenancyApi) -> None:
    one, two, _ = [await make_organization(tenancy, name) for name in ("a", "b", "c")]
    await make_user(tenancy.store, "me@example.com")
    await join(tenancy.store, "me@example.com", one)
    await join(tenancy.store, "me@example.com", two, "suspended")
    me = tenancy.ask(member("me@example.com", one))
    assert ids(await me.get(ORGANIZATIONS)) == sorted([one, two])
    first = await me.get(ORGANIZATIONS, {"limit": "1"})
    rest = await me.get(ORGANIZATIONS, {"limit": "5", "continue": first.headers["x-continue"]})
    assert ids(first) + ids(rest) == sorted([one, two])
    assert ids(await tenancy.ask(stranger()).get(ORGANIZATIONS)) == []


async def test_one_dangling_membership_does_not_break_the_list(tenancy: TenancyApi) -> None:
    home = await make_organization(tenancy)
    await make_user(tenancy.store, "me@example.com")
    await join(tenancy.store, "me@example.com", home)
    await join(tenancy.store, "me@example.com", ABSENT)
    me = tenancy.ask(member("me@example.com", home))
    assert ids(await me.get(ORGANIZATIONS)) == [home]
    assert ids(await me.get(ORGANIZATIONS, {"limit": "10"})) == [home]


async def test_a_user_for_whom_one_organization_vouches_sees_no_other(tenancy: TenancyApi) -> None:
    one, two = await make_organization(tenancy, "one"), await make_organization(tenancy, "two")
    await make_user(tenancy.store, "me@example.com")
    for each in (one, two):
        await join(tenancy.store, "me@example.com", each)
    me = member("me@example.com", one)
    assert set(ids(await tenancy.ask(me).get(ORGANIZATIONS))) == {one, two}
    for vouching, seen in ((one, [one]), (ABSENT, [])):
        vouched = replace(me, member_of_only=vouching)
        for query in ({}, {"email": "me@example.com"}, {"limit": "10"}):
            assert ids(await tenancy.ask(vouched).get(ORGANIZATIONS, query)) == seen


async def test_a_service_account_sees_its_one_home_whatever_email_it_names(tenancy: TenancyApi) -> None:
    home = await make_organization(tenancy)
    await make_organization(tenancy, "other")
    account = tenancy.ask(service_account(home))
    assert ids(await account.get(ORGANIZATIONS)) == [home]
    assert ids(await account.get(ORGANIZATIONS, {"email": "somebody@example.com"})) == [home]


async def test_a_system_account_that_may_not_read_organizations_is_no_member_of_any(tenancy: TenancyApi) -> None:
    home = await make_organization(tenancy)
    assert (await tenancy.ask(system("identity:projects R")).get(ORGANIZATIONS)).status == 404
    assert ids(await tenancy.ask(system("identity:organizations R")).get(ORGANIZATIONS)) == [home]


async def test_organizations_of_somebody_else_take_the_right_to_read_all_users(tenancy: TenancyApi) -> None:
    home = await make_organization(tenancy)
    await make_organization(tenancy, "other")
    await make_user(tenancy.store, "me@example.com")
    await make_user(tenancy.store, "gone@example.com", "suspended")
    await join(tenancy.store, "me@example.com", home)
    asked = {"email": "Me@Example.com"}
    assert ids(await tenancy.ask(PLATFORM).get(ORGANIZATIONS, asked)) == [home]
    assert ids(await tenancy.ask(member("me@example.com", home)).get(ORGANIZATIONS, asked)) == [home]
    status, why = rejection(await tenancy.ask(READS_ALL).get(ORGANIZATIONS, asked))
    assert status == 403
    assert "operation 'read' on endpoint 'identity:users'" in why
    local = member("boss@example.com", home, "identity:users CRUD")
    assert (await tenancy.ask(local).get(ORGANIZATIONS, asked)).status == 403
    for unknown in ("gone@example.com", "nobody@example.com"):
        assert (await tenancy.ask(PLATFORM).get(ORGANIZATIONS, {"email": unknown})).status == 404


async def test_a_member_watches_its_organizations_from_its_list_on_and_no_others(tenancy: TenancyApi) -> None:
    home, other = await make_organization(tenancy), await make_organization(tenancy, "other")
    await make_user(tenancy.store, "me@example.com")
    await join(tenancy.store, "me@example.com", home)
    me = member("me@example.com", home)
    place = (await tenancy.ask(me).get(ORGANIZATIONS)).headers["x-resource-version"]
    for name in (other, home):
        assert (await tenancy.ask(PLATFORM).put(f"{ORGANIZATIONS}/{name}", organization("new"))).status == 200
    begun = await first_events(tenancy, me, {"watch": "true"}, 2)
    assert [event.type for event in begun] == ["added", "bookmark"]
    assert home.encode() in begun[0].data
    async with tenancy.ask(me).stream(ORGANIZATIONS, {"watch": "true"}, last_event_id=place) as stream:
        async for chunk in stream.chunks():
            (event,) = EventReader().feed(chunk)
            assert (event.type, home.encode() in event.data) == ("modified", True)
            break
    refused = await tenancy.ask(PLATFORM).get(ORGANIZATIONS, {"watch": "true", "email": "me@example.com"})
    assert refused.status == 400


# Domains.


async def test_an_organization_with_a_domain_reads_as_it_was_written_and_adhoc_clears_all_of_it(
    tenancy: TenancyApi,
) -> None:
    await make_platform_provider(tenancy.store)
    client = tenancy.ask(PLATFORM)
    reply = await client.post(ORGANIZATIONS, with_domain("ACME.example", googleCustomerID="C01"))
    assert reply.json["spec"] == {
        "organizationType": "domain",
        "domain": "acme.example",
        "providerScope": "global",
        "providerID": PLATFORM_PROVIDER,
        "googleCustomerID": "C01",
    }
    home = reply.json["metadata"]["id"]
    path = f"{ORGANIZATIONS}/{home}"
    adhoc = organization(domain="acme.example", providerID=PLATFORM_PROVIDER)
    assert (await client.put(path, adhoc)).status == 200
    assert (await client.get(path)).json["spec"] == {"organizationType": "adhoc"}
    stored = (await tenancy.store.get(Organization, home)).spec
    assert (stored.domain, stored.provider_id, stored.provider_options) == ("", "", None)


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"domain": ""}, "spec.domain"),
        ({"domain": "not a host"}, "spec.domain"),
        ({"domain": "-acme.example"}, "spec.domain"),
        ({"domain": "localhost"}, "spec.domain"),
        ({"domain": "127.0.0.1"}, "spec.domain"),
        ({"providerScope": None}, "spec.providerScope"),
        ({"providerID": ""}, "spec.providerID"),
        ({"providerID": ABSENT}, "spec.providerID"),
        ({"providerID": "../nonsense"}, "spec.providerID"),
        ({"providerScope": "organization"}, "spec.providerID"),
    ],
)
async def test_a_domain_without_what_it_needs_is_refused_and_changes_nothing(
    tenancy: TenancyApi, spec: dict[str, Any], field: str
) -> None:
    await make_platform_provider(tenancy.store)
    home = await make_organization(tenancy)
    wanted = {key: value for key, value in (with_domain()["spec"] | spec).items() if value is not None}
    body = {"metadata": {"name": "acme"}, "spec": wanted}
    for status, why in [
        rejection(await tenancy.ask(PLATFORM).post(ORGANIZATIONS, body)),
        rejection(await tenancy.ask(PLATFORM).put(f"{ORGANIZATIONS}/{home}", body)),
    ]:
        assert status == 422
        assert why.startswith(field)
    (there,) = (await tenancy.ask(PLATFORM).get(ORGANIZATIONS)).json
    assert there["spec"] == {"organizationType": "adhoc"}


async def test_a_provider_of_the_organization_serves_its_domain_and_no_other_organizations(
    tenancy: TenancyApi,
) -> None:
    home, other = await make_organization(tenancy), await make_organization(tenancy, "other")
    own = await made(tenancy, f"{ORGANIZATIONS}/{home}/oauth2providers", provider())
    client = tenancy.ask(PLATFORM)
    wanted = with_domain(providerScope="organization", providerID=own)
    assert (await client.put(f"{ORGANIZATIONS}/{other}", wanted)).status == 422
    assert (await client.put(f"{ORGANIZATIONS}/{home}", with_domain(providerID=own))).status == 422
    assert (await client.put(f"{ORGANIZATIONS}/{home}", wanted)).status == 200
    assert (await client.get(f"{ORGANIZATIONS}/{home}")).json["spec"]["providerID"] == own


async def test_a_domain_that_another_organization_has_proven_is_refused(tenancy: TenancyApi) -> None:
    await make_platform_provider(tenancy.store)
    client = tenancy.ask(PLATFORM)
    first = await made(tenancy, ORGANIZATIONS, with_domain())
    second = await make_organization(tenancy)
    assert (await client.put(f"{ORGANIZATIONS}/{second}", with_domain())).status == 200, "a claim keeps nobody out"
    assert (await client.put(f"{ORGANIZATIONS}/{second}", organization())).status == 200
    await prove_domain(tenancy, first)
    for reply in (
        await client.post(ORGANIZATIONS, with_domain("Acme.Example")),
        await client.put(f"{ORGANIZATIONS}/{second}", with_domain()),
    ):
        assert rejection(reply) == (
            422,
            "spec.domain belongs to another organization: choose another, or release it there.",
        )
    assert (await client.put(f"{ORGANIZATIONS}/{first}", with_domain())).status == 200
    assert (await client.delete(f"{ORGANIZATIONS}/{first}")).status == 202
    assert (await client.put(f"{ORGANIZATIONS}/{second}", with_domain())).status == 200


# What every write has.


async def test_a_write_to_a_state_that_nobody_has_seen_is_refused(tenancy: TenancyApi) -> None:
    path = f"{ORGANIZATIONS}/{await make_organization(tenancy)}"
    client = tenancy.ask(PLATFORM)
    seen = (await client.get(path)).headers["etag"]
    assert (await client.put(path, organization("new"), if_match=seen)).status == 200
    assert (await client.put(path, organization("newer"), if_match=seen)).status == 412
    assert (await client.delete(path, if_match=seen)).status == 412
    now = (await client.get(path)).headers["etag"]
    assert (await client.delete(path, if_match=now)).status == 202


async def test_a_bad_body_is_refused_before_permissions_are_asked(tenancy: TenancyApi) -> None:
    anybody = tenancy.ask(stranger())
    assert (await anybody.post(ORGANIZATIONS, {"metadata": {"name": "acme"}})).status == 400
    assert (await anybody.post(ORGANIZATIONS, organization("-bad-"))).status == 400
    assert (await anybody.post(ORGANIZATIONS, organization())).status == 403
    twice = organization()
    twice["metadata"]["tags"] = [{"name": "a", "value": "1"}, {"name": "a", "value": "2"}]
    assert (await tenancy.ask(PLATFORM).post(ORGANIZATIONS, twice)).status == 422


async def test_deleting_an_organization_is_asked_for_once_and_readable_meanwhile(tenancy: TenancyApi) -> None:
    path = f"{ORGANIZATIONS}/{await make_organization(tenancy)}"
    client = tenancy.ask(PLATFORM)
    for _ in range(2):
        reply = await client.delete(path)
        assert (reply.status, reply.body) == (202, b"")
    metadata = (await client.get(path)).json["metadata"]
    assert metadata["provisioningStatus"] == "deprovisioning"
    assert metadata["deletionTime"]


async def test_the_audit_of_an_organization_has_what_was_done_to_it(tenancy: TenancyApi) -> None:
    home = await make_organization(tenancy)
    await tenancy.ask(PLATFORM).put(f"{ORGANIZATIONS}/{home}", organization("new"))
    entries = (await tenancy.store.read("audit", f"organization/{home}", after=0)).entries
    assert [b'"POST"' in bytes(each.data) for each in entries] == [True, False]
    assert all(home.encode() in bytes(each.data) for each in entries)


async def test_the_service_says_which_release_it_is(tenancy: TenancyApi) -> None:
    reply = await tenancy.ask(stranger()).get("/api/version")
    assert reply.json == {"name": "unikorn-identity", "version": "1.2.3"}
