"""Fixtures of the provider contract."""

from tests.kit.environment import provided_by
from tests.kit.providers.slow_provider import in_cloud

cloud = provided_by(in_cloud)
