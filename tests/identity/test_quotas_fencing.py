"""Who slept through a token of what it pays for: what it made up before is refused."""

import asyncio
from typing import Any

import pytest

from remuda.identity.kinds.quotas import Allocation, Intent
from remuda.identity.quotas.intents import Intents
from remuda.identity.quotas.ledger import Ledger
from tests.kit.asgi.client import Client
from tests.kit.asgi.contract import Reply
from tests.kit.identity.quotas import ROWS, SERVICE, asked, made, quota
from tests.kit.identity.resource_api import IdentityApi
from tests.kit.proofs.linearizability.quota_clients import Quotas


async def _change(client: Client, row: str, servers: int, token: int) -> Reply:
    return await client.send("PUT", row, query={"fencingToken": str(token)}, body=asked(servers=servers))


async def test_who_is_late_with_a_change_is_refused_and_changes_nothing(quotas: IdentityApi[Quotas]) -> None:
    client = quotas.ask(SERVICE)
    row = f"{ROWS}/{await made(client, asked(servers=1))}"
    assert (await _change(client, row, 5, token=2)).status == 200
    late = await _change(client, row, 2, token=1)
    assert (late.status, late.json["error"]) == (412, "precondition_failed")
    assert late.json["error_description"].endswith("does not match fencingToken: read it again, then decide.")
    assert (await quota(client))["used"] == 5


async def test_in_the_same_turn_it_may_be_told_again(quotas: IdentityApi[Quotas]) -> None:
    client = quotas.ask(SERVICE)
    row = f"{ROWS}/{await made(client, asked(servers=1))}"
    assert [(await _change(client, row, servers, token=2)).status for servers in (5, 4)] == [200, 200]
    assert (await quota(client))["used"] == 4


async def test_who_knows_of_no_turns_is_never_late_and_does_not_turn_them_back(quotas: IdentityApi[Quotas]) -> None:
    client = quotas.ask(SERVICE)
    row = f"{ROWS}/{await made(client, asked(servers=1))}"
    assert (await _change(client, row, 5, token=2)).status == 200
    assert (await client.put(row, asked(servers=3))).status == 200
    assert (await _change(client, row, 2, token=1)).status == 412
    assert (await quota(client))["used"] == 3


async def test_what_is_held_again_is_in_the_same_turn_still(quotas: IdentityApi[Quotas]) -> None:
    client = quotas.ask(SERVICE)
    row = f"{ROWS}/{await made(client, asked(servers=1))}"
    assert (await _change(client, row, 5, token=2)).status == 200
    await client.delete(row)
    late = await client.send("POST", f"{row}/renew", query={"fencingToken": "1"})
    assert (late.status, (await client.get(row)).status) == (412, 404)
    assert (await client.post(f"{row}/renew")).status == 200
    assert (await _change(client, row, 2, token=1)).status == 412
    assert (await quota(client))["used"] == 5


async def _renew(client: Client, row: str, token: int) -> int:
    return (await client.send("POST", f"{row}/renew", query={"fencingToken": str(token)})).status


async def test_what_was_released_for_good_is_not_held_again_by_who_saw_its_owner_before(
    quotas: IdentityApi[Quotas],
) -> None:
    client = quotas.ask(SERVICE)
    row = f"{ROWS}/{await made(client, asked(servers=1))}"
    assert (await client.send("DELETE", row, query={"fencingToken": "1"})).status == 202
    assert await _renew(client, row, 0) == 412
    assert (await quota(client))["used"] == 0
    assert await _renew(client, row, 1) == 200
    assert (await quota(client))["used"] == 1


@pytest.mark.parametrize("tokens", [(None, 1), (1, 3, 2)], ids=str)
async def test_that_it_was_released_before_does_not_matter(
    quotas: IdentityApi[Quotas], tokens: tuple[int | None, ...]
) -> None:
    client = quotas.ask(SERVICE)
    row = f"{ROWS}/{await made(client, asked(servers=1))}"
    for token in tokens:
        query = {} if token is None else {"fencingToken": str(token)}
        assert (await client.send("DELETE", row, query=query)).status == 202
    last = max(token or 0 for token in tokens)
    assert [await _renew(client, row, token) for token in (last - 1, last)] == [412, 200]


async def test_what_was_never_confirmed_ends_for_good_as_well(quotas: IdentityApi[Quotas]) -> None:
    client = quotas.ask(SERVICE)
    row = f"{ROWS}/{await made(client, asked(servers=1), idempotency_key='begun')}"
    assert (await client.get(row)).json["status"]["state"] == "unconfirmed"
    assert (await client.send("DELETE", row, query={"fencingToken": "1"})).status == 202
    assert await _renew(client, row, 0) == 412
    assert (await quota(client))["used"] == 0


async def test_who_renews_while_it_ends_for_good_is_late(
    quotas: IdentityApi[Quotas], monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = Intents.complete_open
    client = quotas.ask(SERVICE)
    row = f"{ROWS}/{await made(client, asked(servers=1))}"
    await client.delete(row)

    async def end_open(settling: Intents, organization: str, name: str) -> None:
        monkeypatch.setattr(Intents, "complete_open", plain)
        assert (await client.send("DELETE", row, query={"fencingToken": "1"})).status == 202
        await plain(settling, organization, name)

    monkeypatch.setattr(Intents, "complete_open", end_open)
    assert await _renew(client, row, 0) == 412
    assert (await quota(client))["used"] == 0


async def test_who_comes_between_the_two_writes_of_a_later_change_is_late_as_well(
    quotas: IdentityApi[Quotas], monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, is_noted, goes_on = Ledger._apply_update, asyncio.Event(), asyncio.Event()

    async def carry_out(ledger: Ledger, organization: str, intent: Intent, *row_edit_log: Any) -> Allocation:
        if intent.fencing_token and not is_noted.is_set():
            is_noted.set()
            await goes_on.wait()
        return await plain(ledger, organization, intent, *row_edit_log)

    client = quotas.ask(SERVICE)
    row = f"{ROWS}/{await made(client, asked(servers=5))}"
    monkeypatch.setattr(Ledger, "_apply_update", carry_out)
    changing = asyncio.ensure_future(_change(client, row, 4, token=2))
    await is_noted.wait()
    assert (await _change(client, row, 1, token=1)).status == 412
    goes_on.set()
    assert (await changing).json["spec"]["allocations"][0]["committed"] == 4
    assert (await quota(client))["used"] == 4


async def test_a_turn_that_is_none_is_refused(quotas: IdentityApi[Quotas]) -> None:
    client = quotas.ask(SERVICE)
    row = f"{ROWS}/{await made(client, asked(servers=1))}"
    refused = await _change(client, row, 2, token=-1)
    assert (refused.status, "fencingToken" in refused.json["error_description"]) == (400, True)
    assert (await quota(client))["used"] == 1
