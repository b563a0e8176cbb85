"""What a provider offers, through its calls."""

from collections.abc import AsyncIterator, Sequence

from remuda.providers.called.listing import EVERYTHING
from remuda.providers.calls import Calls
from remuda.providers.contract.catalogue import (
    Catalogue,
    ExternalNetwork,
    ExternalNetworks,
    Flavor,
    Image,
    Images,
    NewImage,
)

CATALOGUE_VERBS = ("flavors",)
"""What a catalogue is asked."""
EXTERNAL_NETWORK_VERBS = ("external_networks",)
"""What is asked about ways out."""
IMAGE_VERBS = ("images", "find_image", "create_image", "remove_image")
"""What is asked about images."""
UPLOAD_S = 3600.0
"""How long the content of an image may take to arrive: it is far longer than any other call."""


def image_key(image: str) -> str:
    """Return the key of calls about an image."""
    return f"image-{image}"


class CalledCatalogue:
    """Flavors."""

    def __init__(self, catalogue: Catalogue, calls: Calls) -> None:
        self._catalogue, self._calls = catalogue, calls

    async def flavors(self) -> Sequence[Flavor]:
        """Return what is offered now."""
        return await self._calls.call(EVERYTHING, "flavors", self._catalogue.flavors, safe=True)


class CalledExternalNetworks:
    """Ways out."""

    def __init__(self, networks: ExternalNetworks, calls: Calls) -> None:
        self._networks, self._calls = networks, calls

    async def external_networks(self) -> Sequence[ExternalNetwork]:
        """Return what is offered now."""
        return await self._calls.call(EVERYTHING, "external_networks", self._networks.external_networks, safe=True)


class CalledImages:
    """Images."""

    def __init__(self, images: Images, calls: Calls) -> None:
        self._images, self._calls = images, calls

    async def images(self) -> Sequence[Image]:
        return await self._calls.call(EVERYTHING, "images", self._images.images, safe=True)

    async def find_image(self, image: str) -> Image | None:
        return await self._calls.call(image_key(image), "find_image", lambda: self._images.find_image(image), safe=True)

    async def create_image(self, wanted: NewImage, content: AsyncIterator[bytes]) -> Image:
        return await self._calls.call(
            image_key(wanted.id),
            "create_image",
            lambda: self._images.create_image(wanted, content),
            deadline_s=UPLOAD_S,
        )

    async def remove_image(self, image: str) -> None:
        await self._calls.call(image_key(image), "remove_image", lambda: self._images.remove_image(image))
