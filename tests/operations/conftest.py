"""Fixtures of operations."""

from tests.kit.environment import provided_by
from tests.kit.sample_farm.saga import on_stage

stage = provided_by(on_stage)
