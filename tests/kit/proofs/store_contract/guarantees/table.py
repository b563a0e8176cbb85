"""All guarantees, by topic."""

from tests.kit.proofs.store_contract.guarantee import Guarantee
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

STORE_GUARANTEES: list[Guarantee] = [
    *creates.GUARANTEES,
    *updates.GUARANTEES,
    *merges.GUARANTEES,
    *deletes.GUARANTEES,
    *owners.GUARANTEES,
    *references.GUARANTEES,
    *validation.GUARANTEES,
    *lists.GUARANTEES,
    *reads.GUARANTEES,
    *watches.GUARANTEES,
    *streams.GUARANTEES,
]
LOG_GUARANTEES: list[Guarantee] = log.GUARANTEES
GUARANTEES: list[Guarantee] = [*STORE_GUARANTEES, *LOG_GUARANTEES]
