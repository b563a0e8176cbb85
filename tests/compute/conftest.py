"""Fixtures of compute. A test that uses them is run in both ways."""

from tests.kit.compute.deployments import pytest_generate_tests, way
from tests.kit.compute.environment import run_compute
from tests.kit.environment import provided_by

__all__ = ["compute", "pytest_generate_tests", "way"]

compute = provided_by(run_compute, "way")
