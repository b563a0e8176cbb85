"""The generic proofs on every saga of the example service."""

import pytest

from remuda.operations.saga import Sagas
from remuda.store.contract import Store
from tests.example.app import registry
from tests.example.kinds import Ledger, Mount, Stall
from tests.example.rules import new_yard
from tests.example.sagas import CREATE_MOUNT, MountPorts, NewMount
from tests.example.stalls import Stalls
from tests.example.wire import MetadataWrite, YardSpecWire, YardWrite
from tests.kit.proofs.sagas import Case, Proof, assert_all_proven, cases
from tests.kit.simulation.runner import World

YARD_ID = "c0000000-0000-4000-8000-00000000000a"


class Surroundings:
    """A yard with three stalls."""

    registry = registry()

    def __init__(self, world: World) -> None:
        self._clock = world.clock

    async def prepare(self, store: Store) -> None:
        """Make the yard, and its ledger: that one is no operation's to remove."""
        wanted = YardWrite(metadata=MetadataWrite(name="yard"), spec=YardSpecWire(stalls=3))
        yard = await store.create(new_yard(YARD_ID, "organization", "project", wanted, creator="me"))
        await Stalls(store, self._clock).set_limit(yard)

    def ports(self, store: Store) -> MountPorts:
        """Return what the steps work on."""
        return MountPorts(store, Stalls(store, self._clock))

    async def observe(self, store: Store) -> object:
        """Return all that counts: released rows are tombstones."""
        head = (await store.get(Ledger, YARD_ID)).spec
        rows = [(row.name, row.spec.life) for row in (await store.list(Stall)).items if row.spec.life != "released"]
        mounts = [(mount.name, mount.spec) for mount in (await store.list(Mount)).items]
        return {
            "used": head.used,
            "intents": sorted(each.operation for each in head.intents),
            "rows": rows,
            "m": mounts,
        }


PROOFS = [
    Proof(
        saga=CREATE_MOUNT,
        make_world=Surroundings,
        input=NewMount(yard=YARD_ID, name="bella", breed="mule", paddock="home"),
        rival=NewMount(yard=YARD_ID, name="bella", breed="mustang", paddock="north"),
    )
]


@pytest.mark.parametrize("case", [case for proof in PROOFS for case in cases(proof)], ids=str)
def test_an_operation_ends_as_done_or_as_never_begun(case: Case) -> None:
    case.run()


def test_every_saga_is_proven() -> None:
    assert_all_proven(Sagas([CREATE_MOUNT]), PROOFS)
