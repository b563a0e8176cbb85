"""Quotas and allocations over HTTP: what clients of the reference rely on, and what we add to it."""

import asyncio

from remuda.identity.kinds.quotas import Allocation, Quota
from remuda.identity.quotas.schema import allocation_id
from tests.kit.asgi.contract import Reply
from tests.kit.identity.quotas import (
    BASE,
    LIFE,
    OTHER_PROJECT,
    ROWS,
    SERVICE,
    asked,
    limits,
    made,
    quota,
)
from tests.kit.identity.resource_api import ORG, PROJECT, IdentityApi, member
from tests.kit.proofs.linearizability.invariants import settle
from tests.kit.proofs.linearizability.quota_clients import OWNERS, Quotas


async def test_without_a_word_everybody_has_the_defaults_in_the_order_of_kinds(quotas: IdentityApi[Quotas]) -> None:
    reply = await quotas.ask(member("reader", text="identity:quotas R")).get(f"{BASE}/quotas")
    assert reply.status == 200
    assert [(each["kind"], each["quantity"], each["format"]) for each in reply.json["quotas"]] == [
        ("clusters", 5, "decimal"),
        ("filestorage", 1099511627776, "binary"),
        ("floatingips", 5, "decimal"),
        ("gpus", 40, "decimal"),
        ("loadbalancers", 5, "decimal"),
        ("networks", 5, "decimal"),
        ("publicips", 5, "decimal"),
        ("servers", 10, "decimal"),
        ("volume", 0, "binary"),
    ]
    for each in reply.json["quotas"]:
        assert each["default"] == each["quantity"] == each["free"]
        assert each["used"] == each["committed"] == each["reserved"] == 0
        assert each["displayName"]
        assert each["description"]
    assert not (await quotas.store.list(Quota)).items, "a read makes nothing"


async def test_the_first_limits_of_an_organization_can_be_set_on_what_was_read_before(
    quotas: IdentityApi[Quotas],
) -> None:
    client = quotas.ask(SERVICE)
    seen = (await client.get(f"{BASE}/quotas")).headers["etag"]
    assert (await client.put(f"{BASE}/quotas", limits(servers=9), if_match=seen)).status == 200


async def test_m27_an_allocation_has_a_life_from_post_to_delete(quotas: IdentityApi[Quotas]) -> None:
    client = quotas.ask(SERVICE)
    created = await client.post(ROWS, asked(servers=(2, 1), gpus=8))
    assert created.status == 201
    body = created.json
    assert body["metadata"]["name"] == "undefined"
    assert body["metadata"]["organizationId"] == ORG
    assert body["metadata"]["projectId"] == PROJECT
    assert body["metadata"]["createdBy"] == "unikorn-compute"
    assert body["metadata"]["provisioningStatus"] == "provisioned"
    assert body["spec"] == {
        "kind": OWNERS,
        "id": "owner-1",
        "allocations": [
            {"kind": "gpus", "committed": 8, "reserved": 0},
            {"kind": "servers", "committed": 2, "reserved": 1},
        ],
    }
    assert body["status"]["state"] == "confirmed", "a client without a key never confirms"
    row = f"{ROWS}/{body['metadata']['id']}"
    found = await client.get(row)
    assert (found.status, found.json) == (200, body)
    servers = await quota(client)
    assert (servers["used"], servers["free"], servers["committed"], servers["reserved"]) == (3, 7, 2, 1)
    changed = await client.put(row, asked(servers=5))
    assert changed.status == 200
    assert changed.json["spec"]["allocations"] == [{"kind": "servers", "committed": 5, "reserved": 0}]
    assert changed.json["metadata"]["modifiedBy"] == "unikorn-compute"
    assert (await quota(client))["used"] == 5
    assert (await quota(client, "gpus"))["used"] == 0
    deleted = await client.delete(row)
    assert (deleted.status, deleted.body) == (202, b"")
    assert (await quota(client))["used"] == 0
    assert (await client.get(row)).status == 404
    assert (await client.put(row, asked(servers=1))).status == 404
    assert (await client.post(f"{row}/confirm")).status == 404
    assert (await client.delete(row)).status == 202, "deleting twice is fine"


