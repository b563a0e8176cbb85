"""Vocabulary of the source: words and names that were retired, and how modules, predicates and docstrings are named.

While the source is being renamed, `vocabulary_allowance.json` says how much of each is left in the whole tree. A count
above its allowance fails, and so does one below it, so that the allowance shrinks with every commit:
`REMUDA_WRITE_GOLDEN=1 pytest tests/test_vocabulary.py` lowers it, and never raises it. What is not in the file is
not allowed at all; when nothing is left, the file goes. `python -m tools.words WORD` lists where a word stands.

No name of the reference contract has a retired word in it, so none needs an exception.
"""

import ast
import gc
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import pytest

from tools.shape import homonyms
from tools.source import (
    Module,
    Piece,
    docstrings,
    gerund_modules,
    mutating_predicates,
    opens_with_a_question,
    other_files,
    pieces_of,
    predicates,
    read_modules,
    untyped_predicates,
)
from tools.words import Position, find_words, is_name, matches, pieces

ALLOWANCE = Path(__file__).with_name("vocabulary_allowance.json")
LONGEST_FILE = 500

WORDS: tuple[str, ...] = (
    "anew",
    "asker, askers",
    "assembly, assemblies, assemble, assembles, assembled, assembling",
    "bell, bells",
    "clockwork",
    "combiner, combiners",
    "departure, departures, departed",
    "desk, desks",
    "destruction, destructions",
    "duty, duties",
    "errand, errands",
    "familiar",
    "footing, footings",
    "give back, gives back, gave back, given back, giving back",
    "ground, grounds",
    "held for good",
    "held the loop, holds the loop",
    "house, houses, household",
    "in care",
    "in hand",
    "judge, judges, judged, judging, judgement",
    "law, laws",
    "leftover, leftovers",
    "let go, lets go, letting go",
    "livery",
    "look after, looks after, looked after, looking after",
    "look at everything, looks at everything, looked at everything",
    "made again, make again, makes again, making again",
    "meadow, meadows",
    "mend, mends, mended, mending",
    "odd server, odd servers, odd match, odd matches",
    "paddock, paddocks",
    "patience",
    "people",
    "pulse, pulses",
    "put together, puts together",
    "ranch",
    "refuse, refuses, refusing, refusal, refusals",
    "retelling",
    "rights",
    "room, rooms",
    "roster, rosters",
    "seat, seats",
    "shelf, shelves, shelved",
    "sight, sights, sighted, sighting, sightings",
    "small server",
    "stamp, stamps",
    "stray, strays",
    "tack room",
    "take back, takes back, took back, taken back, taking back",
    "takes it along, taken along",
    "tray, trays",
    "unmake, unmakes, unmade, unmaking",
    "unsought",
    "untold",
    "wakeable",
    "watchman, watchmen",
    "wish, wishes",
    "witness, witnesses, witnessed, witnessing",
)
"""Words that stand nowhere in the source, each with its other forms."""

ACTORS = ("anybody", "everybody", "nobody", "somebody", "whoever")
"""Words for actors that a text should name: caller, client, controller, operator, provider, user."""

NAME_WORDS: tuple[str, ...] = (
    "answer, answers, answered",
    "connections cut",
    "edge",
    "given up, gave up",
    "handlers",
    "hold, held",
    "holding, holdings",
    "lane, lanes",
    "look, looked, looking",
    "marked",
    "news",
    "odd",
    "operations obstructed",
    "pass, passes",
    "peek, peeked, peeking",
    "place, places, placed, placing",
    "promise, promised, promises",
    "refused",
    "reply, replies",
    "right",
    "said",
    "says",
    "scan finds",
    "sentence, sentences",
    "server made",
    "settle, settles, settling",
    "stands, standing",
    "told",
    "turn, turns",
    "vouched, vouches, vouching",
    "wanted",
)
"""Words that may stand in a sentence, but in no identifier, module name, key, path or other text without spaces."""

PACKAGE_NAME_WORDS: Mapping[str, tuple[str, ...]] = {
    "remuda.identity.quotas": ("head, heads", "row, rows"),
    "remuda.reconcile": ("breaker, breakers", "holders", "scan, scans", "wake, wakes, waking"),
    "remuda.store.readside": ("term, terms",),
}
"""The same for words that are right in other packages: a database has rows, a provider has a circuit breaker."""

