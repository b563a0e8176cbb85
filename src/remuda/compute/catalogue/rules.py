"""Which regions, flavors and images are for instances."""

from collections.abc import Iterable

from remuda.resources.schema import FlavorRead, ImageRead, RegionRead

_KUBERNETES = "kubernetes"


def regions_for_instances(regions: Iterable[RegionRead]) -> list[RegionRead]:
    """Return the regions that have servers: a cluster's region has none."""
    return [region for region in regions if region.spec.type != _KUBERNETES]


def usable_flavors(flavors: Iterable[FlavorRead]) -> list[FlavorRead]:
    """Return the flavors that an instance can have: it never says on which piece of infrastructure it goes."""
    return [flavor for flavor in flavors if not flavor.spec.pinned_only]


def is_for_instances(image: ImageRead) -> bool:
    """Tell whether an image is meant for instances: one with a Kubernetes on it is a cluster's node."""
    return _KUBERNETES not in image.spec.software_versions


def usable_images(images: Iterable[ImageRead]) -> list[ImageRead]:
    """Return the images that an instance can be made of now."""
    return [image for image in images if is_for_instances(image) and image.status.state == "ready"]
