"""Fixtures of the simulated cloud."""

from tests.kit.environment import provided_by
from tests.providers.simulated.worlds import in_cloud

scene = provided_by(in_cloud)
