"""What a quota ledger should do, seen by its callers: one kind of one organization."""

from dataclasses import dataclass, replace

OK, REFUSED, GONE = "ok", "refused", "gone"


@dataclass(frozen=True, slots=True)
class Allocate:
    amount: int
    name: str = ""
    """Set where the caller died, so that the ledger may take it back by itself later."""


@dataclass(frozen=True, slots=True)
class Expire:
    """The ledger rolls back what a dead caller took."""

    name: str


@dataclass(frozen=True, slots=True)
class Release:
    amount: int
    name: str = ""
    """Set where the caller died: it may still be carried out, until somebody is told that it is not."""


@dataclass(frozen=True, slots=True)
class Confirm:
    """Tells whether a release that a dead caller asked for was carried out; if it was not, it never will be."""

    name: str


@dataclass(frozen=True, slots=True)
class Change:
    held: int
    wanted: int


@dataclass(frozen=True, slots=True)
class SetLimit:
    limit: int


@dataclass(frozen=True, slots=True)
class Read:
    """Returns the limit and what is used."""


Op = Allocate | Expire | Release | Confirm | Change | SetLimit | Read


@dataclass(frozen=True, slots=True)
class State:
    limit: int
    used: int = 0
    doubtful: frozenset[tuple[str, int]] = frozenset()
    """What dead callers hold."""
    released: frozenset[str] = frozenset()
    """What was released for dead callers."""
    kept: frozenset[str] = frozenset()
    """What somebody was told is held still."""


@dataclass(frozen=True, slots=True)
class LedgerModel:
    """Never more than the limit, and nothing refused that fits."""

    limit: int

    def start(self) -> State:
        return State(self.limit)

    def step(self, state: State, op: Op) -> tuple[object, State] | None:
        match op:
            case Read():
                return (state.limit, state.used), state
            case Release() | Confirm():
                return _released(state, op) if isinstance(op, Release) else _confirmed(state, op)
            case Change(held, wanted):
                return _unless(wanted > held, state, replace(state, used=state.used - held + wanted))
            case SetLimit(limit):
                return _unless(limit < state.limit, state, replace(state, limit=limit))
            case Allocate(amount, name):
                doubtful = state.doubtful | ({(name, amount)} if name else set())
                return _unless(amount > 0, state, replace(state, used=state.used + amount, doubtful=doubtful))
            case Expire(name):
                return _expired(state, name)


def _released(state: State, op: Release) -> tuple[object, State] | None:
    if op.name in state.kept:
        return None
    released = state.released | ({op.name} if op.name else set())
    return OK, replace(state, used=state.used - op.amount, released=released)


def _confirmed(state: State, op: Confirm) -> tuple[object, State]:
    if op.name in state.released:
        return GONE, state
    return OK, replace(state, kept=state.kept | {op.name})


def _expired(state: State, name: str) -> tuple[object, State] | None:
    found = next((each for each in state.doubtful if each[0] == name), None)
    if found is None:
        return None
    return OK, replace(state, used=state.used - found[1], doubtful=state.doubtful - {found})


def _unless(is_worse: bool, before: State, after: State) -> tuple[object, State]:  # noqa: FBT001  it is the condition
    return (REFUSED, before) if is_worse and after.used > after.limit else (OK, after)
