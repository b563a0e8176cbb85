"""What a look at a machine finds, and how it is told."""

from collections.abc import Sequence
from typing import Literal

import msgspec

State = Literal["good", "odd", "bad"]
"""As it should be, worth a look, or in need of somebody."""

_GRAVITY: tuple[State, ...] = ("good", "odd", "bad")


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that was looked at."""

    part: str
    state: State
    sentence: str
    remedy: str = ""


def good(part: str, sentence: str) -> Finding:
    """Return that something is as it should be."""
    return Finding(part=part, state="good", sentence=sentence)


def odd(part: str, sentence: str, remedy: str) -> Finding:
    """Return that something is worth a look."""
    return Finding(part=part, state="odd", sentence=sentence, remedy=remedy)


def bad(part: str, sentence: str, remedy: str) -> Finding:
    """Return that something needs somebody to act."""
    return Finding(part=part, state="bad", sentence=sentence, remedy=remedy)


def worst(findings: Sequence[Finding]) -> State:
    """Return how it stands in all."""
    return max((each.state for each in findings), key=_GRAVITY.index, default="good")


def as_json(findings: Sequence[Finding]) -> str:
    """Return them for programs."""
    told = {"state": worst(findings), "findings": findings}
    return f"{msgspec.json.format(msgspec.json.encode(told)).decode()}\n"


def as_text(findings: Sequence[Finding]) -> str:
    """Return them for people, a line for each, and in the end how it stands."""
    width = max((len(each.part) for each in findings), default=0)
    lines = [f"{each.state:<4}  {each.part:<{width}}  {each.sentence} {each.remedy}".rstrip() for each in findings]
    return "".join(f"{line}\n" for line in (*lines, "", _verdict(findings)))


def _verdict(findings: Sequence[Finding]) -> str:
    count = {state: sum(each.state == state for each in findings) for state in _GRAVITY}
    if count["bad"]:
        return f"Somebody has to act: {count['bad']} bad, {count['odd']} odd."
    return f"It works, but look at what is odd: {count['odd']}." if count["odd"] else "All is well."
