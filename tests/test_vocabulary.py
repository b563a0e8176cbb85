"""Vocabulary of the source: words and names that were retired, and how modules, predicates and docstrings are named.

Nothing is excepted: no name of the reference contract has a retired word in it. `python -m tools.words WORD` lists
where a word stands.
"""

import gc
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import pytest

from tools.shape import homonyms
from tools.source import (
    ROOT,
    Module,
    Piece,
    gerund_modules,
    mutating_predicates,
    other_files,
    pieces_of,
    predicates,
    read_modules,
    untyped_predicates,
)
from tools.vocabulary import MODULES, PACKAGE_NAME_WORDS, PACKAGE_NAMES, TEXT_WORDS, WORDS
from tools.words import Findings, find_words, is_name, matches, pieces, retired, with_forms

MAX_FILE = 500
WORD_LISTS = {*(ROOT / "tools" / name for name in ("shape.py", "vocabulary.py", "words.py")), Path(__file__)}
"""Files that name the retired words."""
FOREIGN = frozenset({"assemble_argument_collection"})
"""Names of other libraries."""


@pytest.fixture(scope="module", autouse=True)
def _without_garbage_collection() -> Iterator[None]:
    """Halve the time: the collector would walk all syntax trees again and again. They go when the file is done."""
    gc.disable()
    yield
    for each in (modules, source, found, matches):
        each.cache_clear()
    gc.enable()


@cache
def modules() -> list[Module]:
    return read_modules()


@cache
def source() -> Sequence[Piece]:
    return tuple(pieces(modules(), other_files()))


@cache
def found() -> Mapping[str, Findings]:
    return retired(modules(), source())


_TEST_NAME = re.compile(r"`test_\w+`")  # the name of a test is not a text of the page


def check(found: Mapping[str, Sequence[object]]) -> None:
    """Fail with the first positions of each thing that was found."""
    assert found, "something is looked for"
    assert not any(found.values()), "\n".join(explain(key, positions) for key, positions in found.items() if positions)


def explain(key: str, found: Sequence[object]) -> str:
    return f"{key}: {len(found)}; {', '.join(map(str, found[:20]))}{' …' * (len(found) > 20)}"


def test_retired_words_stand_nowhere() -> None:
    check(found()["words"])


@pytest.mark.parametrize("folder", ["tests", "bench", "tools"])
def test_retired_words_stand_nowhere_beside_the_source(folder: str) -> None:
    paths = sorted(set((ROOT / folder).rglob("*.py")) - WORD_LISTS)
    among = [piece for path in paths for piece in pieces_of(Module(path.stem, path, path.read_text()))]
    check(find_words(with_forms(WORDS), (each for each in among if each.text not in FOREIGN)))


def test_retired_words_stand_in_no_page() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    assert pages
    texts = {page: _TEST_NAME.sub("", page.read_text()) for page in sorted(pages)}
    check(find_words(with_forms(TEXT_WORDS), (Piece("text", text, page, 1) for page, text in texts.items())))


def test_retired_words_stand_in_no_text() -> None:
    check(find_words(with_forms(TEXT_WORDS), source(), where=lambda piece: piece.kind != "name"))


def test_texts_name_the_actor() -> None:
    check(found()["actors"])


def test_retired_words_stand_in_no_name() -> None:
    check(found()["words in names"])


@pytest.mark.parametrize("package", PACKAGE_NAME_WORDS)
def test_words_of_other_packages_stand_in_no_name_of_this_one(package: str) -> None:
    check(found()[f"words in names of {package}"])


def test_retired_names_are_gone() -> None:
    check(found()["names"])


def test_families_of_retired_names_are_gone() -> None:
    check(found()["families of names"])


@pytest.mark.parametrize("package", PACKAGE_NAMES)
def test_names_of_other_packages_are_gone_from_this_one(package: str) -> None:
    check(found()[f"names of {package}"])


def test_predicates_return_a_bool_and_change_nothing() -> None:
    named = predicates(modules())
    assert named, "there are predicates to look at"
    check(
        {
            "do not return a bool": [f"{each.module}.{each.node.name}" for each in untyped_predicates(named)],
            "change something": [f"{each.module}.{each.node.name}" for each in mutating_predicates(named)],
        },
    )


def test_docstrings_open_with_what_they_define() -> None:
    check(found()["docstrings that open with a question"])


def test_modules_are_named_after_nouns() -> None:
    check(
        {
            "named by a gerund": gerund_modules(modules()),
            "named by a retired word": [module.name for module in modules() if module.stem in MODULES],
        },
    )


def test_a_public_class_name_has_one_meaning() -> None:
    several, _ = homonyms(modules())
    check({"of the same name": several})


def test_files_are_short() -> None:
    check({f"above {MAX_FILE} lines": [each.path for each in modules() if each.lines > MAX_FILE]})


SAMPLE = '''
"""What it is: nobody is in hand."""

# it stays
# in hand, as `take_in_hand` does
class TakenInHand:
    def is_kept(self) -> bool:
        """Tell."""
        for finger in hand:
            self.fingers.add(finger)
        return f"{room.desk} was ConnectionRefusedError"
'''


def sample(text: str = SAMPLE) -> Module:
    return Module("remuda.sample", Path("sample.py"), text)


def test_a_word_is_found_in_every_spelling_but_not_across_python() -> None:
    found = find_words(with_forms(["in hand", "room, rooms", "refused"]), pieces_of(sample()))
    assert sorted(each.line for each in found["in hand"]) == [2, 5, 5, 6]
    assert len(found["room"]) == 1
    assert len(found["refused"]) == 1
    assert find_words(with_forms(["refused"]), pieces_of(sample("ConnectionRefusedError")), where=is_name) == {
        "refused": []
    }


def test_a_predicate_that_changes_something_is_found() -> None:
    def found(body: str) -> int:
        return len(mutating_predicates(predicates([sample(f"def is_it(self, other):\n    {body}")])))

    assert [found(body) for body in ("self.a = 1", "self.a[1] += 1", "other.a.pop()", "nonlocal a", "found.a = 1")] == [
        1
    ] * 5
    assert [found(body) for body in ("a = 1", "a[1] = self.b", "a.pop()", "return self.a.get(1)")] == [0] * 4
