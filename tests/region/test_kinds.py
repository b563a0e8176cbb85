"""What region stores: what keeps what, by what things are found, and what nobody gets to see."""

from collections.abc import Callable, Coroutine, Sequence
from datetime import UTC, datetime
from ipaddress import IPv4Address
from typing import Any

import pytest
from msgspec.structs import replace

from remuda.kernel.conditions import Condition
from remuda.kernel.errors import AlreadyExists
from remuda.reconcile.status import UNSETTLED
from remuda.region.kinds import KINDS
from remuda.region.kinds.authorities import SSHCertificateAuthority, SSHCertificateAuthoritySpec
from remuda.region.kinds.common import GIB, gib_of
from remuda.region.kinds.filestorage import Attachment, FileStorage, FileStorageSpec
from remuda.region.kinds.loadbalancers import BalancerListener, LoadBalancer, LoadBalancerSpec, Pool
from remuda.region.kinds.networks import (
    IDENTITY,
    NETWORK,
    Address,
    AddressSpec,
    Identity,
    IdentitySpec,
    Network,
    NetworkSpec,
    address_name,
    vlans_name,
)
from remuda.region.kinds.regions import RegionOrganization, RegionSecurity, RegionSpec
from remuda.region.kinds.securitygroups import SecurityGroup
from remuda.region.kinds.servers import PublicIpAllocation, Server, ServerGroup, ServerImage, ServerNetwork, ServerSpec
from remuda.resources.conventions import API_V2, API_VERSION, CONTROLLER_FINALIZER, is_api_v2
from remuda.store.kinds import Registry
from remuda.store.objects import IN_USE, Metadata, Resource
from remuda.store.sqlite.store import SqliteStore
from tests.kit.environment import provided_by
from tests.kit.simulation.runner import World, simulate
from tests.kit.simulation.store import open_simulated

REGISTRY = Registry(KINDS)
PUBLIC = (None, PublicIpAllocation(), PublicIpAllocation(enabled=True))


def server(name: str = "server", **changes: Any) -> Server:
    """Return a server on the network `network`."""
    spec = ServerSpec(flavor_id="flavor", image=ServerImage(id="old"), networks=(ServerNetwork(id="network"),))
    return Server(metadata=Metadata(name=name), spec=replace(spec, **changes))


def network(name: str = "network") -> Network:
    return Network(metadata=Metadata(name=name), spec=NetworkSpec(prefix="10.0.0.0/24", operation="making"))


def in_a_store(scenario: Callable[[SqliteStore], Coroutine[Any, Any, None]]) -> None:
    """Run a scenario on a store of region's kinds."""

    async def within(world: World) -> None:
        store = open_simulated(world, REGISTRY)
        await scenario(store)
        await store.close()

    simulate(within, seeds=1)


store = provided_by(in_a_store)


async def remove(store: SqliteStore, resource: Resource) -> Resource | None:
    """Ask for the deletion of a stored object; return it if something keeps it."""
    return await store.delete(type(resource), resource.name, uid=resource.uid)


AUTHORITY = SSHCertificateAuthority(
    metadata=Metadata(name="authority"), spec=SSHCertificateAuthoritySpec(public_key="ssh-ed25519 AAAA")
)
STORAGE = FileStorage(
    metadata=Metadata(name="storage"),
    spec=FileStorageSpec(storage_class_id="class", size=GIB, attachments=(Attachment(network_id="network"),)),
)
KEPT: dict[str, tuple[Resource, Resource]] = {
    "a network, by a server": (network(), server()),
    "a network, by file storage": (network(), STORAGE),
    "a security group": (
        SecurityGroup(metadata=Metadata(name="group")),
        server(networks=(), security_groups=(ServerGroup(id="group"),)),
    ),
    "an authority": (AUTHORITY, server(networks=(), ssh_certificate_authority_id="authority")),
}


@pytest.mark.parametrize("case", KEPT)
async def test_what_is_named_is_kept_until_nobody_names_it(store: SqliteStore, case: str) -> None:
    kept, holder = KEPT[case]
    target = await store.create(kept)
    user = await store.create(holder)
    marked = await remove(store, target)
    assert marked is not None
    assert marked.metadata.finalizers == (IN_USE,)
    assert [each.name for each in await store.referrers(type(kept), kept.name)] == [holder.name]
    assert await remove(store, user) is None
    assert (await store.list_names(type(kept))).items == []


async def test_m21_what_is_on_a_network_goes_with_it_and_the_network_goes_with_its_identity(store: SqliteStore) -> None:
    root = await store.create(Identity(metadata=Metadata(name="root"), spec=IdentitySpec(provider="simulated")))
    owned = replace(network(), metadata=Metadata(name="network", owner_references=(IDENTITY.owner(root),)))
    net = await store.create(owned)
    metadata = Metadata(name="on-it", owner_references=(NETWORK.owner(net),), finalizers=(CONTROLLER_FINALIZER,))
    await store.create(replace(server(), metadata=metadata))
    await store.create(SecurityGroup(metadata=replace(metadata, finalizers=())))
    assert await remove(store, root) is not None
    assert (await store.list_names(SecurityGroup)).items == []
    marked = await store.get(Server, "on-it")
    assert marked.is_deleting
    assert (await store.get(Network, "network")).is_deleting
    await store.update(replace(marked, metadata=replace(marked.metadata, finalizers=())))
    assert [(await store.list_names(kind)).items for kind in (Server, Network, Identity)] == [[], [], []]


