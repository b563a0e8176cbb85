"""Where the digests of a region's servers are kept between one start and the next."""

from base64 import b64decode, b64encode
from dataclasses import dataclass

import msgspec

from remuda.region.kinds.sightings import SightingDigest, SightingDigestSpec
from remuda.region.monitor.digests import Digests
from remuda.resources.crud import find, seed
from remuda.store.contract import Store
from remuda.store.objects import Metadata


@dataclass(slots=True)
class Memory:
    """What is remembered of one region. It is written only when it is another."""

    store: Store
    region: str
    _last: str = ""

    async def recall(self) -> Digests:
        """Return what was remembered last."""
        found = await find(self.store, SightingDigest, self.region)
        self._last = "" if found is None else found.spec.digests
        return Digests(b64decode(self._last))

    async def keep(self, digests: Digests) -> None:
        """Remember this."""
        said = b64encode(digests.to_bytes()).decode()
        if said != self._last:
            spec = SightingDigestSpec(digests=said)
            wanted = SightingDigest(metadata=Metadata(name=self.region), spec=spec)
            await seed(self.store, wanted, lambda found: msgspec.structs.replace(found, spec=spec))
            self._last = said
