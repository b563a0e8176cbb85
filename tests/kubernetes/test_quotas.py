"""The quota ledger on a real API server: the same callers, histories and guarantees as on SQLite."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from itertools import count

import pytest

from remuda.http.api import Api
from remuda.http.routes import Table
from remuda.identity.kinds.quotas import Allocation, Quota
from remuda.identity.quotas.controller import QuotaRecordController
from remuda.identity.quotas.routes import ROUTES
from remuda.kernel.clock import SystemClock
from remuda.kernel.randomness import SeededRandomness
from remuda.reconcile.results import ReconcileContext, Requeue
from remuda.store.kubernetes.client import kubeconfig
from remuda.store.kubernetes.store import KubernetesStore, open_kubernetes_store
from tests.kit.asgi.api_ports import api_ports
from tests.kit.asgi.client import Client
from tests.kit.identity.resource_api import ORG, PROJECT, ByName, registry
from tests.kit.proofs.linearizability.histories import Caller, History, crowd
from tests.kit.proofs.linearizability.invariants import check_invariant
from tests.kit.proofs.linearizability.quota_clients import (
    TELLER,
    OverHttp,
    QuotaClient,
    Quotas,
    asking,
    furnish,
    quota_client,
    service,
    used_in,
)
from tests.kit.simulation.store import SEALER
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.harness import settings_for

pytestmark = pytest.mark.kubernetes

LIMIT, ROUNDS = 10, 3
EXPECTED = {"Allocate ok", "Allocate refused", "Release ok", "Change ok", "SetLimit ok"}
"""What callers have to be told at least once for this to be a test."""
LIFE = timedelta(minutes=10)
REGISTRY = registry()
WHERE = (ORG, PROJECT)
CLOCK = SystemClock()


@pytest.fixture(scope="module")
def quota_cluster(cluster: Cluster) -> Cluster:
    """The API server, with identity's kinds."""
    cluster.define(REGISTRY)
    return cluster


@asynccontextmanager
async def processes(cluster: Cluster, number: int) -> AsyncIterator[list[KubernetesStore]]:
    """Open as many stores over one namespace, each as a process of its own would."""
    stores: list[KubernetesStore] = []
    settings = settings_for(cluster.namespace())
    settings = replace(settings, reader=replace(settings.reader, slice_objects=1000))
    try:
        while len(stores) < number:
            source = kubeconfig(cluster.kubeconfig)
            stores.append(await open_kubernetes_store(source, REGISTRY, SEALER, settings=settings))
        await furnish(stores[0], *WHERE)
        await asyncio.sleep(0.5)  # until all have heard of it
        yield stores
    finally:
        for store in stores:
            await store.close()


def quotas_of(store: KubernetesStore, seed: int) -> Quotas:
    return service(store, CLOCK, SeededRandomness(seed), intent_lifetime=LIFE)


async def hold_court(
    stores: list[KubernetesStore], services: list[QuotaClient], *, seed: int, reads: bool
) -> Counter[str]:
    """Let callers ask at these services, hold what they were told against the ledger, and return it."""
    history = History()
    callers = [
        Caller(f"caller-{number}", each, history, CLOCK, SeededRandomness(100 * seed + number), reads=reads)
        for number, each in enumerate(services)
    ]
    await crowd(callers, 12)
    history.check(LIMIT)
    held = {name: amount for caller in callers for name, (_, amount) in caller.held.items()}
    for store in stores:
        await has_heard(store, held)
        await check_invariant(store, ORG)
        head = await store.get(Quota, ORG)
        assert (used_in(head), head.spec.intents) == (sum(held.values()), ())
    return history.outcomes


async def has_heard(store: KubernetesStore, held: dict[str, int]) -> None:
    """Wait until a process has heard of everything that happened in others."""
    for _ in range(100):
        head = await store.get(Quota, ORG)
        rows = (await store.list(Allocation, index=("active", ORG))).items
        if not head.spec.intents and {row.name for row in rows} == held.keys():
            return
        await asyncio.sleep(0.1)


