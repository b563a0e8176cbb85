"""File storage over HTTP: what may be asked for, in which order that is validated, and how it is told."""

from typing import Any

import pytest

from remuda.quota.ports import ChargeAmount, ProjectRef
from remuda.region.filestorage.routes import FILE_STORAGE
from remuda.region.kinds.common import GIB, IpRange
from remuda.region.kinds.filestorage import FileStorage, FileStorageClass, FileStorageClassSpec
from remuda.resources.conventions import (
    API_VERSION,
    CONTROLLER_FINALIZER,
    NAME,
    ORGANIZATION,
    PAYING_ORGANIZATION,
    PAYING_PROJECT,
)
from remuda.resources.conventions import PROJECT as PROJECT_LABEL
from remuda.resources.conventions import REGION as REGION_LABEL
from remuda.store.objects import Metadata
from tests.kit.environment import options
from tests.kit.region.filestorage_requests import (
    ALL,
    INSIDER,
    NOBODY,
    READER,
    STANDARD,
    STRANGER,
    forbidden,
    nothing_was_made,
    policy,
    spoil,
    wanted,
)
from tests.kit.region.resource_api import ORG, OTHER_ORG, OTHER_REGION, PROJECT, REGION, member, rejection
from tests.kit.region.storage import ABSENT, HOME, OTHER_PROJECT, TENANT, StorageEnvironment

PAYER = ProjectRef(OTHER_ORG, "b0000000-0000-4000-8000-00000000000b")
HOURLY = "hourly snapshot policies must not define timeOfDay, dayOfWeek, or dayOfMonth"
DAILY = "daily snapshot policies require timeOfDay and must not define dayOfWeek or dayOfMonth"
WEEKLY = "weekly snapshot policies require timeOfDay and dayOfWeek and must not define dayOfMonth"
MONTHLY = "monthly snapshot policies require timeOfDay and dayOfMonth and must not define dayOfWeek"


async def make_class(
    region_storage: StorageEnvironment, name: str, *, region: str = REGION, organization: str | None = None
) -> str:
    labels = {NAME: "files", REGION_LABEL: region} | ({ORGANIZATION: organization} if organization else {})
    spec = FileStorageClassSpec(provisioner="somebody", protocols=("nfsv4",))
    await region_storage.store.create(FileStorageClass(metadata=Metadata(name=name, labels=labels), spec=spec))
    return name


@options(at_work=False)
async def test_new_storage_is_pending_protected_and_attached_to_nothing(region_storage: StorageEnvironment) -> None:
    await region_storage.keeper.sync()
    client = region_storage.storages.ask(TENANT)
    reply = await client.post(FILE_STORAGE, wanted())
    assert reply.status == 201
    metadata = reply.json["metadata"]
    assert (metadata["provisioningStatus"], metadata["healthStatus"]) == ("pending", "unknown")
    assert (metadata["organizationId"], metadata["projectId"]) == (ORG, PROJECT)
    assert reply.json["spec"] == {
        "sizeGiB": 10,
        "storageType": {"NFS": {"rootSquash": True}},
        "attachments": {"networkIds": []},
        "defaultSnapshotProtectionEnabled": True,
        "snapshotPolicies": [],
    }
    assert reply.json["status"] == {"regionId": REGION, "storageClassId": STANDARD, "snapshotPolicies": []}
    read = await client.get(f"{FILE_STORAGE}/{metadata['id']}")
    assert (read.status, read.json) == (200, reply.json)
    stored = await region_storage.store.get(FileStorage, metadata["id"])
    assert stored.metadata.owner_references == ()
    assert CONTROLLER_FINALIZER in stored.metadata.finalizers
    labels = stored.metadata.labels
    assert (labels[ORGANIZATION], labels[PROJECT_LABEL], labels[REGION_LABEL]) == (ORG, PROJECT, REGION)
    assert API_VERSION not in labels
    (hidden,) = stored.spec.snapshot_policies
    assert (hidden.name, hidden.schedule.interval, hidden.schedule.time_of_day) == (
        "system-default",
        "daily",
        "04:00Z",
    )
    assert hidden.retention.keep == 7
    assert stored.spec.size == 10 * GIB
    assert region_storage.identity.references[HOME] == {f"filestorages.region.unikorn-cloud.org/{stored.name}"}
    assert ("POST", "filestorages", stored.name, 201) in await region_storage.audited()


