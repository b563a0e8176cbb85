"""What services ask of identity, in the same process and over a socket: the same happens, and is refused alike."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from remuda.access.principal import Principal
from remuda.clients import transport as clients
from remuda.identity.kinds.tenancy import Project
from remuda.kernel.errors import AlreadyExists, Forbidden, Invalid, Malformed, NotFound
from remuda.quota.client import QuotaClient
from remuda.quota.ports import Charge, ChargeAmount, ProjectRef, StaleTokenError
from tests.kit.both_transports import TRANSPORTS, FollowedServices, followed, quota_client_of
from tests.kit.identity.environment import ORGANIZATIONS, expect

ABSENT = "f0000000-0000-4000-8000-0000000000ff"
REFERENCE = "networks.region.unikorn-cloud.org/f0000000-0000-4000-8000-000000000001"
REGION = "unikorn-region"
COMPUTE = "unikorn-compute"
each_transport = pytest.mark.parametrize("transport", TRANSPORTS)


@asynccontextmanager
async def asked(directory: Path, transport: str) -> AsyncIterator[tuple[FollowedServices, QuotaClient, ProjectRef]]:
    """Run identity, and a service that asks it."""
    async with followed(directory, transport, service=REGION) as environment:
        system = environment.system
        yield environment, quota_client_of(environment, REGION), ProjectRef(system.organization, system.project)


def charge(payer: ProjectRef, number: int = 1, committed: int = 2) -> Charge:
    operation, owner = (f"f0000000-0000-4000-800{part}-00000000000{number}" for part in (1, 2))
    return Charge(
        payer=payer, operation=operation, kind="networks.x.y", id=owner, amounts=(ChargeAmount("networks", committed),)
    )


@each_transport
async def test_a_project_is_there_or_not(tmp_path: Path, transport: str) -> None:
    async with asked(tmp_path, transport) as (_, client, place):
        assert await client.has_project(place.organization, place.project)
        assert not await client.has_project(place.organization, ABSENT)
        assert not await client.has_project(ABSENT, place.project)


@each_transport
async def test_a_reference_keeps_a_project_until_it_is_taken_away(tmp_path: Path, transport: str) -> None:
    async with asked(tmp_path, transport) as (environment, client, place):
        store = environment.system.store
        for _ in range(2):
            await client.add_reference(place, REFERENCE)
        assert (await store.get(Project, place.project)).metadata.finalizers.count(REFERENCE) == 1
        with pytest.raises(NotFound):
            await client.add_reference(replace(place, project=ABSENT), REFERENCE)
        with pytest.raises(Invalid):
            await client.add_reference(place, "nonsense")

        root = environment.system.identity.client(environment.system.identity.root)
        path = f"{ORGANIZATIONS}/{place.organization}/projects/{place.project}"
        expect(await root.delete(path), 202)
        with pytest.raises(Malformed, match="being deleted"):
            await client.add_reference(place, f"{REFERENCE}0")
        assert await client.has_project(place.organization, place.project), "it is kept"
        for _ in range(2):
            await client.remove_reference(place, REFERENCE)
        await environment.system.identity.eventually("the project is gone", lambda: _lacks(client, place))
        await client.remove_reference(place, REFERENCE)


@each_transport
async def test_what_something_costs_is_held_once_and_released(tmp_path: Path, transport: str) -> None:
    async with asked(tmp_path, transport) as (environment, client, place):
        wanted = charge(place)
        assert not await client.confirm(wanted), "nothing is held"
        for _ in range(2):
            await client.allocate(wanted)
        assert await _used(environment, place) == 2
        assert await client.confirm(wanted)
        await client.update(replace(wanted, amounts=(ChargeAmount("networks", 3),)))
        assert await _used(environment, place) == 3
        with pytest.raises(AlreadyExists):
            await client.allocate(replace(wanted, operation=ABSENT))
        assert await _used(environment, place) == 3
        for _ in range(2):
            await client.release(wanted)
        assert await _used(environment, place) == 0
        assert not await client.confirm(wanted)
        await client.allocate(wanted)
        assert await _used(environment, place) == 2, "what was released can be held again"


@each_transport
async def test_who_is_late_is_told_so_and_holds_nothing_else(tmp_path: Path, transport: str) -> None:
    async with asked(tmp_path, transport) as (_, client, place):
        await client.allocate(charge(place))
        await client.update(replace(charge(place, committed=3), fencing_token=2))
        with pytest.raises(StaleTokenError):
            await client.update(replace(charge(place, committed=1), fencing_token=1))
        held = await client.find_allocation(charge(place))
        assert held is not None
        assert held.amounts == {ChargeAmount("networks", 3)}
        await client.release(charge(place))
        with pytest.raises(StaleTokenError):
            await client.allocate(replace(charge(place), fencing_token=1))
        assert await client.find_allocation(charge(place)) is None, "it is not held again by who is late"


@each_transport
async def test_what_is_released_and_fenced_is_not_allocated_with_an_older_token(tmp_path: Path, transport: str) -> None:
    async with asked(tmp_path, transport) as (environment, client, place):
        await client.allocate(charge(place))
        for _ in range(2):
            await client.release_and_fence(replace(charge(place), fencing_token=3))
        with pytest.raises(StaleTokenError):
            await client.allocate(replace(charge(place), fencing_token=3))
        assert await _used(environment, place) == 0


@each_transport
async def test_no_more_is_held_than_there_may_be(tmp_path: Path, transport: str) -> None:
    async with asked(tmp_path, transport) as (environment, client, place):
        root = environment.system.identity.client(environment.system.identity.root)
        limits = {"quotas": [{"kind": "networks", "quantity": 2}]}
        expect(await root.put(f"{ORGANIZATIONS}/{place.organization}/quotas", limits), 200)
        await client.allocate(charge(place))
        requester = Principal(subject="ann@example.com", type="user")
        with pytest.raises(Forbidden):
            await client.allocate(charge(place, 2), requester)
        with pytest.raises(Forbidden):
            await client.update(charge(place, committed=3))
        assert await _used(environment, place) == 2


@each_transport
async def test_everything_that_is_held_in_a_project_is_told_however_much_it_is(
    tmp_path: Path, transport: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "_PAGE", 2)
    async with followed(tmp_path, transport, service=COMPUTE) as environment:
        client, place = (
            quota_client_of(environment, COMPUTE),
            ProjectRef(environment.system.organization, environment.system.project),
        )
        for number in (1, 2, 3):
            await client.allocate(charge(place, number, committed=1))
        held = [each async for each in client.list_allocations(place)]
        assert {each.id for each in held} == {charge(place, number).id for number in (1, 2, 3)}
        assert {each.is_confirmed for each in held} == {False}
        assert [each async for each in client.list_allocations(replace(place, project=ABSENT))] == []
        assert [each async for each in client.list_allocations(ProjectRef(ABSENT, ABSENT))] == [], (
            "there is no such organization"
        )


async def _lacks(client: QuotaClient, place: ProjectRef) -> bool:
    return not await client.has_project(place.organization, place.project)


async def _used(environment: FollowedServices, place: ProjectRef) -> int:
    root = environment.system.identity.client(environment.system.identity.root)
    quotas: Any = expect(await root.get(f"{ORGANIZATIONS}/{place.organization}/quotas"), 200)
    return next(int(each["used"]) for each in quotas["quotas"] if each["kind"] == "networks")
