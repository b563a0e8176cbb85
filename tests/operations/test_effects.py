"""A request with two effects outside an operation is found."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import msgspec
import pytest
from msgspec.structs import replace

from remuda.http.asgi import Message, Receive, Scope, Send
from remuda.kernel.errors import AlreadyExists
from remuda.operations.saga import BoundSaga
from remuda.operations.service import Operations
from remuda.store.contract import Store
from remuda.store.logs import Record
from remuda.store.objects import Metadata
from tests.kit.environment import options, provided_by
from tests.kit.proofs.effects import LoosePairError, Recorder, RecordingStore, effectful
from tests.kit.proofs.saga_environment import FIRST, SECOND, SagaEnvironment
from tests.kit.sample_farm.saga import PITCH, Camp, Outfit, Pitch, Tent, Woods, run_saga


class MarkedWoods(Woods):
    @effectful
    async def cut(self, name: str) -> None:
        await super().cut(name)

    async def count(self) -> int:
        return len(self.poles)


@dataclass
class Scene:
    environment: SagaEnvironment
    recorder: Recorder
    store: RecordingStore
    woods: MarkedWoods

    async def request(self, handler: Callable[["Scene"], Awaitable[None]]) -> None:
        async def app(_scope: Scope, _receive: Receive, _send: Send) -> None:
            await handler(self)

        async def receive() -> Message:
            return {"type": "http.disconnect"}

        async def send(_message: Message) -> None:
            pass

        await self.recorder.app(app)({"type": "http", "method": "POST", "path": "/tents"}, receive, send)

    def tent(self, name: str) -> Tent:
        return Tent(metadata=Metadata(name=name))


def watched(act: Callable[[Scene], Awaitable[None]], *, seeds: int = 1) -> None:
    async def on(sagas: SagaEnvironment) -> None:
        recorder = Recorder()
        woods = recorder.port("woods", MarkedWoods(), effectful=["put_back"])
        await act(Scene(sagas, recorder, recorder.store(sagas.store), woods))

    run_saga(on, seeds=seeds)


scene = provided_by(watched)


async def write_twice(scene: Scene) -> None:
    await scene.store.create(scene.tent("blue"))
    await scene.store.create(scene.tent("red"))


async def write_and_cut(scene: Scene) -> None:
    await scene.store.create(scene.tent("blue"))
    await scene.woods.cut("pole")


async def write_and_put_back(scene: Scene) -> None:
    await scene.store.create(scene.tent("blue"))
    await scene.woods.put_back("pole")


def operate(store: Store, scene: Scene) -> Operations:
    world = scene.environment.world
    bound = BoundSaga(PITCH, Outfit(store, scene.woods))
    return Operations(store, [bound], clock=world.clock, randomness=world.randomness)


async def pitch_and_write(scene: Scene) -> None:
    await operate(scene.store, scene).run(PITCH, id=FIRST, actor="ada", input=Pitch("blue"))
    await scene.store.create(scene.tent("red"))


async def pitch_twice(scene: Scene) -> None:
    operations = operate(scene.store, scene)
    await operations.run(PITCH, id=FIRST, actor="ada", input=Pitch("blue"))
    await operations.run(PITCH, id=SECOND, actor="ada", input=Pitch("red"))


@pytest.mark.parametrize("handler", [write_twice, write_and_cut, write_and_put_back, pitch_and_write, pitch_twice])
async def test_two_effects_of_one_request_are_found(scene: Scene, handler: Callable[[Scene], Awaitable[None]]) -> None:
    with pytest.raises(LoosePairError, match="#1 POST /tents"):
        await scene.request(handler)


async def write_once(scene: Scene) -> None:
    await scene.store.create(scene.tent("blue"))


async def write_once_and_log(scene: Scene) -> None:
    await scene.store.create(scene.tent("blue"))
    await scene.store.append([Record(stream="audit", subject="blue", data=msgspec.Raw(b"1"))])


async def write_once_after_a_rejection(scene: Scene) -> None:
    with pytest.raises(AlreadyExists):
        await scene.store.create(Camp(metadata=Metadata(name="camp")))
    await scene.store.create(scene.tent("blue"))


async def write_once_and_nothing(scene: Scene) -> None:
    tent = await scene.store.create(scene.tent("blue"))
    await scene.store.update(tent)
    assert await scene.woods.count() == 0


async def pitch_once(scene: Scene) -> None:
    await operate(scene.store, scene).run(PITCH, id=FIRST, actor="ada", input=Pitch("blue"))
    assert len(scene.recorder.effects) == 5, "two writes of the record, and an effect for each of three steps"


@pytest.mark.parametrize(
    "handler",
    [write_once, write_once_and_log, write_once_after_a_rejection, write_once_and_nothing, pitch_once],
)
async def test_one_effect_or_one_operation_is_fine(scene: Scene, handler: Callable[[Scene], Awaitable[None]]) -> None:
    await scene.request(handler)
    assert scene.recorder.effects


async def test_two_requests_have_an_effect_each_and_what_is_no_request_may_have_many(scene: Scene) -> None:
    await scene.request(write_once)
    camp = await scene.store.get(Camp, "camp")
    await scene.store.update(replace(camp, spec=replace(camp.spec, places=4)))
    await scene.store.create(scene.tent("red"))
    assert [effect.request for effect in scene.recorder.effects] == ["#1 POST /tents", None, None]


@options(seeds=6)
async def test_a_write_that_changes_nothing_hides_no_effect_of_others(scene: Scene) -> None:
    tent = await scene.environment.store.create(scene.tent("white"))

    async def write_nothing(_scene: Scene) -> None:
        await scene.store.update(tent)

    async def write_all_the_time() -> None:
        for number in range(5):
            await scene.store.create(scene.tent(f"tent-{number}"))

    await asyncio.gather(scene.request(write_nothing), write_all_the_time())
    assert [effect.what for effect in scene.recorder.effects] == ["create Tent"] * 5