async def test_what_is_asked_for_is_what_is_read_and_hidden_is_only_what_is_ours(
    region_storage: StorageEnvironment,
) -> None:
    await region_storage.keeper.sync()
    network = await region_storage.make_network()
    policies = [
        policy("a", interval="hourly"),
        policy("b"),
        policy("c", interval="weekly", timeOfDay="00:00Z", dayOfWeek="sunday"),
        policy("d", interval="monthly", timeOfDay="00:00Z", dayOfMonth=28),
    ]
    asked = {
        "storageType": {"NFS": {"rootSquash": False}},
        "snapshotPolicies": policies,
        "defaultSnapshotProtectionEnabled": True,
    }
    reply = await region_storage.storages.ask(TENANT).post(FILE_STORAGE, wanted(network, network, **asked))
    assert reply.status == 201
    spec = {name: reply.json["spec"][name] for name in asked}
    assert spec == asked
    assert reply.json["spec"]["attachments"] == {"networkIds": [network]}, "each network once"
    rows = reply.json["status"]["snapshotPolicies"]
    assert rows == [{"name": name, "provisioningStatus": "pending"} for name in "abcd"]
    assert reply.json["status"]["attachments"] == [{"networkId": network, "provisioningStatus": "pending"}]
    stored = await region_storage.store.get(FileStorage, reply.json["metadata"]["id"])
    assert len(stored.spec.snapshot_policies) == 5
    without = await region_storage.make_storage(wanted(defaultSnapshotProtectionEnabled=False))
    assert (await region_storage.store.get(FileStorage, without)).spec.snapshot_policies == ()


@pytest.mark.parametrize(
    ("spec", "status", "sentence"),
    [
        ({"sizeGiB": 0}, 422, "size must be greater or equal to 1GiB"),
        ({"sizeGiB": -1}, 422, "size must be greater or equal to 1GiB"),
        ({"sizeGiB": 1 << 23}, 422, "spec.sizeGiB is too large: request at most 8388607."),
        ({"regionId": ABSENT}, 422, "region does not exist"),
        ({"regionId": OTHER_REGION}, 422, "region does not exist"),
        ({"storageClassId": ABSENT}, 422, "storage class not found"),
        ({"storageClassId": "no/such class"}, 422, "storage class not found"),
        ({"attachments": {"networkIds": ["net"]}}, 422, "invalid network ID"),
        ({"attachments": {"networkIds": [f"{{{ABSENT}}}"]}}, 422, "invalid network ID"),
        ({"attachments": {"networkIds": [ABSENT]}}, 422, "network not found"),
        ({"snapshotPolicies": [policy(interval="hourly", timeOfDay="00:00Z")]}, 422, HOURLY),
        ({"snapshotPolicies": [policy(interval="hourly", dayOfMonth=1)]}, 422, HOURLY),
        ({"snapshotPolicies": [policy(interval="daily")]}, 422, DAILY),
        ({"snapshotPolicies": [policy(interval="daily", timeOfDay="00:00Z", dayOfMonth=1)]}, 422, DAILY),
        ({"snapshotPolicies": [policy(interval="weekly", timeOfDay="00:00Z")]}, 422, WEEKLY),
        ({"snapshotPolicies": [policy(interval="weekly", dayOfWeek="monday")]}, 422, WEEKLY),
        ({"snapshotPolicies": [policy(interval="monthly", timeOfDay="00:00Z", dayOfWeek="monday")]}, 422, MONTHLY),
        ({"snapshotPolicies": [policy("system-default")]}, 422, '"system-default" is a reserved snapshot policy name'),
        ({"snapshotPolicies": [policy(), policy()]}, 422, "snapshot policy names must be unique"),
    ],
)
@options(at_work=False)
async def test_what_no_storage_can_be_is_refused_and_makes_nothing(
    region_storage: StorageEnvironment, spec: dict[str, Any], status: int, sentence: str
) -> None:
    await region_storage.keeper.sync()
    reply = await region_storage.storages.ask(TENANT).post(FILE_STORAGE, wanted(**spec))
    assert rejection(reply) == (status, sentence)
    await nothing_was_made(region_storage)


