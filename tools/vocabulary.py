"""Retired words and names. `tests/test_vocabulary.py` rejects them; `python -m tools.words` lists where they stand."""

from collections.abc import Mapping

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

TEXT_WORDS = (*WORDS, *ACTORS, "answer, answers, answered, answering")
"""Words that stand in no page of the documentation, and in no text of the source."""

NAME_WORDS: tuple[str, ...] = (
    "answer, answers, answered",
    "connections cut",
    "edge",
    "given up, gave up",
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

COMPOUNDS: tuple[str, ...] = ("in place",)
"""Terms of the field that have such a word in them: an update in place."""

PACKAGE_NAME_WORDS: Mapping[str, tuple[str, ...]] = {
    "remuda.identity.quotas": ("head, heads", "row, rows"),
    "remuda.reconcile": ("breaker, breakers", "holders", "scan, scans", "wake, wakes, waking"),
    "remuda.store.readside": ("term, terms",),
}
"""The same for words that are right in other packages: a database has rows, a provider has a circuit breaker."""

_NAMES = """
Absences absences acting Again AllTold Asked Asking asking Assembled at_work AtWork Before before_of begun_compute
begun_identity begun_region check_every client_wire Cloud clouding Clouds Delivery doing Driver drivers
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
