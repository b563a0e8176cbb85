"""What the monitor remembers of the servers at a region's provider, so that it need not look at all after a start."""

from remuda.region.kinds.api_groups import OURS, VERSION
from remuda.store.kinds import Kind
from remuda.store.objects import Resource, StoredStruct


class SightingDigestSpec(StoredStruct, frozen=True):
    """What was last seen."""

    digests: str = ""
    """In base64, one number for each part of the servers, made of their names and versions."""


class SightingDigest(Resource, frozen=True):
    """The servers of the region whose id is its name."""

    spec: SightingDigestSpec = SightingDigestSpec()


SIGHTING_DIGEST = Kind(type=SightingDigest, group=OURS, version=VERSION, plural="sightingdigests")
"""One for each region that the monitor has looked at."""
