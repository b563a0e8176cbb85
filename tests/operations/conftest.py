"""Fixtures of operations."""

from tests.kit.environment import provided_by
from tests.operations.toy import on_stage

stage = provided_by(on_stage)
