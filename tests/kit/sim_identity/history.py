"""What customers asked of identity and what they were told: the facts that everything stored has to live up to."""

import base64
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Literal

import msgspec

from tests.kit.asgi.contract import Reply
from tests.kit.sim_identity.facts import Fact
from tests.kit.sim_identity.guarded import GuardedHistory

Key = tuple[str, ...]
"""Names a fact: what it is about, and of whom."""
Requests = Mapping[Key, Hashable]
Verdict = Literal["yes", "no", "unclear"]

THERE, GONE = "there", "gone"
_TOO_SLOW, _OUR_FAULT, _REFUSED = 408, 500, 400


@dataclass(frozen=True, slots=True)
class Payer:
    """Where something is; what is everywhere has no organization."""

    organization: str = ""
    project: str = ""


@dataclass(slots=True)
class Session:
    """A login that gave tokens."""

    id: str
    user: str
    login: str
    began_at: int
    """By the clock."""
    refresh: Fact
    is_public: bool = False
    """Its client has no secret."""
    used: list[str] = field(default_factory=list)
    """Refresh tokens that were good once."""
    may_have_ended: bool = False
    has_ended: bool = False


@dataclass(slots=True)
class Token:
    """An access token that somebody was given."""

    text: str = field(repr=False)
    claims: Mapping[str, Any]
    session: Session | None = None
    account: str = ""
    may_be_revoked: bool = False
    find_revocation: bool = False


@dataclass(slots=True)
class Code:
    """An authorization code, and how often it was brought back."""

    text: str
    user: str
    login: str
    tries: int = 0
    session: Session | None = None


class Asked:
    """Requests on their way."""

    def __init__(self, facts: Mapping[Key, Fact], requests: Mapping[Key, int], since: int) -> None:
        self.requests, self.since = requests, since
        self.verdict: Verdict = "unclear"
        self._facts = facts

    def reveal(self, value: Hashable) -> None:
        """Say what was got, where nobody could know before."""
        for key, number in self.requests.items():
            self._facts[key].reveal(number, value)

    def end(self) -> None:
        """Note how it came out."""
        for key, number in self.requests.items():
            if self.verdict == "yes":
                self._facts[key].granted(number)
            elif self.verdict == "no":
                self._facts[key].refused(number)


class IdentityHistory:
    """All of it."""

    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()
        self.operations: set[str] = set()
        """Those that have succeeded at least once."""
        self.moments = count(1)
        self.facts: defaultdict[Key, Fact] = defaultdict(lambda: Fact(self.moments))
        self.known: defaultdict[str, dict[str, Payer]] = defaultdict(dict)
        """What customers have heard of, by kind and id."""
        self.names: Iterator[int] = count(1)
        self.refused: set[str] = set()
        """Names of what was not made, surely."""
        self.subjects: set[str] = set()
        """Who may have become a user."""
        self.tokens: list[Token] = []
        self.sessions: list[Session] = []
        self.codes: list[Code] = []
        self.logged_out: dict[str, int] = {}
        """Logins in browsers that were ended, and when that was told."""
        self.spent: defaultdict[str, list[str]] = defaultdict(list)
        """Secrets that a client was given at some time."""
        self.leaving: set[str] = set()
        """Logins that somebody has asked to end."""
        self.choosing: Counter[str] = Counter()
        """Who is being given a password."""
        self.chosen: Counter[str] = Counter()
        """When somebody last was."""
        self.lapsing: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        """Rows that are rolled back unless they are confirmed: since when, and the request that stands for it."""
        self.secrets: set[str] = set()
        """What must be in no file."""
        self.bundles: list[Mapping[Key, int]] = []
        """Requests that come true together or not at all, and nobody knows which."""
        self.guarded = GuardedHistory()
        self._touching: Counter[str] = Counter()
        self._touched: Counter[str] = Counter()

    def now(self) -> int:
        """Return the present moment, for a customer who begins to ask."""
        return next(self.moments)

    def name(self, what: str) -> str:
        """Return a name that nothing else has."""
        return f"{what}-{next(self.names)}"

    @contextmanager
    def asking(self, requests: Requests) -> Iterator[Asked]:
        """Somebody asks for this, and says how it came out by the verdict."""
        since = self.now()
        asked = Asked(self.facts, {key: self.facts[key].ask(value) for key, value in requests.items()}, since)
        try:
            yield asked
        finally:
            asked.end()

    @contextmanager
    def placing(self, places: Mapping[tuple[str, str, str], bool], *touched: str) -> Iterator[Asked]:
        """Somebody decides who is in which group: `places` are kind, group and member, `touched` all of these.

        Others may decide about the same group or member meanwhile and not know of both: then nobody knows.
        """
        for each in touched:
            self._touching[each] += 1
        with self.asking({("member", *place): inside for place, inside in places.items()}) as asked:
            yield asked
        is_alone = all(self._touching[each] == 1 and self._touched[each] < asked.since for each in touched)
        for place, inside in places.items():
            if not is_alone:
                fact = self.facts["member", *place]
                fact.unclear(fact.ask(not inside, since=asked.since))
        for each in touched:
            self._touching[each] -= asked.verdict != "unclear"
            self._touched[each] = self.now()

    def made(self, kind: str, id_: str, place: Payer, *, since: int, **said: Hashable) -> None:
        """Somebody who asked then was told that something is there, and what it is like."""
        self.known[kind][id_] = place
        for what, value in {THERE: THERE, **said}.items():
            fact = self.facts[what, kind, id_]
            fact.granted(fact.ask(value, since=since))

    def may_be_gone(self, kind: str, id_: str) -> bool:
        """Tell whether something need not be there, if it ever was."""
        organization = self.known[kind].get(id_, Payer()).organization
        is_left = bool(organization) and not self.facts[THERE, "organization", organization].is_surely(THERE)
        return is_left or not self.facts[THERE, kind, id_].is_surely(THERE)

    def settle(self) -> None:
        """A process has ended, and with it everything that it was at."""
        for fact in (*self.facts.values(), *(session.refresh for session in self.sessions)):
            fact.settle()
        self._touching.clear()
        self.choosing.clear()


def verdict_of(reply: Reply) -> Verdict:
    """Tell whether a request was carried out."""
    if reply.status >= _OUR_FAULT or reply.status == _TOO_SLOW:
        return "unclear"
    return "no" if reply.status >= _REFUSED else "yes"


def claims_of(token: str) -> Mapping[str, Any]:
    """Return what a token says, unverified."""
    payload = token.split(".")[1]
    said: Mapping[str, Any] = msgspec.json.decode(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return said
