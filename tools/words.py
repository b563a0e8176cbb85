"""Search for words in the source tree: in names, texts, docstrings, comments and templates.

A word is found in any spelling: `in hand` matches `in_hand`, `InHand`, `take-in-hand` and the two words in a
sentence, but not the Python of `for finger in hand`. `python -m tools.words "in hand" rooms` lists the positions.
"""

import builtins
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tools.source import ROOT, Module, Piece, other_files, pieces_of, read_modules

_WORD_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_BUILTINS = frozenset(dir(builtins))


class Position(NamedTuple):
    """A line of a file."""

    path: Path
    line: int

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT) if self.path.is_relative_to(ROOT) else self.path}:{self.line}"


def pieces(modules: Iterable[Module], others: Iterable[Path]) -> Iterator[Piece]:
    """Yield every name and text of modules and of other files."""
    for module in modules:
        yield from pieces_of(module)
    for path in others:
        yield Piece("name", path.stem, path, 1)
        yield Piece("text", path.read_text(), path, 1)


def is_name(piece: Piece) -> bool:
    """Tell whether a piece names something: an identifier, or a text without spaces, such as a key or a path."""
    if piece.kind == "name":
        return piece.text not in _BUILTINS
    return piece.kind == "text" and not any(map(str.isspace, piece.text))


def find_words(
    entries: Mapping[str, Sequence[str]], among: Iterable[Piece], *, where: Callable[[Piece], bool] | None = None
) -> dict[str, list[Position]]:
    """Return the positions of each entry: a word or several, and its other forms."""
    key_of = {form: key for key, forms in entries.items() for form in (key, *forms)}
    pattern = _pattern(tuple(sorted(key_of, key=len, reverse=True)))
    found: dict[str, list[Position]] = {key: [] for key in entries}
    for piece in among:
        if where is None or where(piece):
            for form, newlines in matches(pattern, piece.text):
                found[key_of[form]].append(Position(piece.path, piece.line + newlines))
    return found


@cache
def _pattern(forms: tuple[str, ...]) -> re.Pattern[str]:
    spaced = (r"[\s_/-]+".join(map(re.escape, form.split())) for form in forms)
    return re.compile(rf"(?<![a-z])(?:{'|'.join(spaced)})(?![a-z])")


@cache
def matches(pattern: re.Pattern[str], text: str) -> tuple[tuple[str, int], ...]:
    """Return the forms found in a text, each with the number of line breaks before it. Names repeat: remember them."""
    plain = _WORD_BOUNDARY.sub(" ", text).lower()
    return tuple(
        (" ".join(re.split(r"[\s_/-]+", found[0])), plain.count("\n", 0, found.start()))
        for found in pattern.finditer(plain)
    )


def main(words: Sequence[str]) -> None:
    """Print where words stand."""
    found = find_words({word.lower().replace("_", " "): () for word in words}, pieces(read_modules(), other_files()))
    for word, positions in found.items():
        print(f"{word}: {len(positions)}")
        for position in positions:
            print(f"  {position}")


if __name__ == "__main__":
    main(sys.argv[1:])