async def test_callers_of_one_process_see_one_ledger(quota_cluster: Cluster) -> None:
    outcomes: Counter[str] = Counter()
    for seed in range(ROUNDS):
        async with processes(quota_cluster, 1) as stores:
            quotas = quotas_of(stores[0], seed)
            services: list[QuotaClient] = [
                quota_client(quotas, SeededRandomness(number), *WHERE) for number in range(5)
            ]
            outcomes += await hold_court(stores, services, seed=seed, reads=True)
    assert outcomes.keys() >= EXPECTED, outcomes


async def test_callers_of_several_processes_share_one_ledger(quota_cluster: Cluster) -> None:
    """What a process reads may be a little old, so it is the writes that are held against the ledger."""
    outcomes: Counter[str] = Counter()
    for seed in range(ROUNDS):
        async with processes(quota_cluster, 3) as stores:
            ledgers = [quotas_of(store, number) for number, store in enumerate(stores)]
            services: list[QuotaClient] = [
                quota_client(ledgers[number % 3], SeededRandomness(number), *WHERE) for number in range(6)
            ]
            outcomes += await hold_court(stores, services, seed=seed, reads=False)
    assert outcomes.keys() >= EXPECTED, outcomes


async def test_callers_over_http_see_one_ledger(quota_cluster: Cluster) -> None:
    outcomes: Counter[str] = Counter()
    for seed in range(ROUNDS):
        async with processes(quota_cluster, 1) as stores:
            table = Table("identity", title="Identity", description="Quotas.", routes=ROUTES)
            transport = ByName({TELLER.subject: TELLER})
            ports = api_ports(stores[0], transport, clock=CLOCK, randomness=SeededRandomness(seed))  # type: ignore[arg-type]  # this backend is a store and a log too
            client = Client(app=Api(table, quotas_of(stores[0], seed), ports), token=TELLER.subject)
            services: list[QuotaClient] = [
                OverHttp(client=client, organization=ORG, project=PROJECT, keys=count(number)) for number in range(4)
            ]
            outcomes += await hold_court(stores, services, seed=seed, reads=True)
    assert outcomes.keys() >= EXPECTED, outcomes


async def test_64_callers_who_want_10_get_exactly_10(quota_cluster: Cluster) -> None:
    async with processes(quota_cluster, 2) as stores:
        services = [
            quota_client(quotas, SeededRandomness(number), *WHERE)
            for number, quotas in enumerate([quotas_of(store, number) for number, store in enumerate(stores)])
        ]
        told = await asyncio.gather(*[services[number % 2].allocate(f"owner-{number}", 1) for number in range(64)])
        assert sum(each is not None for each in told) == 10
        for store in stores:
            assert used_in(await store.get(Quota, ORG)) == 10


async def test_what_nobody_confirms_is_rolled_back(quota_cluster: Cluster) -> None:
    async with processes(quota_cluster, 1) as stores:
        (store,), randomness = stores, SeededRandomness(3)
        quotas = service(store, CLOCK, randomness, intent_lifetime=timedelta(seconds=1))
        there = quota_client(quotas, randomness, *WHERE)
        context = there.context("operation-1")
        row = await quotas.allocations.allocate(context, *WHERE, asking("owner-1", servers=2))
        await asyncio.sleep(1.1)
        controller = QuotaRecordController(store=store, clock=CLOCK, ledger=quotas.ledger)
        run = ReconcileContext(controller="quotas", key=ORG, cause="event", registry=REGISTRY, randomness=randomness)
        while isinstance(await controller(ORG, run), Requeue):
            continue
        head = await store.get(Quota, ORG)
        assert (used_in(head), head.spec.intents) == (0, ())
        assert (await store.get(Allocation, row.name)).spec.state == "released"
        renewed = await quotas.allocations.renew(there.context(), *WHERE, row.name)
        assert renewed.spec.state == "unconfirmed"
        assert (await quotas.allocations.confirm(there.context(), *WHERE, row.name)).spec.state == "confirmed"
        await check_invariant(store, ORG)