async def test_what_exceeds_a_quota_is_refused_in_the_words_of_the_reference(quotas: IdentityApi[Quotas]) -> None:
    client = quotas.ask(SERVICE)
    row = await made(client, asked(servers=10))
    reply = await client.post(ROWS, asked("owner-2", servers=1, gpus=41))
    assert reply.status == 403
    assert reply.json["error"] == "forbidden"
    first = "total gpus allocation of 41 would exceed quota limit of 40"
    assert reply.json["error_description"] == first, "of several, the first by name"
    reply = await client.post(ROWS, asked("owner-2", servers=(0, 1)))
    assert reply.json["error_description"] == "total servers allocation of 11 would exceed quota limit of 10"
    reply = await client.put(f"{ROWS}/{row}", asked(servers=11))
    assert reply.status == 403
    assert reply.json["error_description"] == "total servers allocation of 11 would exceed quota limit of 10"
    assert (await quota(client))["used"] == 10, "what was refused has changed nothing"
    assert (await quota(client, "gpus"))["used"] == 0
    assert not (await quotas.store.get(Quota, ORG)).spec.intents
    assert len((await quotas.store.list(Allocation)).items) == 1


async def test_every_kind_that_a_service_charges_can_be_limited(quotas: IdentityApi[Quotas]) -> None:
    client = quotas.ask(SERVICE)
    kinds = ("servers", "gpus", "floatingips", "networks", "loadbalancers", "publicips", "filestorage")
    assert (await client.put(f"{BASE}/quotas", limits(**dict.fromkeys(kinds, 1)))).status == 200
    for kind in kinds:
        reply = await client.post(ROWS, asked(f"owner-{kind}", **{kind: 2}))
        assert reply.status == 403, kind
        expected = f"total {kind} allocation of 2 would exceed quota limit of 1"
        assert reply.json["error_description"] == expected
    await made(client, asked("stranger", unicorns=1_000_000))


async def test_a_quota_is_replaced_as_a_whole_and_never_below_what_is_used(quotas: IdentityApi[Quotas]) -> None:
    client = quotas.ask(SERVICE)
    await made(client, asked(servers=6))
    path = f"{BASE}/quotas"
    reply = await client.put(path, limits(servers=5))
    assert reply.status == 403, "the first write is checked, too"
    assert reply.json["error_description"].startswith("quota of 5 servers is below the use of 6: set at least 6")
    reply = await client.put(path, limits(servers=20, gpus=0))
    assert reply.status == 200
    assert [each["kind"] for each in reply.json["quotas"]] == ["gpus", "servers"], "what was written"
    await made(client, asked("owner-2", servers=9))
    assert (await quota(client))["free"] == 5
    reply = await client.put(path, limits(gpus=1))
    assert reply.status == 403, "a kind that is left out falls back to its default, which is checked"
    assert reply.json["error_description"] == (
        "quota of 10 servers is below the use of 15: set at least 15, or delete something that uses it"
    )
    assert (await client.put(path, limits(servers=15))).status == 200
    assert (await quota(client, "gpus"))["quantity"] == 40


async def test_a_state_that_was_seen_can_be_demanded(quotas: IdentityApi[Quotas]) -> None:
    client, path = quotas.ask(SERVICE), f"{BASE}/quotas"
    row = f"{ROWS}/{await made(client, asked(servers=1))}"
    seen, seen_row = (await client.get(path)).headers["etag"], (await client.get(row)).headers["etag"]
    assert (await client.put(path, limits(servers=9), if_match='"other"')).status == 412
    assert (await client.put(path, limits(servers=9), if_match=seen)).status == 200
    assert (await client.put(path, limits(servers=8), if_match=seen)).status == 412
    assert (await client.put(row, asked(servers=2), if_match='"other"')).status == 412
    assert (await client.put(row, asked(servers=2), if_match=seen_row)).status == 200
    assert (await client.delete(row, if_match=seen_row)).status == 412
    assert (await client.delete(row, if_match=(await client.get(row)).headers["etag"])).status == 202


async def test_under_a_key_the_same_request_is_one_allocation_that_has_to_be_confirmed(
    quotas: IdentityApi[Quotas],
) -> None:
    client = quotas.ask(SERVICE)
    first = await client.post(ROWS, asked(servers=2), idempotency_key="operation-1")
    again = await client.post(ROWS, asked(servers=2), idempotency_key="operation-1")
    assert first.status == again.status == 201
    assert first.json == again.json
    assert first.json["metadata"]["id"] == allocation_id("unikorn-compute", "operation-1")
    assert first.json["status"]["state"] == "unconfirmed"
    row = f"{ROWS}/{first.json['metadata']['id']}"
    assert (await quota(client))["used"] == 2
    assert (await client.post(f"{row}/confirm")).json["status"]["state"] == "confirmed"
    assert (await client.post(f"{row}/confirm")).status == 200, "twice is fine"
    await settle(quotas.world, quotas.store, quotas.service, LIFE)
    assert (await client.get(row)).json["status"]["state"] == "confirmed"


