"""Fixtures of the simulated cloud."""

from tests.kit.environment import provided_by
from tests.kit.providers.simulated_cloud import in_cloud

scene = provided_by(in_cloud)
