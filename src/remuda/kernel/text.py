"""Which known name somebody meant.

Addresses and domains compare without regard to case, and only the 26 letters have one here.

Unicode's own lowering makes some foreign letters into these: the sign for kelvin becomes a k, and somebody else's
address another person's.
"""

from collections.abc import Iterable
from difflib import get_close_matches

_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}


def folded(text: str) -> str:
    """Return the text with A to Z as a to z, and everything else as it is."""
    return text.translate(_LOWER)


_LIKENESS = 0.6


def nearest(name: str, known: Iterable[str], *, likeness: float = _LIKENESS) -> str | None:
    """Return the known name that somebody most likely meant, if there is one.

    What is right but for its place is nearest of all; then what is alike in the same place; where the place itself is
    not known, what is alike as a whole.
    """
    names = list(known)
    place, _, last = name.rpartition(".")
    for each in names:
        if each.rpartition(".")[2] == last:
            return each
    beside = [each.rpartition(".")[2] for each in names if each.rpartition(".")[0] == place]
    if beside:
        found = get_close_matches(last, beside, n=1, cutoff=likeness)
        return ".".join(filter(None, (place, found[0]))) if found else None
    found = get_close_matches(name, names, n=1, cutoff=likeness)
    return found[0] if found else None
