"""While an operation has an instance locked, nobody else acts on it; and what may yet come is waited for."""

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from remuda.access.principal import Context
from remuda.compute.kinds import INSTANCE, ComputeInstance
from remuda.kernel.errors import Unavailable
from remuda.operations.kinds import OPEN, Operation
from remuda.quota.client import QuotaClient
from remuda.quota.ports import Charge
from remuda.region.kinds.servers import Server
from remuda.region.servers.schema import ServerCreate, ServerRead
from tests.kit.compute.controllers import at_cloud, events, rest, server_of
from tests.kit.compute.environment import INSTANCES, ComputeEnvironment
from tests.kit.compute.requests import Tenant, at, held, made, settle
from tests.kit.compute.updates import put, wanted

PUBLIC = {"publicIP": True}


class Ill:
    """Identity, which does not hold another cost while it is ill."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_ill = False
        plain = QuotaClient.update

        async def update(link: QuotaClient, charge: Charge) -> None:
            if self.is_ill and self.rejects(charge):
                raise Unavailable("It is ill.")
            await plain(link, charge)

        monkeypatch.setattr(QuotaClient, "update", update)

    def rejects(self, charge: Charge) -> bool:
        """Tell whether it does not hold this."""
        return bool(charge.amounts)


class IllAtLast(Ill):
    """The same, for what is to cost less: it fails when all else was done."""

    def rejects(self, charge: Charge) -> bool:
        """Tell whether no address is paid for."""
        return all(amount.kind != "floatingips" for amount in charge.amounts)


async def _running(compute: ComputeEnvironment, tenant: Tenant, **spec: Any) -> str:
    instance = made(await tenant.client.post(INSTANCES, tenant.wanted(compute, **spec)))
    await compute.until(instance, "provisioned")
    return instance


async def _sagas(compute: ComputeEnvironment) -> list[str]:
    return [each.spec.saga for each in (await compute.store.list(Operation, index=OPEN)).items]


async def test_while_an_operation_has_it_locked_another_change_is_a_conflict(
    compute: ComputeEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    identity = Ill(monkeypatch)
    tenant = await settle(compute)
    instance = await _running(compute, tenant)
    before = (await compute.read(instance))["spec"]
    identity.is_ill = True
    assert (await put(tenant.client, instance, wanted(tenant, compute, networking=PUBLIC))).status == 503
    assert await _sagas(compute) == ["instance.update"]
    another = wanted(tenant, compute, metadata={"description": "another"})
    for query in ({"dryRun": "true"}, {}):
        reply = await put(tenant.client, instance, another, **query)
        assert (reply.status, reply.json["code"]) == (409, "conflict")
    assert (await compute.read(instance))["spec"] == before
    identity.is_ill = False
    await rest(compute, 600)
    assert await _sagas(compute) == []
    assert (await put(tenant.client, instance, another)).status == 202


async def test_while_an_operation_has_it_locked_its_server_is_not_changed(
    compute: ComputeEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    identity = IllAtLast(monkeypatch)
    tenant = await settle(compute)
    instance = await _running(compute, tenant, networking=PUBLIC)
    before = await compute.read(instance)
    identity.is_ill = True
    assert (await put(tenant.client, instance, wanted(tenant, compute))).status == 503
    await rest(compute)
    assert await _sagas(compute) == []
    assert (await compute.read(instance))["status"] == before["status"]
    assert await events(compute, instance) == ["ServerCreated"], "what was put back in the end was never done"


async def test_while_an_operation_has_it_locked_nothing_is_removed_and_after_that_all_is(
    compute: ComputeEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    identity = Ill(monkeypatch)
    tenant = await settle(compute)
    instance = await _running(compute, tenant)
    identity.is_ill = True
    assert (await put(tenant.client, instance, wanted(tenant, compute, networking=PUBLIC))).status == 503
    assert await _sagas(compute) == ["instance.update"]
    assert (await tenant.client.delete(at(instance))).status == 202
    await compute.clock.sleep(0.2)
    server, sagas = await server_of(compute, instance), await _sagas(compute)
    assert (server is not None and server.is_deleting, sagas) == (False, ["instance.update"])
    identity.is_ill = False
    await compute.until_gone(instance)
    assert (at_cloud(compute), await held(compute), await _sagas(compute)) == ([], [], [])


async def test_c02_a_server_whose_answer_is_missing_is_waited_for_before_its_instance_goes(
    compute: ComputeEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    late: list[asyncio.Task[ServerRead]] = []
    region = compute.app.ports.region.api
    plain = region.create_server

    async def create(context: Context, body: ServerCreate) -> ServerRead:
        async def come() -> ServerRead:
            await compute.clock.sleep(0.5)
            return await plain(context, body)

        if not late:
            late.append(asyncio.create_task(come()))
        raise Unavailable("The answer was lost.")

    tenant = await settle(compute)
    monkeypatch.setattr(region, "create_server", create)
    instance = made(await tenant.client.post(INSTANCES, tenant.wanted(compute)))
    while not late:
        await compute.clock.sleep(0.01)
    assert (await tenant.client.delete(at(instance))).status == 202
    await compute.until_gone(instance)
    await asyncio.wait(late)
    await rest(compute, 60)
    assert (await compute.store.list(Server)).items == []
    assert (await compute.store.list(ComputeInstance)).items == []
    assert await held(compute) == []


async def test_c02_no_server_is_made_by_who_slept_until_the_instance_was_gone(
    compute: ComputeEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, slept = QuotaClient.confirm, list[str]()

    async def confirm(link: QuotaClient, charge: Charge) -> bool:
        answer = await plain(link, charge)
        if charge.kind == INSTANCE.qualified and not slept:
            slept.append(charge.id)
            found = await compute.store.get(ComputeInstance, charge.id)
            freed = replace(found, metadata=replace(found.metadata, finalizers=()))
            await compute.store.delete(ComputeInstance, found.name, uid=(await compute.store.update(freed)).uid)
        return answer

    tenant = await settle(compute)
    monkeypatch.setattr(QuotaClient, "confirm", confirm)
    instance = made(await tenant.client.post(INSTANCES, tenant.wanted(compute)))
    await compute.until_gone(instance)
    await rest(compute, 60)
    assert slept == [instance]
    assert (await compute.store.list(Server)).items == []