@pytest.mark.parametrize(
    ("spec", "place"),
    [
        ({"defaultSnapshotProtectionEnabled": None}, "/spec/defaultSnapshotProtectionEnabled"),
        ({"snapshotPolicies": None}, "/spec/snapshotPolicies"),
        ({"attachments": None}, "/spec/attachments"),
        ({"attachments": {}}, "/spec/attachments"),
        ({"storageType": ...}, "/spec"),
        ({"storageType": {"NFS": {}}}, "/spec/storageType/NFS"),
        ({"sizeGiB": ...}, "/spec"),
        ({"sizeGiB": "10"}, "/spec/sizeGiB"),
        ({"regionId": "north"}, "/spec/regionId"),
        ({"organizationId": "o"}, "/spec/organizationId"),
        ({"projectId": "p"}, "/spec/projectId"),
        ({"snapshotPolicies": [policy(name) for name in "abcde"]}, "/spec/snapshotPolicies"),
        ({"snapshotPolicies": [policy("a" * 20)]}, "/spec/snapshotPolicies/0/name"),
        ({"snapshotPolicies": [policy("Nightly")]}, "/spec/snapshotPolicies/0/name"),
        ({"snapshotPolicies": [policy(keep=0)]}, "/spec/snapshotPolicies/0/retention/keep"),
        ({"snapshotPolicies": [policy(interval="daily", timeOfDay="24:00Z")]}, "/spec/snapshotPolicies/0/schedule"),
        ({"snapshotPolicies": [policy(interval="monthly", dayOfMonth=29)]}, "/spec/snapshotPolicies/0/schedule"),
        ({"snapshotPolicies": [policy(interval="yearly")]}, "/spec/snapshotPolicies/0/schedule"),
    ],
)
@options(at_work=False)
async def test_what_does_not_fit_the_schema_is_told_where(
    region_storage: StorageEnvironment, spec: dict[str, Any], place: str
) -> None:
    status, sentence = rejection(await region_storage.storages.ask(TENANT).post(FILE_STORAGE, wanted(**spec)))
    assert status == 400
    assert place in sentence
    await nothing_was_made(region_storage)


@options(at_work=False)
async def test_the_key_of_nfs_is_in_upper_case(region_storage: StorageEnvironment) -> None:
    await region_storage.keeper.sync()
    body = wanted(storageType={"nfs": {"rootSquash": False}})
    reply = await region_storage.storages.ask(TENANT).post(FILE_STORAGE, body)
    assert reply.json["spec"]["storageType"] == {"NFS": {"rootSquash": True}}, "the other one is nobody's"


@options(at_work=False)
async def test_the_order_is_project_size_region_class_attachments_policies(region_storage: StorageEnvironment) -> None:
    await region_storage.keeper.sync()
    bad: dict[str, Any] = {
        "projectId": ABSENT,
        "sizeGiB": 0,
        "regionId": ABSENT,
        "storageClassId": ABSENT,
        "attachments": {"networkIds": ["x"]},
        "snapshotPolicies": [policy("system-default")],
    }
    good = {"projectId": PROJECT, "sizeGiB": 1, "regionId": REGION, "storageClassId": STANDARD, "attachments": ...}
    told = []
    for field, repaired in good.items():
        told.append(rejection(await region_storage.storages.ask(TENANT).post(FILE_STORAGE, wanted(**bad))))
        bad[field] = repaired
    told.append(rejection(await region_storage.storages.ask(TENANT).post(FILE_STORAGE, wanted(**bad))))
    assert told == [
        (404, "resource not found"),
        (422, "size must be greater or equal to 1GiB"),
        (422, "region does not exist"),
        (422, "storage class not found"),
        (422, "invalid network ID"),
        (422, '"system-default" is a reserved snapshot policy name'),
    ]
    await nothing_was_made(region_storage)


@options(at_work=False)
async def test_only_those_make_storage_who_may(region_storage: StorageEnvironment) -> None:
    await region_storage.keeper.sync()
    assert rejection(await region_storage.storages.ask(READER).post(FILE_STORAGE, wanted())) == forbidden("create")
    assert rejection(await region_storage.storages.ask(NOBODY).post(FILE_STORAGE, wanted())) == forbidden("create")
    why = " — organization is not in this principal's accessible set"
    assert rejection(await region_storage.storages.ask(STRANGER).post(FILE_STORAGE, wanted())) == forbidden(
        "create", why
    )
    assert (await region_storage.storages.ask(None).post(FILE_STORAGE, wanted())).status == 401
    await nothing_was_made(region_storage)
    assert (await region_storage.storages.ask(INSIDER).post(FILE_STORAGE, wanted())).status == 201


@options(at_work=False)
async def test_a_class_of_another_region_or_organization_or_one_that_is_withdrawn_is_refused(
    region_storage: StorageEnvironment,
) -> None:
    names = [f"d0000000-0000-4000-8000-00000000000{number}" for number in range(3)]
    elsewhere = await make_class(region_storage, names[0], region=OTHER_REGION)
    theirs = await make_class(region_storage, names[1], organization=OTHER_ORG)
    ours = await make_class(region_storage, names[2], organization=ORG)
    client = region_storage.storages.ask(TENANT)
    reply = await client.post(FILE_STORAGE, wanted(storageClassId=elsewhere))
    assert rejection(reply) == (422, "storage class not available in region")
    reply = await client.post(FILE_STORAGE, wanted(storageClassId=theirs))
    why = " — organization is not in this principal's accessible set"
    assert rejection(reply) == forbidden("read", why, "filestorageclass:v2")
    reply = await client.post(FILE_STORAGE, wanted(storageClassId=ours))
    assert rejection(reply) == forbidden("read", " is not permitted", "filestorageclass:v2")
    await nothing_was_made(region_storage)
    allowed = region_storage.storages.ask(member("cho@example.com", ORG, f"{ALL}, region:filestorageclass:v2 R"))
    assert (await allowed.post(FILE_STORAGE, wanted(storageClassId=ours))).status == 201