_NAMES = """
Absences absences acting Again AllTold Asked Asking asking Assembled at_work AtWork Before before_of begun_compute
begun_identity begun_region check_every client_wire Cloud clouding Clouds clouds Delivery doing Driver drivers
DriverSettings Exit Finds first_looks_per_s FirstStart Flight Followed followed Following following Freshness
give_up hand_of Here holder_of IdentityLink ImageDriver IN_CARE intent_life is_founded is_gone is_overtaken
_is_there is_there Joining Keeping Kept _Kept Keys Landed Late let_others_run Life links Lives lives Looking Making
may_come Noun nouns OURS OwnerHolds Passes Passing Past Recent RegionLink RoleBook Scan scan_found ScanSettings
seeing SelfDescription Shown Slots stuck_after Tagged Term There Together turn_of TurnQuery Turns untag Upstream
upstream usage_kept Verbs verbs Visit Waking waking WatchHere WatchThere Welcome welcome Where wire
"""
NAMES = frozenset(_NAMES.split())
"""Identifiers, and keys of the same spelling, that are gone; other names may have their words."""

_MODULES = """
absences answers askers asking assembling assembly called charging clockwork clouds combining control controllers
delivery departures desk doing driver duties edge ending entry errands familiar following footing going gone ground
handlers heads holders holdings in_hand judging keeping kept lanes leaving leftovers linking links lives looking
making mending nouns passes passing past patience peeking people places placing projecting pulse recent refusals
replies retelling rights room rooms rosters rows scans seeing seen settling shelf sight sightings slots small stamps
standing strays telling term terms together tray turns unmaking upstream verbs visits waking wanting where wire
"""
MODULES = frozenset(_MODULES.split())
"""Modules and packages that are gone."""

NAME_PATTERNS = (r"Called[A-Z]\w*", r"\w*[a-z]Seen", r"Seen\w*")
"""Families of such names."""

PACKAGE_NAMES: Mapping[str, frozenset[str]] = {
    "remuda.http": frozenset({"Watched", "within"}),
    "remuda.identity.login": frozenset({"Entry"}),
    "remuda.reconcile": frozenset({"Run"}),
}
"""Identifiers that are gone in one package and right in others: an operation has runs, a log has entries."""


@pytest.fixture(scope="module", autouse=True)
def _without_garbage_collection() -> Iterator[None]:
    """Halve the time: the collector would walk all syntax trees again and again. They go when the file is done."""
    gc.disable()
    yield
    for each in (modules, source, matches):
        each.cache_clear()
    gc.enable()


@cache
def modules() -> list[Module]:
    return read_modules()


@cache
def source() -> Sequence[Piece]:
    return tuple(pieces(modules(), other_files()))


def pieces_below(package: str) -> list[Piece]:
    """Return the pieces of a package. A package that is gone would check nothing: name its successor instead."""
    found = {module.path for module in modules() if f"{module.name}.".startswith(f"{package}.")}
    assert found, f"there is no package {package}: name the one that took its place"
    return [piece for piece in source() if piece.path in found]


def with_forms(entries: Iterable[str]) -> dict[str, Sequence[str]]:
    split = ([form.strip() for form in entry.split(",")] for entry in entries)
    return {key: forms for key, *forms in split}


def exact_names(names: Iterable[str], among: Iterable[Piece]) -> dict[str, list[Position]]:
    found: dict[str, list[Position]] = {name: [] for name in names}
    for piece in among:
        if piece.text in found and is_name(piece):
            found[piece.text].append(Position(piece.path, piece.line))
    return found


def allowed() -> dict[str, dict[str, int]]:
    return json.loads(ALLOWANCE.read_text()) if ALLOWANCE.exists() else {}


