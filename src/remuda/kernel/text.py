"""Text comparison: case folding for addresses and domains, and suggestions for misspelled names."""

from collections.abc import Iterable
from difflib import get_close_matches

_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}


def folded(text: str) -> str:
    """Return the text with A to Z in lower case. Unicode would also map other letters, such as the Kelvin sign."""
    return text.translate(_LOWER)


_MIN_SIMILARITY = 0.6


def nearest(name: str, known: Iterable[str], *, likeness: float = _MIN_SIMILARITY) -> str | None:
    """Return the known name that was most likely meant, or None.

    A name that differs only in its prefix is preferred, then a similar name with the same prefix. If the prefix is
    unknown, whole names are compared.
    """
    names = list(known)
    prefix, _, last = name.rpartition(".")
    for each in names:
        if each.rpartition(".")[2] == last:
            return each
    siblings = [each.rpartition(".")[2] for each in names if each.rpartition(".")[0] == prefix]
    if siblings:
        found = get_close_matches(last, siblings, n=1, cutoff=likeness)
        return ".".join(filter(None, (prefix, found[0]))) if found else None
    found = get_close_matches(name, names, n=1, cutoff=likeness)
    return found[0] if found else None