async def test_what_is_not_confirmed_in_time_is_rolled_back_and_can_be_renewed(quotas: IdentityApi[Quotas]) -> None:
    client = quotas.ask(SERVICE)
    row = f"{ROWS}/{await made(client, asked(servers=6), idempotency_key='operation-1')}"
    await settle(quotas.world, quotas.store, quotas.service, LIFE)
    assert (await quota(client))["used"] == 0
    assert (await client.get(row)).status == 404
    other = await made(client, asked("owner-2", servers=6))
    reply = await client.post(f"{row}/renew")
    assert reply.status == 403
    assert reply.json["error_description"] == "total servers allocation of 12 would exceed quota limit of 10"
    assert (await client.delete(f"{ROWS}/{other}")).status == 202
    assert (await client.post(f"{row}/renew")).json["status"]["state"] == "unconfirmed"
    assert (await client.post(f"{row}/renew")).status == 200, "twice is fine"
    assert (await quota(client))["used"] == 6
    assert (await client.post(f"{row}/confirm")).status == 200
    await settle(quotas.world, quotas.store, quotas.service, LIFE)
    assert (await quota(client))["used"] == 6


async def test_a_repeat_under_a_key_tells_how_things_stand_now(quotas: IdentityApi[Quotas]) -> None:
    client = quotas.ask(SERVICE)

    async def again(owner: str = "owner-1", **amounts: int) -> Reply:
        return await client.post(ROWS, asked(owner, **amounts), idempotency_key="operation-1")

    row = (await again(servers=2)).json["metadata"]["id"]
    for other in (await again("owner-2", servers=2), await again(servers=3)):
        assert (other.status, other.json["code"]) == (422, "key_reused")
    assert (await client.put(f"{ROWS}/{row}", asked(servers=4))).status == 200
    repeated = await again(servers=2)
    assert (repeated.status, repeated.json["metadata"]["id"]) == (201, row)
    assert repeated.json["spec"]["allocations"][0]["committed"] == 4, "what was changed since stays"
    assert "idempotency-replayed" not in repeated.headers
    assert (await client.delete(f"{ROWS}/{row}")).status == 202
    released = await again(servers=2)
    assert released.status == 409
    assert "was released: renew it" in released.json["error_description"]
    assert (await client.post(ROWS, asked(servers=2), idempotency_key="k" * 256)).status == 400
    assert (await quota(client))["used"] == 0


async def test_one_owner_has_one_allocation(quotas: IdentityApi[Quotas]) -> None:
    client = quotas.ask(SERVICE)
    row = await made(client, asked(servers=1), idempotency_key="operation-1")
    assert (await client.post(ROWS, asked(servers=1), idempotency_key="operation-2")).status == 409
    assert (await client.post(ROWS, asked(servers=1))).status == 409
    assert (await quota(client))["used"] == 1
    await client.post(f"{ROWS}/{row}/confirm")
    reply = await client.post(ROWS, asked(servers=1))
    assert reply.status == 409
    assert "owner-1 already has an allocation" in reply.json["error_description"]
    await client.delete(f"{ROWS}/{row}")
    await made(client, asked(servers=1))


async def test_what_a_project_has_free_is_free_in_its_organization_too(quotas: IdentityApi[Quotas]) -> None:
    client, path = quotas.ask(SERVICE), f"{BASE}/projects/{PROJECT}/quotas"
    other = f"{BASE}/projects/{OTHER_PROJECT}"
    assert (await client.put(path, limits(servers=9))).status == 200
    assert (await client.post(f"{other}/allocations", asked("owner-2", servers=6))).status == 201
    mine, theirs = await quota(client, path=path), await quota(client, path=f"{other}/quotas")
    assert (mine["quantity"], mine["used"], mine["free"]) == (9, 0, 4), "the organization has 10 in all"
    assert (theirs["quantity"], theirs["used"], theirs["free"]) == (10, 6, 4)
    assert (await client.put(path, limits(servers=3))).status == 200
    assert (await quota(client, path=path))["free"] == 3, "its own limit is the closer one"


