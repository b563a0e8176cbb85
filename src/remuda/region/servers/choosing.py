"""Whether a server can be made of this flavor and that image."""

from collections.abc import Sequence

from remuda.kernel.errors import Invalid, NoRoom, NotFound
from remuda.providers.contract.catalogue import Flavor, Image

_GIB = 1 << 30
_VIRTUALIZATIONS = {"virtualized", "baremetal", "any", ""}


def find_flavor(flavors: Sequence[Flavor], flavor: str) -> Flavor | None:
    """Return a flavor that is on offer."""
    return next((each for each in flavors if each.id == flavor), None)


def check_fit(image: Image | None, flavor: Flavor | None, *, name: str, pinned_to: str) -> None:
    """Refuse an image that cannot be used, or not with this flavor; without a flavor, only the image is looked at."""
    if image is None:
        raise NotFound("Image", name)
    if image.state != "ready":
        raise Invalid("spec.imageId", "image is not ready for use")
    if flavor is None:
        return
    if image.architecture != flavor.architecture:
        raise Invalid("spec.imageId", "image architecture is not compatible with the flavor")
    # A flavor without a disk boots from a volume, or has a disk of its own that nobody counts.
    if flavor.disk_bytes and flavor.disk_bytes < image.size_gib * _GIB:
        raise Invalid("spec.imageId", "flavor disk is too small for the image")
    _check_virtualization(image, flavor)
    if flavor.is_pinned_only and not pinned_to:
        raise Invalid("spec.infrastructureRef", "flavor requires infrastructureRef to be set")


def check_room(flavor: Flavor | None) -> None:
    """Refuse a flavor of which no more fit, as far as the provider tells: whoever asks has something to lose."""
    if flavor is not None and flavor.free == 0:
        raise NoRoom(
            "flavorId",
            "has no free place in the region now, and nothing was changed",
            remedy="choose another flavor, or ask again later",
        )


def _check_virtualization(image: Image, flavor: Flavor) -> None:
    if image.virtualization not in _VIRTUALIZATIONS:
        raise Invalid("spec.imageId", "image virtualization type is not recognized")
    runs_on = "baremetal" if flavor.is_baremetal else "virtualized"
    if image.virtualization not in {"any", "", runs_on}:
        raise Invalid("spec.imageId", "image virtualization is not compatible with the flavor")
