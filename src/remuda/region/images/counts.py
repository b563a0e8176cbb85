"""Number of images of an organization in a region, which is limited.

An image is stored here only while it is imported; afterwards its provider has it. So both are counted, each image once,
and those whose creation has begun: concurrent requests of one process never exceed the limit. A process does not know
what others have begun within the time for which the provider's list is cached.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from remuda.kernel.errors import TooManyObjects
from remuda.region.catalogue.provider_registry import RegionProvider
from remuda.region.kinds.images import IMAGE_IMPORT, ImageImport
from remuda.resources.conventions import ORGANIZATION, REGION
from remuda.store.contract import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageCounts:
    """Counter of the images of each organization and region."""

    store: Store
    _begun: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    """By region and organization, the images that requests are creating."""

    async def known(self, cloud: RegionProvider, organization: str) -> frozenset[str]:
        """Return the images of an organization in a region that count, by id."""
        begun = self._begun.get((cloud.region.name, organization), set()).copy()
        if self.store.registry.largest_number(IMAGE_IMPORT) is None:
            return frozenset(begun)
        labels = {REGION: cloud.region.name, ORGANIZATION: organization}
        importing = (await self.store.list_names(ImageImport, labels=labels)).items
        at_provider = (each.id for each in await cloud.images() if each.organization == organization)
        return frozenset((*begun, *importing, *at_provider))

    @contextmanager
    def creating(
        self, cloud: RegionProvider, organization: str, image: str, *, known: frozenset[str]
    ) -> Iterator[None]:
        """Count an image for the block, which creates it. Raise TooManyObjects if there are too many without it."""
        key, most = (cloud.region.name, organization), self.store.registry.largest_number(IMAGE_IMPORT)
        begun = self._begun.setdefault(key, set())
        if most is not None and len(known.union(begun) - {image}) >= most:
            raise TooManyObjects("images", scope="organization and region", limit=most)
        begun.add(image)
        try:
            yield
        finally:
            begun.discard(image)
            if not begun:
                self._begun.pop(key, None)
