"""Findings of `remuda doctor`: the result of each check, as text and as JSON."""

from collections import Counter
from collections.abc import Sequence
from typing import Literal, get_args

import msgspec

Status = Literal["ok", "warning", "critical"]
"""Of a check. A critical one needs action."""

_SEVERITIES: Sequence[Status] = get_args(Status)


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Result of one check."""

    check: str
    status: Status
    message: str
    remedy: str = ""


def ok(check: str, message: str) -> Finding:
    return Finding(check=check, status="ok", message=message)


def warning(check: str, message: str, remedy: str) -> Finding:
    return Finding(check=check, status="warning", message=message, remedy=remedy)


def critical(check: str, message: str, remedy: str) -> Finding:
    return Finding(check=check, status="critical", message=message, remedy=remedy)


def worst(findings: Sequence[Finding]) -> Status:
    return max((each.status for each in findings), key=_SEVERITIES.index, default="ok")


def as_json(findings: Sequence[Finding]) -> str:
    result = {"status": worst(findings), "findings": findings}
    return f"{msgspec.json.format(msgspec.json.encode(result)).decode()}\n"


def as_text(findings: Sequence[Finding]) -> str:
    width = max((len(each.check) for each in findings), default=0)
    lines = [f"{each.status:<8}  {each.check:<{width}}  {each.message} {each.remedy}".rstrip() for each in findings]
    return "".join(f"{line}\n" for line in (*lines, "", _summary(findings)))


def _summary(findings: Sequence[Finding]) -> str:
    count = Counter(each.status for each in findings)
    warnings = "1 warning" if count["warning"] == 1 else f"{count['warning']} warnings"
    if count["critical"]:
        return f"Action is required: {count['critical']} critical, {warnings}."
    return f"The installation works, with {warnings}." if count["warning"] else "All checks passed."
