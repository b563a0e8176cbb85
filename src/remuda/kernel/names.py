"""Display names: what users call objects, safe in every terminal, page, header and label."""

import re

DISPLAY_NAME = "^[0-9A-Za-z]([0-9A-Za-z_.-]{0,61}[0-9A-Za-z])?$"
"""The pattern of a display name, which is also a valid label value."""

_PATTERN = re.compile(DISPLAY_NAME)
_LONGEST = 63


def display_name(text: str) -> str:
    """Return the text if it is a display name, else nothing: callers then show the id.

    A name comes from a label or from another service, and may end in a terminal, a page or a log.
    """
    return text if len(text) <= _LONGEST and "\n" not in text and _PATTERN.match(text) else ""
