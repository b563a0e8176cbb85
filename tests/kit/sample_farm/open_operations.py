"""Operations as a process leaves them that died right after it began them."""

from datetime import timedelta

from remuda.operations.kinds import Operation, OperationSpec
from remuda.store.objects import Metadata
from tests.kit.proofs.saga_environment import SETTINGS, SagaEnvironment
from tests.kit.sample_farm.saga import PITCH, TENT


def left_open(sagas: SagaEnvironment, name: str, *, saga: str = PITCH.name, text: str = '{"tent":"blue"}') -> Operation:
    """Return a record as a process that died right after writing it has left it."""
    spec = OperationSpec(
        saga=saga,
        subject_kind=TENT.qualified,
        subject="blue",
        actor="ada",
        input=text,
        deadline=sagas.world.clock.now() + timedelta(seconds=SETTINGS.run_s),
        process="gone",
    )
    return Operation(metadata=Metadata(name=name), spec=spec)
