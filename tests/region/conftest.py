"""Fixtures of region: the whole service, and parts of it."""

from tests.kit.environment import provided_by
from tests.kit.region.environment import run_region
from tests.kit.region.images import run_images
from tests.kit.region.networks import run_networks
from tests.kit.region.servers import run_servers
from tests.kit.region.storage import run_storage

region = provided_by(run_region)
region_images = provided_by(run_images)
region_networks = provided_by(run_networks)
region_servers = provided_by(run_servers)
region_storage = provided_by(run_storage)
