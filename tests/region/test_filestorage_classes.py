"""The classes of file storage: how they come from providers, and who sees them."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace as changed

from remuda.kernel.errors import Unavailable
from remuda.providers.contract.filestorage import CloudStorageClass
from remuda.providers.contract.provider import Provider
from remuda.quota.ports import ProjectRef
from remuda.region.catalogue.provider_registry import ProviderRegistry
from remuda.region.filestorage import routes as api
from remuda.region.filestorage.classes import StorageClassSync, class_id, is_offered, provider_class
from remuda.region.filestorage.routes import CLASSES, FILE_STORAGE
from remuda.region.filestorage.service import FileStorageService
from remuda.region.kinds.filestorage import FileStorage, FileStorageClass, FileStorageClassSpec
from remuda.resources.conventions import NAME, ORGANIZATION
from remuda.resources.conventions import REGION as REGION_LABEL
from remuda.store.contract import Store
from remuda.store.objects import Metadata
from tests.kit.environment import Provided, options
from tests.kit.region.filestorage_requests import FAST, STANDARD, update, wanted
from tests.kit.region.flavor_provider import FlavorProvider
from tests.kit.region.identity_port import MemoryIdentity
from tests.kit.region.resource_api import (
    ORG,
    OTHER_ORG,
    OTHER_REGION,
    PROJECT,
    REGION,
    RegionApi,
    clouds_over,
    everywhere,
    make_region,
    member,
    rejection,
    run_region_api,
)
from tests.kit.region.storage import ABSENT, TENANT, StorageEnvironment
from tests.kit.simulation.runner import World

GOLD = CloudStorageClass(id="gold", name="gold", protocols=("nfsv4",), parallelism=2)
IRON = CloudStorageClass(id="iron", name="Iron & rust!", protocols=("nfsv3", "nfsv4"), parallelism=0)


@dataclass
class Stores:
    """File storage of which only the classes are asked for."""

    offered: Sequence[CloudStorageClass] = (GOLD, IRON)
    error: Exception | None = None
    asked: list[str] = field(default_factory=list)

    async def storage_classes(self) -> Sequence[CloudStorageClass]:
        self.asked.append("storage_classes")
        if self.error is not None:
            raise self.error
        return self.offered

    def provider(self, world: World) -> Provider:
        """It, as all that a region has."""
        return replace(FlavorProvider(world.clock).bare, file_storages=self)  # type: ignore[arg-type]  # no more of it is asked


@dataclass(frozen=True, kw_only=True)
class ClassesEnvironment:
    """A capacity whose regions have these providers."""

    api: RegionApi[FileStorageService]
    keeper: StorageClassSync

    async def look(self) -> dict[str, FileStorageClass]:
        """Look at the providers, and return what is stored then by what they call it."""
        await self.keeper.sync()
        found = (await self.api.store.list(FileStorageClass)).items
        return {f"{each.metadata.labels[REGION_LABEL]} {provider_class(each)}": each for each in found}


def run_classes(scenario: Any, *, north: Stores, south: Stores) -> None:
    made: list[ProviderRegistry] = []

    def service(world: World, store: Store) -> FileStorageService:
        providers = {REGION: north.provider(world), OTHER_REGION: south.provider(world)}
        made.append(clouds_over(world, store, providers))
        identity = MemoryIdentity({ProjectRef(ORG, PROJECT)})
        return FileStorageService(store=store, clock=world.clock, identity=identity, providers=made[0], operations=None)  # type: ignore[arg-type]  # nothing is made

    async def run(environment: RegionApi[FileStorageService]) -> None:
        await make_region(environment.store)
        await make_region(environment.store, OTHER_REGION, called="south")
        await scenario(
            ClassesEnvironment(
                api=environment, keeper=StorageClassSync(environment.store, made[0], clock=environment.world.clock)
            )
        )

    run_region_api(service, api.ROUTES, run)


@pytest.fixture
def north() -> Stores:
    return Stores()


@pytest.fixture
def classes(north: Stores) -> Provided:
    return Provided(launcher=partial(run_classes, north=north, south=Stores()))


async def test_two_regions_may_call_their_classes_the_same(classes: ClassesEnvironment) -> None:
    found = await classes.look()
    assert set(found) == {f"{region} {name}" for region in (REGION, OTHER_REGION) for name in ("gold", "iron")}
    assert len({each.name for each in found.values()}) == 4
    gold, iron = found[f"{REGION} gold"], found[f"{REGION} iron"]
    assert gold.name == class_id(REGION, "gold")
    assert (gold.spec.protocols, gold.spec.parallelism) == (("nfsv4",), 2)
    assert iron.metadata.labels[NAME] == "Iron-rust", "as a label can hold it"
    listed = (await classes.api.ask(TENANT).get(CLASSES, [("regionID", REGION)])).json
    assert {each["metadata"]["id"]: each["spec"]["parallelism"] for each in listed} == {gold.name: 2, iron.name: 4}
    assert await classes.look() == found, "what is as it should be is not written"


async def test_what_is_offered_otherwise_is_written_and_keeps_whom_it_is_for(
    classes: ClassesEnvironment, north: Stores
) -> None:
    gold = (await classes.look())[f"{REGION} gold"]
    labels = {**gold.metadata.labels, ORGANIZATION: ORG}
    await classes.api.store.update(changed(gold, metadata=changed(gold.metadata, labels=labels)))
    north.offered = [replace(GOLD, parallelism=16, name="au")]
    gold = (await classes.look())[f"{REGION} gold"]
    assert gold.spec.parallelism == 16
    assert (gold.metadata.labels[NAME], gold.metadata.labels[ORGANIZATION]) == ("au", ORG)


async def test_what_is_no_longer_offered_is_withdrawn_until_it_is_offered_again(
    classes: ClassesEnvironment, north: Stores
) -> None:
    north.offered = [GOLD, IRON]
    await classes.look()
    north.offered = [GOLD]
    found = await classes.look()
    assert [is_offered(found[f"{REGION} {name}"]) for name in ("gold", "iron")] == [True, False]
    assert is_offered(found[f"{OTHER_REGION} iron"])
    assert await classes.look() == found
    client = classes.api.ask(TENANT)
    listed = [each["metadata"]["name"] for each in (await client.get(CLASSES, [("regionID", REGION)])).json]
    assert listed == ["gold"]
    reply = await client.post(FILE_STORAGE, wanted(storageClassId=class_id(REGION, "iron")))
    assert rejection(reply) == (422, "storage class not found")
    north.offered = [IRON]
    found = await classes.look()
    assert [is_offered(found[f"{REGION} {name}"]) for name in ("gold", "iron")] == [False, True]


async def test_a_provider_that_does_not_answer_keeps_its_classes_and_nobody_elses_back(
    classes: ClassesEnvironment,
    north: Stores,
) -> None:
    north.error = Unavailable("It does not answer: try again.")
    assert set(await classes.look()) == {f"{OTHER_REGION} gold", f"{OTHER_REGION} iron"}
    north.error = None
    found = await classes.look()
    assert len(found) == 4
    north.error = Unavailable("It does not answer: try again.")
    assert await classes.look() == found


async def test_what_an_operator_wrote_is_left_alone(classes: ClassesEnvironment) -> None:
    metadata = Metadata(name=ABSENT, labels={NAME: "own", REGION_LABEL: REGION})
    spec = FileStorageClassSpec(provisioner="somebody", parallelism=-1)
    written = await classes.api.store.create(FileStorageClass(metadata=metadata, spec=spec))
    found = await classes.look()
    assert found[f"{REGION} {ABSENT}"] == written
    reply = await classes.api.ask(TENANT).get(CLASSES)
    (own,) = [each for each in reply.json if each["metadata"]["id"] == ABSENT]
    assert own["spec"] == {"regionId": REGION, "protocols": [], "parallelism": 4}


async def test_the_keeper_looks_again_now_and_then(classes: ClassesEnvironment, north: Stores) -> None:
    task = asyncio.create_task(classes.keeper.run())
    await classes.api.world.clock.sleep(1)
    assert len(north.asked) == 1
    await classes.api.world.clock.sleep(600)
    assert len(north.asked) == 3
    task.cancel()
    await asyncio.wait([task])


@options(at_work=False)
async def test_everybody_sees_classes_in_the_order_of_ids_but_those_of_organizations_only_who_may(
    region_storage: StorageEnvironment,
) -> None:
    await region_storage.keeper.sync()
    theirs, hidden = ("d0000000-0000-4000-8000-00000000000a", "d0000000-0000-4000-8000-00000000000b")
    for name, labels in (
        (theirs, {REGION_LABEL: REGION, ORGANIZATION: ORG}),
        (hidden, {REGION_LABEL: OTHER_REGION}),
    ):
        metadata = Metadata(name=name, labels={NAME: "special", **labels})
        await region_storage.store.create(
            FileStorageClass(metadata=metadata, spec=FileStorageClassSpec(provisioner="x"))
        )

    async def listed(who: Any, *query: tuple[str, str]) -> list[str]:
        reply = await region_storage.storages.ask(who).get(CLASSES, query)
        assert reply.status == 200, reply
        return [each["metadata"]["id"] for each in reply.json]

    public = sorted([STANDARD, FAST])
    assert await listed(member("eve@example.com", OTHER_ORG)) == public
    assert await listed(member("bob@example.com", ORG)) == public
    inside = member("pat@example.com", ORG, "region:filestorageclass:v2 R")
    assert await listed(inside) == sorted([*public, theirs])
    reader = everywhere("adm@example.com", "region:filestorageclass:v2 R, region:regions R")
    assert await listed(reader) == sorted([*public, theirs, hidden])
    assert await listed(reader, ("regionID", OTHER_REGION)) == [hidden]
    assert await listed(inside, ("regionID", OTHER_REGION)) == [], "the region is not there for them"
    assert await listed(reader, ("regionID", OTHER_REGION), ("regionID", REGION)) == sorted([*public, theirs, hidden])
    assert (await region_storage.storages.ask(None).get(CLASSES)).status == 401
    reply = await region_storage.storages.ask(inside).get(CLASSES)
    (fast,) = [each for each in reply.json if each["metadata"]["id"] == FAST]
    assert fast["spec"] == {"regionId": REGION, "protocols": ["nfsv4"], "parallelism": 8}
    assert fast["metadata"]["name"] == "sim-fast-files"
    assert (fast["metadata"]["provisioningStatus"], fast["metadata"]["healthStatus"]) == ("provisioned", "healthy")


async def test_storage_of_a_class_that_was_withdrawn_is_still_reconciled(region_storage: StorageEnvironment) -> None:
    await region_storage.keeper.sync()
    storage = await region_storage.make_storage(wanted())
    await region_storage.rest()
    found = await region_storage.store.get(FileStorageClass, STANDARD)
    annotations = {**found.metadata.annotations, "region.remuda/withdrawn": "2026-01-01T00:00:00+00:00"}
    await region_storage.store.update(changed(found, metadata=changed(found.metadata, annotations=annotations)))
    assert (
        await region_storage.storages.ask(TENANT).put(f"{FILE_STORAGE}/{storage}", update(sizeGiB=12))
    ).status == 202
    await region_storage.rest()
    assert (await region_storage.available(FileStorage, storage)).reason == "Provisioned"


def test_a_region_without_file_storage_is_not_valid_for_this() -> None:
    async def run(environment: RegionApi[FileStorageService]) -> None:
        await make_region(environment.store)
        reply = await environment.ask(TENANT).post(FILE_STORAGE, wanted())
        assert rejection(reply) == (400, "region is not valid for this endpoint")
        await StorageClassSync(environment.store, environment.service.providers, clock=environment.world.clock).sync()
        assert (await environment.ask(TENANT).get(CLASSES)).json == []

    def service(world: World, store: Store) -> FileStorageService:
        clouds = clouds_over(world, store, {REGION: FlavorProvider(world.clock).bare})
        identity = MemoryIdentity({ProjectRef(ORG, PROJECT)})
        return FileStorageService(store=store, clock=world.clock, identity=identity, providers=clouds, operations=None)  # type: ignore[arg-type]  # nothing is made

    run_region_api(service, api.ROUTES, run)
