"""Fixtures of existing clients, which meet the services in both ways: all in one process, and each as if in its own."""

from tests.clients.ground import apply
from tests.kit.compute.deployments import pytest_generate_tests, way
from tests.kit.environment import provided_by

__all__ = ["ground", "pytest_generate_tests", "way"]

ground = provided_by(apply, "way")
