"""All laws, by topic."""

from tests.contract.law import Law
from tests.contract.laws import (
    checking,
    creating,
    deleting,
    listing,
    logging,
    merging,
    owning,
    reading,
    referring,
    streams,
    updating,
    watching,
)

STORE_LAWS: list[Law] = [
    *creating.LAWS,
    *updating.LAWS,
    *merging.LAWS,
    *deleting.LAWS,
    *owning.LAWS,
    *referring.LAWS,
    *checking.LAWS,
    *listing.LAWS,
    *reading.LAWS,
    *watching.LAWS,
    *streams.LAWS,
]
LOG_LAWS: list[Law] = logging.LAWS
LAWS: list[Law] = [*STORE_LAWS, *LOG_LAWS]
