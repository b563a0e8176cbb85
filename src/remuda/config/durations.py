"""Durations as text: `90d`, `1h30m`, `60s`. Apart from other values, because the CLI starts faster so."""

import re
from datetime import timedelta

_UNITS = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
_PART = re.compile(r"([0-9]{1,9})([wdhms])")
_WHOLE = re.compile(rf"(?:{_PART.pattern})+")


def parse_duration(text: str) -> timedelta | None:
    """Return the duration, or None if the text is none."""
    if not _WHOLE.fullmatch(text):
        return None
    seconds = sum(int(count) * _UNITS[unit] for count, unit in _PART.findall(text))
    try:
        return timedelta(seconds=seconds)
    except OverflowError:
        return None


def duration_text(duration: timedelta) -> str:
    """Return the duration as users write it, with no more than one unit where that is exact."""
    left = int(duration.total_seconds())
    parts = []
    for unit, seconds in _UNITS.items():
        if unit == "w":
            continue  # 90d says more than 12w6d
        count, left = divmod(left, seconds)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"
