"""Addresses and domains compare without regard to case, and only the 26 letters have one here.

Unicode's own lowering makes some foreign letters into these: the sign for kelvin becomes a k, and somebody else's
address another person's.
"""

_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}


def folded(text: str) -> str:
    """Return the text with A to Z as a to z, and everything else as it is."""
    return text.translate(_LOWER)