def address(holder: Server, owner: Network) -> Address:
    name = address_name(owner.name, IPv4Address("10.0.0.7"))
    return Address(
        metadata=Metadata(name=name, owner_references=(NETWORK.owner(owner),)),
        spec=AddressSpec(ip="10.0.0.7", mac="02:00:0a:00:00:07", holder=holder.name, holder_uid=holder.uid),
    )


async def test_two_cannot_have_one_address_and_whose_it_is_can_be_found(store: SqliteStore) -> None:
    net = await store.create(network())
    one, two = await store.create(server("one")), await store.create(server("two"))
    made = await store.create(address(one, net))
    with pytest.raises(AlreadyExists):
        await store.create(address(two, net))
    assert made.name == "network.10-0-0-7"
    assert (await store.list_names(Address, index=("holder", "one"))).items == [made.name]
    assert (await store.list_names(Address, index=("holder", "two"))).items == []


async def test_an_address_outlives_the_request_to_delete_its_holder_but_not_its_network(store: SqliteStore) -> None:
    net = await store.create(network())
    wanted = server()
    held = await store.create(replace(wanted, metadata=replace(wanted.metadata, finalizers=(CONTROLLER_FINALIZER,))))
    made = await store.create(address(held, net))
    marked = await remove(store, held)
    assert marked is not None
    assert not (await store.get(Address, made.name)).is_deleting
    assert await remove(store, net) is not None
    assert (await store.list_names(Address)).items == []


async def test_a_server_is_at_rest_when_it_is_as_wanted_and_its_power_does_not_change(store: SqliteStore) -> None:
    async def is_unsettled() -> bool:
        return bool((await store.list_names(Server, index=UNSETTLED)).items)

    await store.create(network())
    made = await store.create(server())
    said = Condition(
        type="Available",
        status="True",
        reason="Provisioned",
        message="provisioned",
        last_transition_time=datetime(2030, 1, 1, tzinfo=UTC),
        observed_generation=made.metadata.generation,
    )
    for phase, expected in (("Building", True), ("Running", False), ("Stopping", True), ("Stopped", False)):
        made = await store.update_status(replace(made, status=replace(made.status, phase=phase, conditions=(said,))))
        assert await is_unsettled() is expected
    made = await store.update(replace(made, spec=replace(made.spec, image=ServerImage(id="new"))))
    assert await is_unsettled()


async def test_a_server_is_found_by_the_image_that_it_wants_and_by_the_one_that_it_has(store: SqliteStore) -> None:
    async def found(image: str) -> Sequence[str]:
        return (await store.list_names(Server, index=("image", image))).items

    await store.create(network())
    made = await store.create(server())
    assert await found("old") == ["server"]
    made = await store.update_status(replace(made, status=replace(made.status, image_id="old")))
    made = await store.update(replace(made, spec=replace(made.spec, image=ServerImage(id="new"))))
    assert [await found("old"), await found("new")] == [["server"], ["server"]]
    await store.update_status(replace(made, status=replace(made.status, image_id="new")))
    assert [await found("old"), await found("new")] == [[], ["server"]]


async def test_what_an_operation_made_is_found_by_it(store: SqliteStore) -> None:
    pool = Pool(members=())
    balancer = LoadBalancer(
        metadata=Metadata(name="balancer"),
        spec=LoadBalancerSpec(
            listeners=(BalancerListener(name="web", protocol="tcp", port=80, pool=pool),), operation="making"
        ),
    )
    storage = replace(STORAGE, spec=replace(STORAGE.spec, operation="making"))
    authority = replace(AUTHORITY, spec=replace(AUTHORITY.spec, operation="making"))
    root = Identity(metadata=Metadata(name="root"), spec=IdentitySpec(provider="simulated", operation="making"))
    some: list[Resource] = [network(), balancer, storage, authority, root, server(operation="making")]
    for each in (*some, server("other")):
        await store.create(each)
        found = await store.list_names(type(each), index=("operation", "making"))
        assert found.items == ["server" if isinstance(each, Server) else each.name]
        assert (await store.list_names(type(each), index=("operation", ""))).items == []


def test_only_what_the_api_that_we_have_made_is_shown() -> None:
    made = replace(network(), metadata=Metadata(name="network", labels={API_VERSION: API_V2}))
    assert is_api_v2(made)
    assert not is_api_v2(network())
    assert not is_api_v2(replace(network(), metadata=Metadata(name="network", labels={API_VERSION: "1"})))


def test_small_questions() -> None:
    assert [gib_of(size) for size in (GIB - 1, GIB, 3 * GIB + 1)] == [0, 1, 3]
    assert vlans_name("openstack", "north") == "openstack.north"
    assert [server(public_ip_allocation=each).spec.has_public_ip for each in PUBLIC] == [False, False, True]
    private = RegionSecurity(organizations=(RegionOrganization(id="acme"),))
    shown = [
        RegionSpec(provider="simulated", security=each).organizations for each in (None, RegionSecurity(), private)
    ]
    assert shown == [frozenset(), frozenset(), frozenset({"acme"})]
