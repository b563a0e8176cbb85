"""What a quota ledger should do, seen by its callers: one kind of one organization."""

from dataclasses import dataclass, replace

OK, REFUSED = "ok", "refused"


@dataclass(frozen=True, slots=True)
class Allocate:
    amount: int
    name: str = ""
    """Set where the caller died, so that the ledger may take it back by itself later."""


@dataclass(frozen=True, slots=True)
class Expire:
    """The ledger takes back what a dead caller took."""

    name: str


@dataclass(frozen=True, slots=True)
class Release:
    amount: int


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


Op = Allocate | Expire | Release | Change | SetLimit | Read


@dataclass(frozen=True, slots=True)
class State:
    limit: int
    used: int = 0
    doubtful: frozenset[tuple[str, int]] = frozenset()
    """What dead callers hold."""


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
            case Release(amount):
                return OK, replace(state, used=state.used - amount)
            case Change(held, wanted):
                return _unless(wanted > held, state, replace(state, used=state.used - held + wanted))
            case SetLimit(limit):
                return _unless(limit < state.limit, state, replace(state, limit=limit))
            case Allocate(amount, name):
                doubtful = state.doubtful | ({(name, amount)} if name else set())
                return _unless(amount > 0, state, replace(state, used=state.used + amount, doubtful=doubtful))
            case Expire(name):
                return _expired(state, name)


def _expired(state: State, name: str) -> tuple[object, State] | None:
    found = next((each for each in state.doubtful if each[0] == name), None)
    if found is None:
        return None
    return OK, replace(state, used=state.used - found[1], doubtful=state.doubtful - {found})


def _unless(is_worse: bool, before: State, after: State) -> tuple[object, State]:  # noqa: FBT001  it is the condition
    return (REFUSED, before) if is_worse and after.used > after.limit else (OK, after)
