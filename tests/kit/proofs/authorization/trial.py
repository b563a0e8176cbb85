"""Tries one operation for everybody, about everything: status, text, and that a rejection changed nothing."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tests.kit.proofs.authorization.matrix import PLACES, Caller, Right, Row, Scope, Target, expected, targets
from tests.kit.proofs.authorization.subjects import Subject
from tests.kit.proofs.authorization.transports import Outcome


@dataclass(frozen=True, kw_only=True)
class Rule:
    """What a matrix says of its cells."""

    targets: Callable[[Row], Iterable[Target]] = targets
    """Everything that a request of an operation could be about."""
    expected: Callable[[Row, Caller, Target], int] = expected
    """The status that it must have."""
    missing: Callable[[Row, Caller, Target], Right | str | None] = lambda row, _caller, _target: row.right
    """The right that whoever is refused does not have, or what it is told where it is not about a right."""
    is_spared: Callable[[Row, Target], bool] = lambda _row, _target: False
    """It must not succeed, because everybody needs what it would destroy."""


DESIGN = Rule()
"""Design section 7, as it is for every service."""


async def try_all(subject: Subject, row: Row, callers: Sequence[Caller], door: str, rule: Rule = DESIGN) -> None:
    """Fail with every cell that is wrong."""
    wrong, statuses = [], set()
    for caller in callers:
        for target in rule.targets(row):
            wanted = rule.expected(row, caller, target)
            if wanted < 400 and rule.is_spared(row, target):
                continue
            statuses.add(wanted)
            if problem := await _try(subject, row, caller, target, door, wanted, rule.missing(row, caller, target)):
                wrong.append(f"{caller.name}, {target.label or 'all'}: {problem}")
    assert not wrong, f"{row.operation} through the {door}:\n" + "\n".join(wrong)
    assert row.success in statuses, "somebody may do it"
    assert row.right is None or row.names == "filter" or 403 in statuses, "somebody may not"


async def _try(
    subject: Subject, row: Row, caller: Caller, target: Target, door: str, wanted: int, missing: Right | str | None
) -> str:
    """Return what is wrong with one cell, or nothing."""
    request = await subject.request(row, target)
    before = await subject.state()
    outcome = await subject.transports[door].ask(caller, request)
    has_changed = await subject.state() != before
    if has_changed:
        for place in _concerned(target):
            subject.use_up(place)
    if outcome.status != wanted:
        return f"{outcome.status} ({outcome.said}), and {wanted} was to be"
    if has_changed and wanted >= 400:
        return f"{wanted}, and something changed all the same"
    if wanted == 403 and not _says(missing, outcome):
        return f"{wanted}, and it does not say that {missing} is missing: {outcome.said}"
    return ""


def _concerned(target: Target) -> Sequence[Scope]:
    """Return where a request may have changed what is there: in the places that it is about, or else everywhere."""
    return [place for place in PLACES if place in {target.named, target.holder}] or PLACES


def _says(missing: Right | str | None, outcome: Outcome) -> bool:
    assert missing is not None, "only what asks for a right is forbidden"
    if isinstance(missing, str):
        return missing in outcome.said
    endpoint, verb = missing
    return f"operation '{verb}' on endpoint '{endpoint}'" in outcome.said