async def test_projects_divide_what_their_organization_has(quotas: IdentityApi[Quotas]) -> None:
    client, path = quotas.ask(SERVICE), f"{BASE}/projects/{PROJECT}/quotas"
    assert (await quota(client, path=path))["quantity"] == 10, "without a limit of its own, the organization's"
    assert (await client.put(path, limits(servers=3))).status == 200
    row = await made(client, asked(servers=3))
    reply = await client.post(ROWS, asked("owner-2", servers=1))
    assert reply.status == 403
    expected = "total servers allocation of 4 would exceed project quota limit of 3"
    assert reply.json["error_description"] == expected
    reply = await client.put(f"{ROWS}/{row}", asked(servers=4))
    assert (reply.status, reply.json["error_description"]) == (403, expected)
    mine = await quota(client, path=path)
    assert (mine["quantity"], mine["used"], mine["free"]) == (3, 3, 0)
    other = f"{BASE}/projects/{OTHER_PROJECT}"
    assert (await client.post(f"{other}/allocations", asked("owner-2", servers=7))).status == 201
    assert (await quota(client, path=f"{other}/quotas"))["used"] == 7
    assert (await quota(client))["used"] == 10
    reply = await client.put(path, limits(servers=2))
    expected = "project quota of 2 servers is below the use of 3: set at least 3, or delete something that uses it"
    assert (reply.status, reply.json["error_description"]) == (403, expected)
    assert (await client.put(path, limits(servers=50))).status == 200, "more than there is limits nothing"
    reply = await client.post(ROWS, asked("owner-3", servers=1))
    expected = "total servers allocation of 11 would exceed quota limit of 10"
    assert (reply.status, reply.json["error_description"]) == (403, expected)
    assert (await client.put(path, limits())).status == 200
    assert (await quota(client, path=path))["quantity"] == 10


async def test_a_patch_sets_and_unsets_the_limits_that_it_names_and_no_others(quotas: IdentityApi[Quotas]) -> None:
    client = quotas.ask(SERVICE)
    for path, inherited in ((f"{BASE}/quotas", 10), (f"{BASE}/projects/{PROJECT}/quotas", 10)):
        assert (await client.put(path, limits(servers=9, gpus=8))).status == 200
        reply = await client.send("PATCH", path, body=limits(servers=None, networks=3))
        assert reply.status == 200
        named = {each["kind"]: each["quantity"] for each in reply.json["quotas"]}
        assert named == {"servers": inherited, "networks": 3}
        everything = {each["kind"]: each["quantity"] for each in (await client.get(path)).json["quotas"]}
        assert (everything["servers"], everything["networks"], everything["gpus"]) == (inherited, 3, 8)
        stored = (await quotas.store.get(Quota, ORG)).spec
        own = stored.quotas if path == f"{BASE}/quotas" else stored.projects[0].quotas
        assert [(each.kind, each.quantity) for each in own] == [("gpus", 8), ("networks", 3)]
        assert (await client.send("PATCH", path, body=limits())).status == 200
        await client.send("PATCH", path, body=limits(networks=None, gpus=None))


async def test_a_patch_is_rejected_as_a_whole(quotas: IdentityApi[Quotas]) -> None:
    client, path = quotas.ask(SERVICE), f"{BASE}/quotas"
    assert (await client.put(path, limits(gpus=8))).status == 200
    seen = await client.get(path)
    assert (await client.post(ROWS, asked(servers=3))).status == 201
    twice = {"quotas": [{"kind": "gpus", "quantity": 1}, {"kind": "gpus", "quantity": None}]}
    rejected = {
        "quotas[0].kind is not a kind of quota: did you mean servers.": limits(server=None),
        "quotas[1].quantity is negative: use zero or more.": limits(gpus=1, servers=-1),
        "quotas has gpus twice: name each kind once.": twice,
        "quota of 2 servers is below the use of 3: set at least 3, or delete something that uses it": limits(
            gpus=1, servers=2
        ),
    }
    for message, body in rejected.items():
        reply = await client.send("PATCH", path, body=body)
        assert (reply.status, reply.json["error_description"]) == (403 if "below" in message else 422, message)
    stale = {"if-match": '"stale"'}
    assert (await client.send("PATCH", path, body=limits(gpus=1), headers=stale)).status == 412
    assert (await client.get(path)).headers["etag"] == seen.headers["etag"]
    both = await asyncio.gather(
        *[client.send("PATCH", path, body=limits(**{kind: 4})) for kind in ("gpus", "networks")]
    )
    assert [each.status for each in both] == [200, 200]
    everything = {each["kind"]: each["quantity"] for each in (await client.get(path)).json["quotas"]}
    assert (everything["gpus"], everything["networks"]) == (4, 4), "neither was lost"
