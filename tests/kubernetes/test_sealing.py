"""What an API server sees of a secret: nothing."""

import asyncio
from contextlib import suppress

import msgspec
import pytest
from msgspec import structs

from remuda.kernel.errors import Conflict
from remuda.kernel.sealing import Keyring, Sealer, SealingKey
from remuda.kernel.secrets import Secret
from remuda.store.kubernetes.client import kubeconfig
from remuda.store.kubernetes.store import KubernetesStore, open_kubernetes_store
from remuda.store.reseal import reseal
from tests.kit.sample_kinds import HORSE, REGISTRY, Horse, HorseSpec, HorseStatus, horse
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.harness import settings_for

pytestmark = pytest.mark.kubernetes

OLD, NEW = SealingKey("old", b"o" * 32), SealingKey("new", b"n" * 32)
CANARY = "canary-in-the-corral"


async def open_with(cluster: Cluster, namespace: str, keyring: Keyring) -> KubernetesStore:
    source = kubeconfig(cluster.kubeconfig)
    return await open_kubernetes_store(source, REGISTRY, Sealer(keyring), settings=settings_for(namespace))


async def test_a_secret_is_sealed_on_the_server_and_can_be_sealed_again(cluster: Cluster) -> None:
    namespace = cluster.namespace()
    path = f"/apis/{HORSE.api_version}/namespaces/{namespace}/{HORSE.plural}/branded"
    store = await open_with(cluster, namespace, Keyring(OLD))
    await store.create(horse("branded", spec=HorseSpec(brand=Secret(CANARY))))
    stored = msgspec.json.encode(cluster.request("GET", path)).decode()
    assert CANARY not in stored
    assert "sealed:v1:old:" in stored
    await store.close()

    store = await open_with(cluster, namespace, Keyring(NEW, (OLD,)))
    assert await reseal(store) == 1
    assert await reseal(store) == 0
    assert "sealed:v1:old:" not in msgspec.json.encode(cluster.request("GET", path)).decode()
    await store.close()

    store = await open_with(cluster, namespace, Keyring(NEW))
    assert (await store.get(Horse, "branded")).spec.brand == Secret(CANARY)
    await store.close()


async def test_sealing_again_is_not_put_off_by_those_who_write_meanwhile(cluster: Cluster) -> None:
    namespace = cluster.namespace()
    store = await open_with(cluster, namespace, Keyring(OLD))
    for number in range(10):
        await store.create(horse(f"h-{number}", spec=HorseSpec(brand=Secret(CANARY))))
    await store.close()

    store = await open_with(cluster, namespace, Keyring(NEW, (OLD,)))
    stopped = asyncio.Event()

    async def write(name: str) -> None:
        place = 0
        while not stopped.is_set():
            place += 1
            with suppress(Conflict):
                current = await store.get(Horse, name)
                await store.update_status(structs.replace(current, status=HorseStatus(place=f"{place}")))

    writers = [asyncio.create_task(write(f"h-{number}")) for number in range(10)]
    await asyncio.sleep(0.1)
    await reseal(store)
    stopped.set()
    await asyncio.gather(*writers)
    path = f"/apis/{HORSE.api_version}/namespaces/{namespace}/{HORSE.plural}"
    stored = msgspec.json.encode(cluster.request("GET", path)).decode()
    assert "sealed:v1:old:" not in stored
    assert stored.count("sealed:v1:new:") == 10
    await store.close()
