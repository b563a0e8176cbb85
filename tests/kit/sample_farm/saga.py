"""A saga to prove the drivers with: pitching a tent takes a place in the camp, a pole from the woods, and the tent.

The camp is the ledger, the woods are a provider with a memory of its own, the tent is the object.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import msgspec
from msgspec.structs import replace
from structlog.testing import capture_logs

from remuda.kernel.errors import AlreadyExists, Conflict, Forbidden, NotFound
from remuda.operations.kinds import OPERATION
from remuda.operations.saga import Saga, Step, Work
from remuda.store.contract import Store
from remuda.store.kinds import Kind, Registry
from remuda.store.objects import Metadata, Resource, StoredStruct
from tests.kit.proofs.saga_environment import Proof, SagaEnvironment, saga_environment
from tests.kit.simulation.runner import World, simulate

GROUP = "camp.remuda"


class CampSpec(StoredStruct, frozen=True):
    places: int = 0
    taken: tuple[str, ...] = ()
    """The operations that hold a place."""


class Camp(Resource, frozen=True):
    spec: CampSpec = CampSpec()


class TentSpec(StoredStruct, frozen=True):
    colour: str = ""
    operation: str = ""


class Tent(Resource, frozen=True):
    spec: TentSpec = TentSpec()


CAMP = Kind(type=Camp, group=GROUP, version="v1", plural="camps")
TENT = Kind(type=Tent, group=GROUP, version="v1", plural="tents")
KINDS = Registry([OPERATION, CAMP, TENT])


class Pitch(msgspec.Struct, frozen=True):
    tent: str
    colour: str = "white"


@dataclass
class Woods:
    """Remembers by itself which poles were cut, whatever becomes of the camp."""

    poles: set[str] = field(default_factory=set)

    async def cut(self, name: str) -> None:
        self.poles.add(name)

    async def put_back(self, name: str) -> None:
        self.poles.discard(name)


@dataclass(frozen=True)
class Outfit:
    store: Store
    woods: Woods


async def change_camp(store: Store, operation: str, *, takes: bool) -> None:
    while True:
        camp = await store.get(Camp, "camp")
        taken = tuple(each for each in camp.spec.taken if each != operation) + ((operation,) if takes else ())
        if takes and len(taken) > camp.spec.places:
            raise Forbidden("the camp is full: free a place first")
        try:
            await store.update(replace(camp, spec=replace(camp.spec, taken=taken)))
        except Conflict:
            continue
        return


async def take_place(outfit: Outfit, work: Work[Pitch]) -> None:
    await change_camp(outfit.store, work.id, takes=True)


async def free_place(outfit: Outfit, work: Work[Pitch]) -> None:
    await change_camp(outfit.store, work.id, takes=False)


async def cut_pole(outfit: Outfit, work: Work[Pitch]) -> None:
    await outfit.woods.cut(work.id)


async def put_pole_back(outfit: Outfit, work: Work[Pitch]) -> None:
    await outfit.woods.put_back(work.id)


async def pitch_tent(outfit: Outfit, work: Work[Pitch]) -> None:
    spec = TentSpec(colour=work.input.colour, operation=work.id)
    try:
        await outfit.store.create(Tent(metadata=Metadata(name=work.input.tent), spec=spec))
    except AlreadyExists:
        found = await outfit.store.get(Tent, work.input.tent)
        if found.spec.operation != work.id:
            raise


async def strike_tent(outfit: Outfit, work: Work[Pitch]) -> None:
    try:
        tent = await outfit.store.get(Tent, work.input.tent)
        if tent.spec.operation == work.id:
            await outfit.store.delete(Tent, tent.name, uid=tent.uid)
    except NotFound:
        return


PITCH = Saga(
    name="tent.pitch",
    input_type=Pitch,
    subject=lambda pitch: (TENT.qualified, pitch.tent),
    steps=(
        Step(name="take-place", do=take_place, undo=free_place),
        Step(name="cut-pole", do=cut_pole, undo=put_pole_back),
        Step(name="pitch-tent", do=pitch_tent, undo=strike_tent),
    ),
)


class CampSite:
    """The surroundings of the proof."""

    registry = KINDS

    def __init__(self, _world: World) -> None:
        self.woods = Woods()

    async def prepare(self, store: Store) -> None:
        await store.create(Camp(metadata=Metadata(name="camp"), spec=CampSpec(places=3)))

    def ports(self, store: Store) -> Outfit:
        return Outfit(store, self.woods)

    async def observe(self, store: Store) -> object:
        camp = await store.get(Camp, "camp")
        tents = [(tent.name, tent.spec) for tent in (await store.list(Tent)).items]
        return {"taken": sorted(camp.spec.taken), "tents": tents, "poles": sorted(self.woods.poles)}


PITCH_PROOF = Proof(saga=PITCH, make_world=CampSite, input=Pitch("blue"))


def run_saga(act: Callable[[SagaEnvironment], Awaitable[None]], *, seeds: int = 3) -> None:
    """Run a scenario of the toy saga."""

    async def scenario(world: World) -> None:
        async with saga_environment(world, PITCH_PROOF) as sagas:
            await act(sagas)

    with capture_logs():
        simulate(scenario, range(seeds))
