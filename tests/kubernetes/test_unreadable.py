"""Objects that cannot be read: told by name, shown as they were last, and in nobody's way."""

import asyncio

import pytest

from remuda.kernel.errors import NotFound, Unsealable
from remuda.kernel.sealing import Keyring, Sealer, SealingKey
from remuda.kernel.secrets import Secret
from remuda.store.contract import named
from tests.kit.sample_kinds import HORSE, Corral, Horse, HorseSpec, corral, horse
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.harness import opened
from tests.kubernetes.steps import following, path_of, until

pytestmark = pytest.mark.kubernetes

KNOWN, UNKNOWN = Sealer(Keyring(SealingKey("known", b"k" * 32))), Sealer(Keyring(SealingKey("lost", b"l" * 32)))


def branded(name: str, brand: str = "circle") -> Horse:
    return horse(name, spec=HorseSpec(brand=Secret(brand)))


async def test_an_object_whose_key_is_missing_does_not_stop_the_others(cluster: Cluster) -> None:
    namespace = cluster.namespace()
    async with opened(cluster, namespace, sealer=UNKNOWN) as other:
        await other.create(branded("sealed"))
        async with opened(cluster, namespace, sealer=KNOWN) as store:
            await store.create(branded("mine"))
            assert [one.name for one in (await store.list(Horse)).items] == ["mine"]
            for read in (store.get(Horse, "sealed"), store.get_view(Horse, "sealed", lambda one: one.name.encode())):
                with pytest.raises(Unsealable):
                    await read
            await other.create(branded("sealed-later"))
            await store.create(branded("mine-later"))
            with pytest.raises(Unsealable):
                await store.get(Horse, "sealed-later")
            assert not store._tasks.failing


async def test_an_update_that_cannot_be_read_is_neither_the_present_nor_a_deletion(cluster: Cluster) -> None:
    async with opened(cluster, cluster.namespace(), sealer=KNOWN) as store, following(store) as follower:
        made = await store.create(branded("bella"))
        await until(lambda: set(follower.horses) == {"bella"})
        path, change_count = path_of(cluster, HORSE, "bella"), store.change_counter([named(Horse, "bella")])
        cluster.request("PATCH", path, {"spec": {"brand": "sealed:v1:lost:AAAA"}})
        await until(lambda: "bella" in store._known.unreadable(HORSE))
        assert store.change_counter([named(Horse, "bella")]) > change_count, (
            "nothing that was made of it is good any more"
        )
        with pytest.raises(Unsealable):
            await store.get(Horse, "bella")
        with pytest.raises(Unsealable):
            await store.get_view(Horse, "bella", lambda one: one.name.encode())
        assert follower.horses == {"bella": made}, "nobody was told that it is gone"
        assert (await store.list(Horse)).items == [made], "unknown is not absent"
        cluster.request("PATCH", path, {"spec": {"brand": None, "colour": "grey"}})
        await until(lambda: follower.horses["bella"].spec.colour == "grey")
        assert (await store.get(Horse, "bella")).spec.colour == "grey"
        assert follower.lists == 1


async def test_the_deletion_of_what_cannot_be_read_is_told(cluster: Cluster) -> None:
    async with opened(cluster, cluster.namespace(), sealer=KNOWN) as store, following(store) as follower:
        made = await store.create(branded("bella"))
        await until(lambda: set(follower.horses) == {"bella"})
        path = path_of(cluster, HORSE, "bella")
        cluster.request("PATCH", path, {"spec": {"brand": "sealed:v1:lost:AAAA"}})
        await until(lambda: "bella" in store._known.unreadable(HORSE))
        cluster.request("DELETE", path)
        cluster.try_request("PATCH", path, {"metadata": {"finalizers": None}})
        await until(lambda: not follower.horses)
        with pytest.raises(NotFound):
            await store.get(Horse, "bella")
        assert follower.lists == 1
        assert made.name not in store._known.unreadable(HORSE)


async def test_a_referrer_that_cannot_be_read_holds_only_what_it_could_refer_to(cluster: Cluster) -> None:
    namespace = cluster.namespace()
    async with opened(cluster, namespace, sealer=KNOWN) as store:
        north = await store.create(corral("north"))
        horse_of_nobody = await store.create(branded("rover"))
        await store.create(branded("bella"))
        cluster.request("PATCH", path_of(cluster, HORSE, "bella"), {"spec": {"brand": "sealed:v1:lost:AAAA"}})
        await until(lambda: "bella" in store._known.unreadable(HORSE))
        await store.delete(Corral, "north", uid=north.uid)
        await store.delete(Horse, "rover", uid=horse_of_nobody.uid)
        await until(lambda: store._known.find(HORSE, "rover") is None)
        await asyncio.sleep(0.5)
        assert (await store.get(Corral, "north")).is_deleting, "bella might stand in it"
