"""All broken stores, by topic."""

from tests.contract.broken import (
    checking,
    creating,
    deleting,
    listing,
    logging,
    merging,
    owning,
    reading,
    referring,
    updating,
    watching,
)
from tests.contract.broken.flawed import Flaw

FLAWS: list[Flaw] = [
    *creating.FLAWS,
    *updating.FLAWS,
    *merging.FLAWS,
    *deleting.FLAWS,
    *owning.FLAWS,
    *referring.FLAWS,
    *checking.FLAWS,
    *listing.FLAWS,
    *reading.FLAWS,
    *watching.FLAWS,
    *logging.FLAWS,
]
