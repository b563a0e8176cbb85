"""Fixtures of existing clients, which meet the services in both ways: all in one process, and each as if in its own."""

from tests.kit.compatibility.environment import apply
from tests.kit.compute.deployments import pytest_generate_tests, way
from tests.kit.environment import provided_by

__all__ = ["environment", "pytest_generate_tests", "way"]

environment = provided_by(apply, "way")
