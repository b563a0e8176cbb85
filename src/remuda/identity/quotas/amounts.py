"""Arithmetic on how much of each kind. Results are in the order of kinds, and nothing of a kind is left out."""

from collections.abc import Callable

from remuda.identity.kinds.quotas import Amount, Amounts

MOST = 2**53 - 1
"""The largest number that every reader of JSON takes for what it is: more of anything cannot be asked for."""


def used(amount: Amount) -> int:
    """Return what counts against a limit: what is in use, and what may come to be."""
    return amount.committed + amount.reserved


def of_kind(amounts: Amounts, kind: str) -> Amount:
    """Return how much there is of one kind."""
    return next((amount for amount in amounts if amount.kind == kind), Amount(kind=kind))


def plus(one: Amounts, other: Amounts) -> Amounts:
    """Return the sum."""
    return _joined(one, other, lambda a, b: _amount(a.kind, a.committed + b.committed, a.reserved + b.reserved))


def minus(one: Amounts, other: Amounts) -> Amounts:
    """Return the difference. It may be negative, where somebody else wrote: whoever compares has to see that."""
    return _joined(one, other, lambda a, b: _amount(a.kind, a.committed - b.committed, a.reserved - b.reserved))


def larger(one: Amounts, other: Amounts) -> Amounts:
    """Return of each kind whichever counts for more, and if both count the same, that of `other`.

    Not the larger of each number: what is turned from reserved into committed would count twice meanwhile.
    """
    return _joined(one, other, lambda a, b: b if used(b) >= used(a) else a)


def _amount(kind: str, committed: int, reserved: int) -> Amount:
    return Amount(kind=kind, committed=committed, reserved=reserved)


def _joined(one: Amounts, other: Amounts, join: Callable[[Amount, Amount], Amount]) -> Amounts:
    ours, theirs = ({amount.kind: amount for amount in amounts} for amounts in (one, other))
    joined = [
        join(ours.get(kind, Amount(kind=kind)), theirs.get(kind, Amount(kind=kind)))
        for kind in sorted(ours.keys() | theirs.keys())
    ]
    return tuple(amount for amount in joined if amount.committed or amount.reserved)
