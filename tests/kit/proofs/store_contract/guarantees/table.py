"""All laws, by topic."""

from tests.kit.proofs.store_contract.guarantee import Law
from tests.kit.proofs.store_contract.guarantees import (
    creates,
    deletes,
    lists,
    log,
    merges,
    owners,
    reads,
    references,
    streams,
    updates,
    validation,
    watches,
)

STORE_LAWS: list[Law] = [
    *creates.LAWS,
    *updates.LAWS,
    *merges.LAWS,
    *deletes.LAWS,
    *owners.LAWS,
    *references.LAWS,
    *validation.LAWS,
    *lists.LAWS,
    *reads.LAWS,
    *watches.LAWS,
    *streams.LAWS,
]
LOG_LAWS: list[Law] = log.LAWS
LAWS: list[Law] = [*STORE_LAWS, *LOG_LAWS]
