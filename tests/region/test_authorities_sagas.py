"""The generic proofs on the making of an authority: at every failure and crash it is done, or was never begun."""

import pytest

from remuda.access.principal import Principal, requester_of
from remuda.quota.ports import ProjectRef
from remuda.quota.sagas import QuotaPorts
from remuda.region.authorities.sagas import CREATE_AUTHORITY, NewAuthority
from remuda.region.authorities.schema import AuthorityCreate, AuthorityCreateSpec
from remuda.region.kinds.authorities import SSHCertificateAuthority
from remuda.resources.schema import MetadataWrite
from remuda.store.contract import Store
from remuda.store.kinds import Registry
from tests.kit.proofs.sagas import Case, Proof, cases
from tests.kit.region.identity_port import MemoryIdentity
from tests.kit.region.network_requests import KEY
from tests.kit.region.resource_api import ORG, PROJECT, registry
from tests.kit.simulation.runner import World

HOME = ProjectRef(ORG, PROJECT)


class Home:
    """A project, and nothing in it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.registry: Registry = registry()
        self.identity = MemoryIdentity({HOME})

    async def prepare(self, store: Store) -> None:
        """Nothing has to be there."""

    def ports(self, store: Store) -> QuotaPorts:
        """Return what the steps work on."""
        return QuotaPorts(store=store, ledger=self.identity)

    async def observe(self, store: Store) -> object:
        """Return what there is, here and at identity, even what is only marked."""
        found = (await store.list(SSHCertificateAuthority)).items
        return [
            (each.name, each.spec, each.metadata.labels, each.metadata.finalizers, each.is_deleting) for each in found
        ], self.identity.everything()


def _wanted(authority: str) -> NewAuthority:
    spec = AuthorityCreateSpec(organization_id=ORG, project_id=PROJECT, public_key=KEY)
    requester = requester_of(Principal(subject="ann@example.com", type="user").with_payer(ORG, PROJECT))
    return NewAuthority(
        authority=authority,
        requested=AuthorityCreate(metadata=MetadataWrite(name="ca"), spec=spec),
        requester=requester,
    )


ONE, TWO = "d0000000-0000-4000-8000-000000000001", "d0000000-0000-4000-8000-000000000002"
PROOFS = [Proof(saga=CREATE_AUTHORITY, make_world=Home, input=_wanted(ONE), rival=_wanted(TWO))]
CASES = [case for proof in PROOFS for case in cases(proof)]
SAME = Proof(saga=CREATE_AUTHORITY, make_world=Home, input=_wanted(ONE))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_an_operation_ends_as_done_or_as_never_begun(case: Case) -> None:
    case.run()


@pytest.mark.parametrize("case", [case for case in cases(SAME) if "another" in case.name], ids=str)
def test_of_two_that_want_the_same_name_one_has_it_and_the_other_leaves_nothing(case: Case) -> None:
    case.run()
