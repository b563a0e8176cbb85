"""Fixtures of region: the whole service, and parts of it."""

from tests.kit.environment import provided_by
from tests.kit.region.environment import in_a_region
from tests.kit.region.images import on_ground as on_ground_of_images
from tests.kit.region.networks import on_ground as on_ground_of_networks
from tests.kit.region.servers import in_yard
from tests.kit.region.storage import on_site

region = provided_by(in_a_region)
region_images = provided_by(on_ground_of_images)
region_networks = provided_by(on_ground_of_networks)
region_servers = provided_by(in_yard)
region_storage = provided_by(on_site)
