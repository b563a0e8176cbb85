"""The generic proofs on the making of a network: at every failure and every crash it is done, or was never begun."""

import pytest

from remuda.access.principal import Principal, requester_of
from remuda.quota.ports import ProjectRef
from remuda.quota.sagas import QuotaPorts
from remuda.region.kinds.networks import Identity, Network
from remuda.region.networks.sagas import CREATE_NETWORK, NewNetwork
from remuda.region.networks.schema import NetworkCreate, NetworkCreateSpec
from remuda.resources.schema import MetadataWrite
from remuda.store.contract import Store
from remuda.store.kinds import Registry
from tests.kit.proofs.sagas import Case, Proof, cases
from tests.kit.region.identity_port import MemoryIdentity
from tests.kit.region.resource_api import ORG, OTHER_ORG, PROJECT, REGION, registry
from tests.kit.simulation.runner import World

OTHER_PROJECT = "b0000000-0000-4000-8000-00000000000b"
PAYER = ProjectRef(OTHER_ORG, OTHER_PROJECT)
REQUESTER = requester_of(
    Principal(subject="ann@example.com", type="user").with_payer(PAYER.organization, PAYER.project)
)


class Country:
    """A project, one that pays for others, and nothing in either."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.registry: Registry = registry()
        self.identity = MemoryIdentity({ProjectRef(ORG, PROJECT), PAYER}, limits={"networks": 2})

    async def prepare(self, store: Store) -> None:
        """Nothing has to be there."""

    def ports(self, store: Store) -> QuotaPorts:
        """Return what the steps work on."""
        return QuotaPorts(store=store, ledger=self.identity)

    async def observe(self, store: Store) -> object:
        """Return what there is, here and at identity, even what is only marked."""
        identities = (await store.list(Identity)).items
        networks = (await store.list(Network)).items
        return (
            [(each.name, each.spec, each.metadata.labels, each.is_deleting) for each in identities],
            [
                (each.name, each.spec, each.metadata.labels, each.metadata.finalizers, each.is_deleting)
                for each in networks
            ],
            [[owner.name for owner in each.metadata.owner_references] for each in networks],
            self.identity.everything(),
        )


def _wanted(network: str, prefix: str) -> NewNetwork:
    spec = NetworkCreateSpec(
        organization_id=ORG, project_id=PROJECT, region_id=REGION, prefix=prefix, dns_nameservers=("8.8.8.8",)
    )
    wanted = NetworkCreate(metadata=MetadataWrite(name="net"), spec=spec)
    return NewNetwork(network=network, requested=wanted, provider="simulated", requester=REQUESTER)


ONE, TWO = "d0000000-0000-4000-8000-000000000001", "d0000000-0000-4000-8000-000000000002"
PROOFS = [
    Proof(saga=CREATE_NETWORK, make_world=Country, input=_wanted(ONE, "10.0.0.0/24"), rival=_wanted(TWO, "10.0.0.0/16"))
]
CASES = [case for proof in PROOFS for case in cases(proof)]
SAME = Proof(saga=CREATE_NETWORK, make_world=Country, input=_wanted(ONE, "10.0.0.0/24"))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_m26_an_operation_ends_as_done_or_as_never_begun(case: Case) -> None:
    case.run()


@pytest.mark.parametrize("case", [case for case in cases(SAME) if "another" in case.name], ids=str)
def test_of_two_that_want_the_same_name_one_has_it_and_the_other_leaves_nothing(case: Case) -> None:
    case.run()
