"""The generic proofs on the making and resizing of file storage: at every failure it is done, or was never begun."""

from datetime import UTC, datetime

import msgspec
import pytest

from remuda.access.principal import Principal, requester_of
from remuda.operations.saga import Sagas, Work
from remuda.quota.lock import LOCK, previous_state
from remuda.quota.ports import ProjectRef
from remuda.quota.sagas import QuotaPorts
from remuda.region.filestorage import rules
from remuda.region.filestorage.rules import charge_of
from remuda.region.filestorage.sagas import (
    CREATE_STORAGE,
    SAGAS,
    UPDATE_STORAGE,
    ChangedStorage,
    NewStorage,
    Resized,
)
from remuda.region.filestorage.schema import (
    AttachmentsWire,
    PolicyWire,
    RetentionWire,
    ScheduleWire,
    StorageCreate,
    StorageCreateSpec,
    StorageSpecWire,
    StorageTypeWire,
    StorageUpdate,
)
from remuda.region.kinds.common import GIB, IpRange
from remuda.region.kinds.filestorage import Attachment, FileStorage, FileStorageSpec
from remuda.region.kinds.networks import Network, NetworkSpec
from remuda.resources.conventions import NAME
from remuda.resources.schema import MetadataWrite
from remuda.store.contract import Store
from remuda.store.kinds import Registry
from remuda.store.objects import Metadata
from tests.kit.environment import options
from tests.kit.proofs.saga_environment import FIRST, saga_environment
from tests.kit.proofs.sagas import Case, Proof, assert_all_proven, cases
from tests.kit.region.identity_port import MemoryIdentity, said_of
from tests.kit.region.resource_api import ORG, OTHER_ORG, PROJECT, REGION, registry
from tests.kit.simulation.runner import World

PAYER = ProjectRef(OTHER_ORG, "b0000000-0000-4000-8000-00000000000b")
ANN = Principal(subject="ann@example.com", type="user").with_payer(PAYER.organization, PAYER.project)
NETWORK, CLASS = "e0000000-0000-4000-8000-000000000001", "e0000000-0000-4000-8000-000000000002"
ONE, TWO = "d0000000-0000-4000-8000-000000000001", "d0000000-0000-4000-8000-000000000002"
ATTACHED = Attachment(network_id=NETWORK, ip_range=IpRange(start_ip="10.0.0.16", end_ip="10.0.0.19"))
HOURLY = PolicyWire(name="often", schedule=ScheduleWire(interval="hourly"), retention=RetentionWire(keep=3))
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


