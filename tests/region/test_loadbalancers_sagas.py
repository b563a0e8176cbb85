"""The generic proofs on the making and changing of a load balancer: at every failure it is done, or was never begun."""

from datetime import UTC, datetime

import msgspec
import pytest

from remuda.access.principal import Principal, requester_of
from remuda.operations.saga import Sagas
from remuda.quota.lock import previous_state
from remuda.quota.ports import ProjectRef
from remuda.quota.sagas import QuotaPorts
from remuda.region.kinds.loadbalancers import LoadBalancer, LoadBalancerSpec
from remuda.region.kinds.networks import Network, NetworkSpec
from remuda.region.loadbalancers import rules
from remuda.region.loadbalancers.rules import charge_of
from remuda.region.loadbalancers.sagas import (
    CREATE_BALANCER,
    SAGAS,
    UPDATE_BALANCER,
    ChangedBalancer,
    NewBalancer,
)
from remuda.region.loadbalancers.schema import (
    BalancerCreate,
    BalancerCreateSpec,
    BalancerSpecWire,
    BalancerUpdate,
    ListenerWire,
    PoolWire,
)
from remuda.resources.conventions import API_VERSION, NAME, ORGANIZATION
from remuda.resources.conventions import IDENTITY as IDENTITY_LABEL
from remuda.resources.conventions import PROJECT as PROJECT_LABEL
from remuda.resources.conventions import REGION as REGION_LABEL
from remuda.resources.schema import MetadataWrite
from remuda.store.contract import Store
from remuda.store.kinds import Registry
from remuda.store.objects import Metadata
from tests.kit.proofs.sagas import Case, Proof, assert_all_proven, cases
from tests.kit.region.identity_port import MemoryIdentity, said_of
from tests.kit.region.resource_api import ORG, OTHER_ORG, PROJECT, REGION, registry
from tests.kit.simulation.runner import World

OTHER_PROJECT = "b0000000-0000-4000-8000-00000000000b"
PAYER = ProjectRef(OTHER_ORG, OTHER_PROJECT)
ANN = Principal(subject="ann@example.com", type="user").with_payer(PAYER.organization, PAYER.project)
NETWORK = "e0000000-0000-4000-8000-000000000001"
IDENTITY = "e0000000-0000-4000-8000-000000000002"
ONE, TWO = "d0000000-0000-4000-8000-000000000001", "d0000000-0000-4000-8000-000000000002"
WEB = ListenerWire(name="web", protocol="tcp", port=80, pool=PoolWire(members=()))
DNS = ListenerWire(name="dns", protocol="udp", port=53, pool=PoolWire(members=()))
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


class Country:
    """A network, and a project that pays for what is on it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.registry: Registry = registry()
        self.identity = MemoryIdentity({ProjectRef(ORG, PROJECT), PAYER}, limits={"loadbalancers": 2, "publicips": 2})

    async def prepare(self, store: Store) -> None:
        """Make the network."""
        where = {ORGANIZATION: ORG, PROJECT_LABEL: PROJECT, REGION_LABEL: REGION, IDENTITY_LABEL: IDENTITY}
        metadata = Metadata(name=NETWORK, labels={**where, NAME: "net", API_VERSION: "2"})
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
                    [owner.name for owner in each.metadata.owner_references],
                )
                for each in (await store.list(LoadBalancer)).items
            ],
            self.identity.everything(),
        )


class Settled(Country):
    """The same, with a load balancer that has no public address."""

    def __init__(self, world: World, *, is_public: bool = False) -> None:
        super().__init__(world)
        self._wanted = _wanted(ONE, is_public=is_public).requested

    async def prepare(self, store: Store) -> None:
        """Make it, and hold what it costs."""
        await super().prepare(store)
        network = await store.get(Network, NETWORK)
        made = await store.create(rules.new_balancer(ONE, self._wanted, network, ANN, operation=TWO))
        await self.identity.allocate(charge_of(made))


def _wanted(balancer: str, *, is_public: bool) -> NewBalancer:
    spec = BalancerCreateSpec(network_id=NETWORK, public_ip=is_public, listeners=(WEB,))
    return NewBalancer(
        balancer=balancer,
        requested=BalancerCreate(metadata=MetadataWrite(name="lb"), spec=spec),
        requester=requester_of(ANN),
    )


def _validated(*, is_public: bool) -> LoadBalancer:
    """Return the load balancer as it stands to begin with."""
    home = {ORGANIZATION: ORG, PROJECT_LABEL: PROJECT, REGION_LABEL: REGION, IDENTITY_LABEL: IDENTITY}
    network = Network(metadata=Metadata(name=NETWORK, labels=home), spec=NetworkSpec(prefix="10.0.0.0/24"))
    return rules.new_balancer(ONE, _wanted(ONE, is_public=is_public).requested, network, ANN, operation=TWO)


def _changed(name: str, *listeners: ListenerWire, is_public: bool) -> ChangedBalancer:
    wanted = BalancerUpdate(
        metadata=MetadataWrite(name=name), spec=BalancerSpecWire(public_ip=is_public, listeners=listeners)
    )
    return ChangedBalancer(
        id=ONE,
        previous=previous_state(_validated(is_public=not is_public)),
        requested=wanted,
        requester=requester_of(ANN),
        requested_at=NOW,
    )


PROOFS = [
    Proof(
        saga=CREATE_BALANCER,
        make_world=Country,
        input=_wanted(ONE, is_public=True),
        rival=_wanted(TWO, is_public=False),
    ),
    Proof(
        saga=UPDATE_BALANCER,
        make_world=Settled,
        input=_changed("public", WEB, DNS, is_public=True),
        rival=_changed("other", DNS, is_public=True),
    ),
    Proof(
        saga=UPDATE_BALANCER,
        make_world=lambda world: Settled(world, is_public=True),
        input=_changed("private", WEB, is_public=False),
    ),
]
SAME = Proof(saga=CREATE_BALANCER, make_world=Country, input=_wanted(ONE, is_public=True))


@pytest.mark.parametrize("case", [case for proof in PROOFS for case in cases(proof)], ids=str)
def test_an_operation_ends_as_done_or_as_never_begun(case: Case) -> None:
    case.run()


@pytest.mark.parametrize("case", [case for case in cases(SAME) if "another" in case.name], ids=str)
def test_of_two_that_want_the_same_name_one_has_it_and_the_other_leaves_nothing(case: Case) -> None:
    case.run()


def test_every_saga_is_proven() -> None:
    assert_all_proven(Sagas(SAGAS), PROOFS)


def test_what_an_operation_remembers_of_a_change_can_be_read_again() -> None:
    change = _changed("public", WEB, DNS, is_public=True)
    again = msgspec.json.decode(msgspec.json.encode(change), type=ChangedBalancer)
    assert again == change
    assert isinstance(again.previous.spec, LoadBalancerSpec)