def check(section: str, found: Mapping[str, Sequence[object]]) -> None:
    """Compare what was found, by check, with what is allowed of it."""
    counts = {key: len(positions) for key, positions in found.items()}
    if os.environ.get("REMUDA_WRITE_GOLDEN"):
        lower(section, counts)
    limits = allowed().get(section, {})
    assert not set(limits) - set(counts), f"{ALLOWANCE.name} allows what is not looked for: {set(limits) - set(counts)}"
    above = [explain(key, found[key], limits.get(key, 0)) for key in counts if counts[key] > limits.get(key, 0)]
    assert not above, f"{section}: more than allowed\n" + "\n".join(above)
    below = {key: counts[key] for key, limit in limits.items() if counts[key] < limit}
    assert not below, f"{section}: fewer than allowed, {below}: run this file with REMUDA_WRITE_GOLDEN=1 to lower it"


def lower(section: str, counts: Mapping[str, int]) -> None:
    """Lower what is allowed to what was found. What grew stays forbidden."""
    everything = allowed()
    lowered = {key: min(limit, counts[key]) for key, limit in everything.get(section, {}).items() if counts.get(key)}
    everything = {name: limits for name, limits in (everything | {section: lowered}).items() if limits}
    if everything:
        ALLOWANCE.write_text(json.dumps(everything, indent=1, sort_keys=True) + "\n")
    else:
        ALLOWANCE.unlink(missing_ok=True)


def explain(key: str, found: Sequence[object], limit: int) -> str:
    shown = [str(position) for position in found[:20]]
    return f"{key}: {len(found)}, of which {limit} are allowed; {', '.join(shown)}{' …' * (len(found) > len(shown))}"


def test_retired_words_stand_nowhere() -> None:
    check("words", find_words(with_forms(WORDS), source()))


def test_texts_name_the_actor() -> None:
    check("actors", find_words(with_forms(ACTORS), source()))


def test_retired_words_stand_in_no_name() -> None:
    check("words in names", find_words(with_forms(NAME_WORDS), source(), where=is_name))


@pytest.mark.parametrize("package", PACKAGE_NAME_WORDS)
def test_words_of_other_packages_stand_in_no_name_of_this_one(package: str) -> None:
    found = find_words(with_forms(PACKAGE_NAME_WORDS[package]), pieces_below(package), where=is_name)
    check(f"words in names of {package}", found)


def test_retired_names_are_gone() -> None:
    check("names", exact_names(NAMES, source()))


def test_families_of_retired_names_are_gone() -> None:
    names = [piece for piece in source() if piece.kind == "name"]
    check(
        "families of names",
        {
            pattern: [Position(piece.path, piece.line) for piece in names if re.fullmatch(pattern, piece.text)]
            for pattern in NAME_PATTERNS
        },
    )


@pytest.mark.parametrize("package", PACKAGE_NAMES)
def test_names_of_other_packages_are_gone_from_this_one(package: str) -> None:
    check(f"names of {package}", exact_names(PACKAGE_NAMES[package], pieces_below(package)))


def test_predicates_return_a_bool_and_change_nothing() -> None:
    found = predicates(modules())
    assert found, "there are predicates to look at"
    check(
        "predicates",
        {
            "do not return a bool": [f"{each.module}.{each.node.name}" for each in untyped_predicates(found)],
            "change something": [f"{each.module}.{each.node.name}" for each in mutating_predicates(found)],
        },
    )


def test_docstrings_open_with_what_they_define() -> None:
    opening = [
        (owner, piece)
        for module in modules()
        for owner, piece in docstrings(module)
        if opens_with_a_question(piece.text)
    ]
    kinds = {"modules": ast.Module, "classes": ast.ClassDef, "functions": ast.FunctionDef | ast.AsyncFunctionDef}
    found = {
        name: [Position(*piece[2:]) for owner, piece in opening if isinstance(owner, kind)]
        for name, kind in kinds.items()
    }
    others = [Position(*piece[2:]) for owner, piece in opening if not isinstance(owner, tuple(kinds.values()))]
    check("docstrings that open with a question", found | {"others": others})


def test_modules_are_named_after_nouns() -> None:
    check(
        "modules",
        {
            "named by a gerund": gerund_modules(modules()),
            "named by a retired word": [module.name for module in modules() if module.stem in MODULES],
        },
    )


def test_a_public_class_name_has_one_meaning() -> None:
    several, _ = homonyms(modules())
    check("classes", {"of the same name": several})


def test_files_are_short() -> None:
    check("files", {f"above {LONGEST_FILE} lines": [each.path for each in modules() if each.lines > LONGEST_FILE]})


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
