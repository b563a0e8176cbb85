"""What a record keeps of its input: nothing that is secret, unless it is sealed."""

from dataclasses import replace

import msgspec
import pytest

from remuda.kernel.errors import KeyReused
from remuda.kernel.secrets import Secret
from remuda.operations.kinds import Operation
from remuda.operations.saga import Saga, Step, Work, read_input, stored_input
from tests.kit.proofs.saga_environment import FIRST, SagaEnvironment
from tests.kit.sample_farm.saga import TENT, Outfit

WORD = Secret("hunter2")


class Whisper(msgspec.Struct, frozen=True):
    tent: str
    word: Secret


async def say(ports: Outfit, work: Work[Whisper]) -> None:
    if work.input.word == WORD:
        await ports.woods.cut(work.id)


async def roll_back(ports: Outfit, work: Work[Whisper]) -> None:
    await ports.woods.put_back(work.id)


WHISPER: Saga[Outfit, Whisper] = Saga(
    name="tent.whisper",
    input_type=Whisper,
    subject=lambda whisper: (TENT.qualified, whisper.tent),
    steps=(Step(name="say", do=say, undo=roll_back),),
    has_secret=True,
)


async def test_an_input_that_holds_a_secret_is_sealed_and_read_back(sagas: SagaEnvironment) -> None:
    done = await sagas.start(WHISPER).operations.run(WHISPER, id=FIRST, actor="ada", input=Whisper("blue", WORD))
    assert done.spec.input == ""
    found = await sagas.store.get(Operation, FIRST)
    assert read_input(WHISPER, found.spec) == Whisper("blue", WORD)
    raw = b"".join(path.read_bytes() for path in sagas.world.disk.directory.rglob("*") if path.is_file())
    assert b"hunter2" not in raw
    assert b"tent.whisper" in raw, "the record is among what was looked at"


async def test_the_same_secret_is_the_same_request_and_another_one_is_not(sagas: SagaEnvironment) -> None:
    operations = sagas.start(WHISPER).operations
    first = await operations.run(WHISPER, id=FIRST, actor="ada", input=Whisper("blue", WORD))
    again = await operations.run(WHISPER, id=FIRST, actor="ada", input=Whisper("blue", WORD))
    assert again.uid == first.uid
    with pytest.raises(KeyReused):
        await operations.run(WHISPER, id=FIRST, actor="ada", input=Whisper("blue", Secret("hunter3")))


def test_a_secret_that_nobody_declared_is_not_stored() -> None:
    careless = replace(WHISPER, has_secret=False)
    with pytest.raises(TypeError, match="Secret"):
        stored_input(careless, Whisper("blue", WORD))
