"""Tries one operation for everybody, about everything: status, text, and that a refusal changed nothing."""

from collections.abc import Sequence

from tests.authz.doors import Outcome
from tests.authz.matrix import PLACES, Caller, Row, Target, expected, targets
from tests.authz.subjects import Subject


async def try_all(subject: Subject, row: Row, callers: Sequence[Caller], door: str) -> None:
    """Fail with every cell that is wrong."""
    wrong, statuses = [], set()
    for caller in callers:
        for target in targets(row):
            statuses.add(expected(row, caller, target))
            if problem := await _try(subject, row, caller, target, door):
                wrong.append(f"{caller.name}, {target.label or 'all'}: {problem}")
    assert not wrong, f"{row.operation} through the {door}:\n" + "\n".join(wrong)
    assert row.success in statuses, "somebody may do it"
    assert row.right is None or 403 in statuses, "somebody may not"


async def _try(subject: Subject, row: Row, caller: Caller, target: Target, door: str) -> str:
    """Return what is wrong with one cell, or nothing."""
    request = await subject.request(row, target)
    before = await subject.state()
    outcome = await subject.doors[door].ask(caller, request)
    wanted = expected(row, caller, target)
    is_refused = outcome.status >= 400
    has_changed = is_refused and await subject.state() != before
    if has_changed or not is_refused:
        for place in PLACES:
            subject.use_up(place)
    if outcome.status != wanted:
        return f"{outcome.status} ({outcome.said}), and {wanted} was to be"
    if has_changed:
        return f"{wanted}, and something changed all the same"
    if wanted == 403 and not _names_right(row, outcome):
        return f"{wanted}, and it does not say which right is missing: {outcome.said}"
    return ""


def _names_right(row: Row, outcome: Outcome) -> bool:
    assert row.right is not None, "only what asks for a right is forbidden"
    endpoint, verb = row.right
    return f"operation '{verb}' on endpoint '{endpoint}'" in outcome.said
