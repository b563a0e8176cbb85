"""Clients meet services in both ways: all in one process, and each as if in its own."""

from tests.clients.ground import apply
from tests.compute.ways import both_ways, way

__all__ = ["pytest_generate_tests", "way"]

pytest_generate_tests = both_ways(apply)
