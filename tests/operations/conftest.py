"""Fixtures of operations."""

from tests.kit.environment import provided_by
from tests.kit.sample_farm.saga import run_saga

sagas = provided_by(run_saga)
