"""Why a change would be refused if it were made now, although it could be: what it costs is not there."""

from collections.abc import Mapping, Sequence

from remuda.compute.plans.schema import BlockerRead, QuotaChangeRead


def quota_blockers(changes: Sequence[QuotaChangeRead], free: Mapping[str, int]) -> Sequence[BlockerRead]:
    """Return what of a change's cost there is no room for. What nobody limits is not among what is free."""
    dearer = [each for each in changes if each.delta > 0 and each.kind in free]
    return [_blocker(each, free[each.kind]) for each in dearer if each.delta > free[each.kind]]


def _blocker(change: QuotaChangeRead, free: int) -> BlockerRead:
    sentence = (
        f"It would be refused: it takes {change.delta} more of {change.kind}, and the quota of its project and "
        f"organization leaves {max(free, 0)}. Delete something that is not needed, or have the quota raised."
    )
    return BlockerRead(reason="QuotaExceeded", sentence=sentence)
