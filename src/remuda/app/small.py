"""A small server, for scripts that want any: which region, flavor and image it is made of.

It is chosen from the catalogue, before anything runs, so that it is the same at every start with the same catalogue.
"""

from collections.abc import Iterable, Mapping

from remuda.identity.credentials import SmallServer
from remuda.providers.contract.catalogue import Flavor, Image
from remuda.providers.simulated.catalogue import Catalogue
from remuda.region.catalogue.rules import size_of
from remuda.region.catalogue.seed import region_id
from remuda.region.kinds.common import GIB
from remuda.region.settings import ConfiguredRegion

_DISTRO = "ubuntu"
_NODE = "kubernetes"
"""What an image for a cluster's nodes has on it: no instance is made of one."""


def small_server(regions: Iterable[ConfiguredRegion], catalogues: Mapping[str, Catalogue]) -> SmallServer | None:
    """Return what a small server is made of: in the first simulated region by name that everybody sees, if any is."""
    for region in sorted(regions, key=lambda each: each.name):
        found = catalogues.get(region.name)
        if found is None or region.spec.organizations:
            continue
        for flavor in sorted(filter(_is_for_all, found.flavors), key=size_of):
            image = max((each for each in found.images if _fits(each, flavor)), key=_rank, default=None)
            if image is not None:
                return SmallServer(region_id=region_id(region.name), flavor_id=flavor.id, image_id=image.id)
    return None


def _is_for_all(flavor: Flavor) -> bool:
    return flavor.architecture == "x86_64" and not (flavor.is_pinned_only or flavor.is_baremetal)


def _fits(image: Image, flavor: Flavor) -> bool:
    is_for_it = image.architecture == flavor.architecture and image.virtualization != "baremetal"
    is_for_it &= _NODE not in image.software_versions
    return is_for_it and image.state == "ready" and image.gpu is None and image.size_gib * GIB <= flavor.disk_bytes


def _rank(image: Image) -> tuple[bool, str, str]:
    """Rank the one that most people expect highest, and of those the newest."""
    return image.os.distro == _DISTRO, image.os.version, image.id
