"""Common passwords: what is guessed first, however it is spelled.

A password is refused if it consists of at most two common words with a few digits and signs around them. Words are the
passwords, names and English words of zxcvbn, runs such as `abcdef`, `4321` or `qwerty`, and what belongs to the person:
the address, the organizations, the name of this product. Before it is compared, a password is folded: compatibility
forms, case, accents, and digits and signs that stand for letters (`P@ssw0rd`). A part that repeats counts once.

The words are read for each check and not kept: a check costs about 25 ms and 10 MiB, far less than the hash after it,
and passwords are rarely set. The cost is linear in the length of the password.
"""

import gzip
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from string import ascii_lowercase

Words = Collection[str]
"""Common words, as `letters_of` returns them."""
LoadWords = Callable[[], Words]

WORDS = Path(__file__).with_name("common_words.txt.gz")
"""Words of zxcvbn (https://github.com/dwolfhub/zxcvbn-python, MIT licence), one on each line."""

MIN_WORD = 3
_MAX_WORD = 24
_MAX_WORDS = 2
_MAX_PERIOD = 6
_LETTER_COST, _OTHER_COST, _MAX_COST = 5, 1, 8
"""Cost of a letter and of another character beside the words, and the limit of their sum."""

_SEPARATORS = re.compile(r"[\s_.,:;/'-]+")
_SUBSTITUTED = str.maketrans("4@8({[<36910!|l$5+7%2", "aabcccceggioiiissttxz")
_ORDERS = (ascii_lowercase, "01234567890", "qwertyuiop", "asdfghjkl", "zxcvbnm")
_STEPS = tuple(frozenset(pairwise(order)) for each in _ORDERS for order in (each, each[::-1]))
"""Neighbours in each order and direction."""
_PRODUCT = ("remuda",)


def load_words() -> Words:
    """Return the words of the file. It takes some 20 ms: call it off the event loop."""
    return frozenset(gzip.decompress(WORDS.read_bytes()).decode().split("\n"))


def letters_of(text: str) -> str:
    """Return the letters and digits of a text, folded; digits and signs that stand for letters become these."""
    return "".join(letter for letter in _folded(text).translate(_SUBSTITUTED) if letter.isalnum())


def personal_words(subject: str, names: Iterable[str] = ()) -> frozenset[str]:
    """Return the words of a person: the address and its parts, and the names of organizations and of this product."""
    wholes = (subject, subject.partition("@")[0], *names, *_PRODUCT)
    parts = (part for whole in wholes for part in re.split(r"[\W_]+", whole))
    return frozenset(word for each in (*wholes, *parts) if len(word := letters_of(each)) >= MIN_WORD)


def is_common(password: str, words: Words, personal: Words = frozenset()) -> bool:
    """Tell whether a password consists of at most two common words and a few other characters."""
    folded = _folded(password.strip())
    longest = max(_MAX_WORD, *(len(word) for word in personal), 0)
    return any(_is_guessable(form, (words, personal), longest) for form in (folded, _SEPARATORS.sub("", folded)))


def _is_guessable(text: str, words: Sequence[Words], longest: int) -> bool:
    unit = text[: _period(text)]
    if len(unit) <= _MAX_PERIOD:
        return True
    return any(_has_few_words(each, words, longest) for each in (unit, unit[::-1]))


def _has_few_words(text: str, words: Sequence[Words], longest: int) -> bool:
    """Tell whether two words cover a text, but for what may remain.

    `costs[words]` is the lowest cost of what remains before a position, with so many words before it.
    """
    costs = [[_MAX_COST + 1] * (_MAX_WORDS + 1) for _ in range(len(text) + 1)]
    costs[0] = [0] * (_MAX_WORDS + 1)
    for begin, reached in enumerate(costs[:-1]):
        if min(reached) > _MAX_COST:
            continue
        _lower(costs[begin + 1], (cost + _cost(text[begin]) for cost in reached))
        for end in _ends(text, begin, words, longest):
            _lower(costs[end], (_MAX_COST + 1, *reached[:-1]))
    return min(costs[-1]) <= _MAX_COST


def _ends(text: str, begin: int, words: Sequence[Words], longest: int) -> Iterator[int]:
    """Return where a word or a run that begins here may end."""
    run = _run_end(text, begin)
    if run - begin >= MIN_WORD:
        yield run
    for end in range(begin + MIN_WORD, min(begin + longest, len(text)) + 1):
        part = text[begin:end].translate(_SUBSTITUTED)
        if any(part in each for each in words):
            yield end


def _run_end(text: str, begin: int) -> int:
    """Return where equal or consecutive characters end."""
    steps: Sequence[Collection[tuple[str, str]]] = (*_STEPS, {(text[begin], text[begin])})
    for at in range(begin + 1, len(text)):
        steps = [each for each in steps if (text[at - 1], text[at]) in each]
        if not steps:
            return at
    return len(text)


def _lower(costs: list[int], others: Iterable[int]) -> None:
    costs[:] = [min(pair) for pair in zip(costs, others, strict=True)]


def _cost(character: str) -> int:
    return _LETTER_COST if character.isalpha() else _OTHER_COST


def _period(text: str) -> int:
    """Return the length of the part that repeats, or of the text if none repeats at least twice."""
    borders = [0] * len(text)
    for at in range(1, len(text)):
        border = borders[at - 1]
        while border and text[at] != text[border]:
            border = borders[border - 1]
        borders[at] = border + (text[at] == text[border])
    period = len(text) - (borders[-1] if text else 0)
    return period if 2 * period <= len(text) else len(text)


def _folded(text: str) -> str:
    """Return a text without case, compatibility forms and accents."""
    decomposed = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold())
    return "".join(letter for letter in decomposed if not unicodedata.combining(letter))
