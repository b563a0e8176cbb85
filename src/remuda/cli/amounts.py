"""How much there may be, as people write and read it: numbers, and bytes in powers of 1024."""

import re
from dataclasses import dataclass

from remuda.kernel.errors import Invalid

_MOST = 2**53 - 1
_STEP = 1024
_UNITS = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_LIMIT = re.compile(r"([^=]+)=([0-9]{1,99})(?: ?([KMGTPE]i)B?)?")


@dataclass(frozen=True, slots=True)
class Limit:
    """How much of a kind there may be."""

    kind: str
    quantity: int
    is_bytes: bool
    """It was written with a unit, which only bytes have."""


def parse_limit(text: str) -> Limit:
    """Return a limit that is written such as servers=20 or filestorage=2TiB."""
    found = _LIMIT.fullmatch(text)
    if found is None:
        remedy = "say what there may be, such as servers=20 or filestorage=2TiB"
        raise Invalid("LIMITS", f"{text} is no limit", remedy=remedy)
    kind, number, unit = found.groups(default="")
    quantity = int(number) * _STEP ** _UNITS.index(unit)
    if quantity > _MOST:
        raise Invalid("LIMITS", f"{text} is too large", remedy=f"say at most {_MOST}")
    return Limit(kind, quantity, is_bytes=bool(unit))


def bytes_text(count: int) -> str:
    """Return so many bytes as people read them."""
    number, unit = float(count), 0
    while abs(number) >= _STEP and unit < len(_UNITS) - 1:
        number, unit = number / _STEP, unit + 1
    return f"{number:g}" if not unit else f"{number:.4g} {_UNITS[unit]}B"
