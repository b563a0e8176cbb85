"""What is refused of quotas and allocations: each with the field that is wrong, and nothing changed."""

from typing import Any

import pytest

from remuda.identity.kinds.quotas import Allocation, Quota
from tests.kit.identity.quotas import BASE, ROWS, SERVICE, asked, limits, made
from tests.kit.identity.resource_api import PROJECT, IdentityApi
from tests.kit.proofs.linearizability.quota_clients import Quotas


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (limits(servers=-1), "quotas[0].quantity is negative"),
        (limits(servers=2**53), "quotas[0].quantity is too large"),
        (limits(server=1), "quotas[0].kind is not a kind of quota: did you mean servers"),
        (limits(unicorns=1), "quotas[0].kind is not a kind of quota: the kinds are clusters, "),
        ({"quotas": [{"kind": "servers", "quantity": 1}] * 2}, "quotas has servers twice"),
    ],
)
@pytest.mark.parametrize("path", [f"{BASE}/quotas", f"{BASE}/projects/{PROJECT}/quotas"])
async def test_limits_that_make_no_sense_are_refused(
    quotas: IdentityApi[Quotas], body: dict[str, Any], field: str, path: str
) -> None:
    reply = await quotas.ask(SERVICE).put(path, body)
    assert reply.status == 422, reply
    assert field in reply.json["error_description"]
    assert not (await quotas.store.list(Quota)).items, "nothing was written"


MANY = {f"kind-{number}": 1 for number in range(51)}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (asked(servers=-1), "spec.allocations[0].committed is negative"),
        (asked(servers=(1, -1)), "spec.allocations[0].reserved is negative"),
        (asked(gpus=1, servers=2**53), "spec.allocations[1].committed is too large"),
        (asked("-no-name-"), "spec.id is not a name"),
        (asked("x" * 64), "spec.id is not a name"),
        (asked(""), "spec.id is not a name"),
        ({**asked(), "spec": {"kind": "a/b", "id": "a", "allocations": []}}, "spec.kind is not a name"),
        (asked(**{"sp ace": 1}), "spec.allocations[0].kind is not a name"),
        (asked(**MANY), "spec.allocations has more than 50 kinds"),
        (
            {**asked(), "spec": {**asked()["spec"], "allocations": asked(servers=1)["spec"]["allocations"] * 2}},
            "spec.allocations has servers twice",
        ),
        (
            {**asked(), "metadata": {"name": "a", "tags": [{"name": "t", "value": "1"}] * 2}},
            "metadata.tags has 't' twice",
        ),
    ],
)
async def test_allocations_that_make_no_sense_are_refused(
    quotas: IdentityApi[Quotas], body: dict[str, Any], field: str
) -> None:
    client = quotas.ask(SERVICE)
    reply = await client.post(ROWS, body)
    assert reply.status == 422, reply
    assert field in reply.json["error_description"]
    assert not (await quotas.store.list(Quota)).items, "nothing was written"
    row = await made(client, asked(servers=1))
    before = await quotas.store.get(Allocation, row)
    reply = await client.put(f"{ROWS}/{row}", body)
    assert reply.status == 422, reply
    assert field in reply.json["error_description"]
    assert await quotas.store.get(Allocation, row) == before


async def test_bodies_that_are_not_what_the_contract_says_are_malformed(quotas: IdentityApi[Quotas]) -> None:
    client = quotas.ask(SERVICE)
    wrong: list[Any] = [{}, {"quotas": [{}]}, {"quotas": [{"kind": "servers", "quantity": "1"}]}, b"[", b"1e999"]
    for body in wrong:
        assert (await client.put(f"{BASE}/quotas", body)).status == 400
    huge = b'{"quotas":[{"kind":"servers","quantity":' + b"9" * 40 + b"}]}"
    assert (await client.put(f"{BASE}/quotas", huge)).status in {400, 422}
    wrong = [{}, {"metadata": {"name": "x"}}, {**asked(), "spec": {"kind": "a", "id": "b"}}]
    for body in wrong:
        assert (await client.post(ROWS, body)).status == 400


async def test_an_allocation_stays_its_owners(quotas: IdentityApi[Quotas]) -> None:
    client = quotas.ask(SERVICE)
    row = await made(client, asked(servers=1))
    reply = await client.put(f"{ROWS}/{row}", asked("owner-2", servers=1))
    assert reply.status == 422
    assert "spec.id is owner-1 and cannot change" in reply.json["error_description"]
