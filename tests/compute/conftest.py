"""Every scenario of compute is run in both ways."""

from tests.compute.house import in_a_compute
from tests.compute.ways import both_ways, way

__all__ = ["pytest_generate_tests", "way"]

pytest_generate_tests = both_ways(in_a_compute)
