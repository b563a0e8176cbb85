"""All broken stores, by topic."""

from tests.kit.proofs.store_contract.broken import (
    creates,
    deletes,
    lists,
    log,
    merges,
    owners,
    reads,
    references,
    updates,
    validation,
    watches,
)
from tests.kit.proofs.store_contract.broken.flawed import Flaw

FLAWS: list[Flaw] = [
    *creates.FLAWS,
    *updates.FLAWS,
    *merges.FLAWS,
    *deletes.FLAWS,
    *owners.FLAWS,
    *references.FLAWS,
    *validation.FLAWS,
    *lists.FLAWS,
    *reads.FLAWS,
    *watches.FLAWS,
    *log.FLAWS,
]
