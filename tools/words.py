"""Search for words in the source tree: in names, texts, docstrings, comments and templates.

A word is found in any spelling: `in hand` matches `in_hand`, `InHand`, `take-in-hand` and the two words in a
sentence, but not the Python of `for finger in hand`. `python -m tools.words "in hand" rooms` lists the positions,
and without arguments every retired word and name by package.
"""

import argparse
import ast
import builtins
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tools import vocabulary
from tools.source import (
    ROOT,
    Module,
    Piece,
    docstrings,
    opens_with_a_question,
    other_files,
    pieces_of,
    read_modules,
)

_WORD_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_COMPOUNDS = re.compile(rf"\b(?:{'|'.join(each.replace(' ', '[ _-]') for each in vocabulary.COMPOUNDS)})(?![a-z])")
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
    plain = _COMPOUNDS.sub(lambda term: "." * len(term[0]), _WORD_BOUNDARY.sub(" ", text).lower())
    return tuple(
        (" ".join(re.split(r"[\s_/-]+", found[0])), plain.count("\n", 0, found.start()))
        for found in pattern.finditer(plain)
    )


Findings = Mapping[str, Sequence[Position]]


def retired(modules: Sequence[Module], source: Sequence[Piece]) -> dict[str, Findings]:
    """Return the positions of everything retired, by section and entry."""
    names = [piece for piece in source if piece.kind == "name"]
    found: dict[str, Findings] = {
        "words": find_words(with_forms(vocabulary.WORDS), source),
        "actors": find_words(with_forms(vocabulary.ACTORS), source),
        "words in names": find_words(with_forms(vocabulary.NAME_WORDS), source, where=is_name),
        "names": exact_names(vocabulary.NAMES, source),
        "families of names": {
            pattern: [Position(piece.path, piece.line) for piece in names if re.fullmatch(pattern, piece.text)]
            for pattern in vocabulary.NAME_PATTERNS
        },
        "docstrings that open with a question": opening_questions(modules),
    }
    for package, words in vocabulary.PACKAGE_NAME_WORDS.items():
        among = pieces_below(package, modules, source)
        found[f"words in names of {package}"] = find_words(with_forms(words), among, where=is_name)
    for package, gone in vocabulary.PACKAGE_NAMES.items():
        found[f"names of {package}"] = exact_names(gone, pieces_below(package, modules, source))
    return found


def with_forms(entries: Iterable[str]) -> dict[str, Sequence[str]]:
    """Split entries such as "room, rooms" into a key and its other forms."""
    split = ([form.strip() for form in entry.split(",")] for entry in entries)
    return {key: forms for key, *forms in split}


def exact_names(names: Iterable[str], among: Iterable[Piece]) -> dict[str, list[Position]]:
    """Return the positions of each identifier, and of each key of the same spelling."""
    found: dict[str, list[Position]] = {name: [] for name in names}
    for piece in among:
        if piece.text in found and is_name(piece):
            found[piece.text].append(Position(piece.path, piece.line))
    return found


def pieces_below(package: str, modules: Iterable[Module], source: Iterable[Piece]) -> list[Piece]:
    """Return the pieces of a package. A package that is gone would check nothing: name its successor instead."""
    found = {module.path for module in modules if f"{module.name}.".startswith(f"{package}.")}
    if not found:
        message = f"there is no package {package}: name the one that took its place"
        raise LookupError(message)
    return [piece for piece in source if piece.path in found]


def opening_questions(modules: Iterable[Module]) -> dict[str, list[Position]]:
    """Return the docstrings that open with a question word, by what they document."""
    kinds = {"modules": ast.Module, "classes": ast.ClassDef, "functions": ast.FunctionDef | ast.AsyncFunctionDef}
    found: dict[str, list[Position]] = {kind: [] for kind in (*kinds, "others")}
    for module in modules:
        for owner, piece in docstrings(module):
            if opens_with_a_question(piece.text):
                kind = next((name for name, types in kinds.items() if isinstance(owner, types)), "others")
                found[kind].append(Position(piece.path, piece.line))
    return found


def main(words: Sequence[str]) -> None:
    """Print where words stand; without words, everything retired by package."""
    if not words:
        print_retired()
        return
    spelled = [re.sub(r"[\s_-]+", " ", word.lower()).strip() for word in words]
    found = find_words(dict.fromkeys(spelled, ()), pieces(read_modules(), other_files()))
    for word, positions in found.items():
        print(f"{word}: {len(positions)}")
        for position in positions:
            print(f"  {position}")


def print_retired() -> None:
    """Print every retired word and name that the source still has, by package."""
    modules = read_modules()
    by_package: dict[Path, list[str]] = defaultdict(list)
    for section, entries in retired(modules, tuple(pieces(modules, other_files()))).items():
        for entry, positions in entries.items():
            for position in positions:
                by_package[position.path.parent.relative_to(ROOT)].append(f"{position}: {entry} ({section})")
    for package, lines in sorted(by_package.items()):
        print(f"{package}: {len(lines)}")
        for line in lines:
            print(f"  {line}")
    if not by_package:
        print("Nothing retired is left.")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tools.words", description=__doc__)
    parser.add_argument("words", nargs="*", metavar="WORD", help="a word or phrase, in any spelling")
    main(parser.parse_args().words)