async def test_a_network_has_to_be_of_the_same_project_and_provisioned_with_a_storage_range(
    region_storage: StorageEnvironment,
) -> None:
    await region_storage.keeper.sync()

    async def told(network: str, who: Any = TENANT) -> tuple[int, str]:
        return rejection(await region_storage.storages.ask(who).post(FILE_STORAGE, wanted(network)))

    other = await region_storage.make_network(projectId=OTHER_PROJECT)
    assert await told(other) == (422, "network not available in project")
    blind = member("tim@example.com", ORG, ALL)
    assert await told(other, blind) == (422, "network not found"), "who may not read it does not hear of it"
    whole = await region_storage.make_network(reservations={"prefixLength": 26, "providerReservedPrefixLength": 26})
    assert await told(whole) == (422, "network requested does not have a storage range configured")
    network = await region_storage.make_network()
    for start, end, sentence in (
        ("x", "10.0.0.9", "network storage range is not a valid IPv4 range"),
        ("::1", "::2", "network storage range is not a valid IPv4 range"),
        ("10.0.0.9", "10.0.0.8", "network storage range does not contain any usable addresses"),
    ):
        await spoil(region_storage, network, storage_range=IpRange(start_ip=start, end_ip=end))
        assert await told(network) == (422, sentence)
    await spoil(region_storage, network)
    assert await told(network) == (422, "network requested is not a suitable network")
    await nothing_was_made(region_storage)


@options(at_work=False)
async def test_a_network_that_is_not_there_yet_is_not_attached_to(region_storage: StorageEnvironment) -> None:
    await region_storage.keeper.sync()
    network = await region_storage.make_network()
    reply = await region_storage.storages.ask(TENANT).post(FILE_STORAGE, wanted(network))
    assert rejection(reply) == (422, "network not provisioned")
    await nothing_was_made(region_storage)


@options(at_work=False, limits={"filestorage": 10 * GIB})
async def test_quota_is_held_in_bytes_for_whoever_pays_and_refused_in_words(region_storage: StorageEnvironment) -> None:
    await region_storage.keeper.sync()
    region_storage.identity.add(PAYER)
    service = member("unikorn-thing", ORG, ALL).with_payer(PAYER.organization, PAYER.project)
    paid = await region_storage.make_storage(wanted(), service)
    stored = await region_storage.store.get(FileStorage, paid)
    labels = stored.metadata.labels
    assert (labels[PAYING_ORGANIZATION], labels[PAYING_PROJECT]) == (PAYER.organization, PAYER.project)
    (held,) = region_storage.identity.held.values()
    assert (held.payer, held.kind, held.id) == (PAYER, "filestorages.region.unikorn-cloud.org", paid)
    assert held.amounts == (ChargeAmount("filestorage", 10 * GIB),)
    reply = await region_storage.storages.ask(TENANT).post(FILE_STORAGE, wanted(sizeGiB=11))
    sentence = f"total filestorage allocation of {11 * GIB} would exceed quota limit of {10 * GIB}"
    assert rejection(reply) == (403, sentence)
    assert [each.name for each in (await region_storage.store.list(FileStorage)).items] == [paid]
    assert HOME not in [place for place, _ in region_storage.identity.held]


@options(at_work=False)
async def test_a_request_that_comes_again_under_its_key_makes_one(region_storage: StorageEnvironment) -> None:
    await region_storage.keeper.sync()
    client = region_storage.storages.ask(TENANT)
    for verb in ("add_reference", "allocate"):
        region_storage.identity.fail(verb, after=True)
        assert (await client.post(FILE_STORAGE, wanted(), idempotency_key=verb)).status == 503
        await nothing_was_made(region_storage)
    first = await client.post(FILE_STORAGE, wanted(), idempotency_key="refer")
    again = await client.post(FILE_STORAGE, wanted(), idempotency_key="refer")
    assert (first.status, first.json) == (201, again.json)
    assert len((await region_storage.store.list(FileStorage)).items) == 1
    assert region_storage.identity.total("filestorage", HOME) == 10 * GIB
    assert len(region_storage.identity.references[HOME]) == 1
