"""What a registry of sagas rejects."""

from dataclasses import replace

import pytest

from remuda.operations.saga import Sagas
from tests.kit.sample_farm.saga import PITCH


def test_a_registry_rejects_what_could_not_be_told_apart() -> None:
    with pytest.raises(ValueError, match="registered twice"):
        Sagas([PITCH, PITCH])
    with pytest.raises(ValueError, match="a name of its own"):
        Sagas([replace(PITCH, steps=PITCH.steps[:1] * 2)])
    with pytest.raises(ValueError, match="at least one step"):
        Sagas([replace(PITCH, steps=())])