class Country:
    """A project, one that pays for others, and a network."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.registry: Registry = registry()
        self.identity = MemoryIdentity({ProjectRef(ORG, PROJECT), PAYER}, limits={"filestorage": 20 * GIB})

    async def prepare(self, store: Store) -> None:
        """Make the network."""
        metadata = Metadata(name=NETWORK, labels={NAME: "net"})
        await store.create(Network(metadata=metadata, spec=NetworkSpec(prefix="10.0.0.0/24")))

    def ports(self, store: Store) -> QuotaPorts:
        """Return what the steps work on."""
        return QuotaPorts(store=store, ledger=self.identity)

    async def observe(self, store: Store) -> object:
        """Return what there is, here and at identity, even what is only marked; whose hand it was in is left out."""
        return (
            [
                (
                    each.name,
                    each.spec,
                    each.metadata.labels,
                    said_of(each),
                    each.metadata.finalizers,
                    each.is_deleting,
                )
                for each in (await store.list(FileStorage)).items
            ],
            self.identity.everything(),
        )


class Settled(Country):
    """The same, with file storage of five GiB that is attached to the network."""

    async def prepare(self, store: Store) -> None:
        """Make it, and hold what it costs."""
        await super().prepare(store)
        made = await store.create(_stored())
        await self.identity.allocate(charge_of(made))


def _wanted(storage: str, size: int) -> NewStorage:
    spec = StorageCreateSpec(
        organization_id=ORG,
        project_id=PROJECT,
        region_id=REGION,
        storage_class_id=CLASS,
        size_gib=size,
        storage_type=StorageTypeWire(),
        attachments=AttachmentsWire(network_ids=(NETWORK,)),
        snapshot_policies=(HOURLY,),
    )
    wanted = StorageCreate(metadata=MetadataWrite(name="files"), spec=spec)
    return NewStorage(storage=storage, requested=wanted, attachments=(ATTACHED,), requester=requester_of(ANN))


def _stored() -> FileStorage:
    new = _wanted(ONE, 5)
    return rules.new_storage(new.storage, new.requested, new.attachments, ANN, operation=TWO)


def _changed(name: str, size: int, *attachments: Attachment) -> ChangedStorage:
    update = StorageUpdate(
        metadata=MetadataWrite(name=name), spec=StorageSpecWire(size_gib=size, storage_type=StorageTypeWire())
    )
    wanted = Resized(update=update, attachments=attachments)
    return ChangedStorage(
        id=ONE, previous=previous_state(_stored()), requested=wanted, requester=requester_of(ANN), requested_at=NOW
    )


PROOFS = [
    Proof(saga=CREATE_STORAGE, make_world=Country, input=_wanted(ONE, 5), rival=_wanted(TWO, 10)),
    Proof(saga=UPDATE_STORAGE, make_world=Settled, input=_changed("larger", 15), rival=_changed("largest", 20)),
    Proof(saga=UPDATE_STORAGE, make_world=Settled, input=_changed("smaller", 1, ATTACHED)),
]
SAME = Proof(saga=CREATE_STORAGE, make_world=Country, input=_wanted(ONE, 5))


@pytest.mark.parametrize("case", [case for proof in PROOFS for case in cases(proof)], ids=str)
def test_an_operation_ends_as_done_or_as_never_begun(case: Case) -> None:
    case.run()


@pytest.mark.parametrize("case", [case for case in cases(SAME) if "another" in case.name], ids=str)
def test_of_two_that_want_the_same_name_one_has_it_and_the_other_leaves_nothing(case: Case) -> None:
    case.run()


def test_every_saga_is_proven() -> None:
    assert_all_proven(Sagas(SAGAS), PROOFS)


def test_what_an_operation_remembers_can_be_read_again() -> None:
    for wanted in (_changed("larger", 15, ATTACHED), _wanted(ONE, 5)):
        assert msgspec.json.decode(msgspec.json.encode(wanted), type=type(wanted)) == wanted
    again = msgspec.json.decode(msgspec.json.encode(_changed("larger", 15)), type=ChangedStorage)
    assert isinstance(again.previous.spec, FileStorageSpec)
    assert again.requested.update.spec.snapshot_policies is msgspec.UNSET


@options(seeds=1)
async def test_what_named_a_network_that_has_gone_meanwhile_stays_as_it_was_changed_to_and_costs_that(
    world: World,
) -> None:
    async with saga_environment(world, PROOFS[1]) as sagas:
        country, process = sagas.surroundings, sagas.start()
        assert isinstance(country, Settled)
        change = _changed("larger", 15)
        saga = UPDATE_STORAGE
        work = Work(FIRST, change, "prover")
        for step in saga.steps[:3]:
            await step.do(country.ports(process.store), work)
        network = await sagas.store.get(Network, NETWORK)
        await sagas.store.delete(Network, NETWORK, uid=network.uid)
        for step in reversed(saga.steps):
            await step.undo(country.ports(process.store), work)
        stored = await sagas.store.get(FileStorage, ONE)
        assert (stored.spec.size, stored.spec.attachments) == (15 * GIB, ())
        assert country.identity.total("filestorage", PAYER) == 15 * GIB
        assert LOCK not in stored.metadata.annotations


@options(seeds=1)
async def test_a_project_that_is_being_deleted_takes_no_new_storage_and_keeps_nothing_of_it(world: World) -> None:
    async with saga_environment(world, PROOFS[0]) as sagas:
        country, process = sagas.surroundings, sagas.start()
        assert isinstance(country, Country)
        country.identity.references[ProjectRef(ORG, PROJECT)].add("something/else")
        country.identity.mark(ProjectRef(ORG, PROJECT))
        before = await sagas.observe()
        error = await process.try_to_run()
        assert str(error) == "unable to add reference, resource is being deleted"
        assert await sagas.observe() == before
