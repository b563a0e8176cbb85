"""What customers may expect of identity, wherever it runs, and what they need to ask it for anything."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from remuda.identity.settings import IdentitySettings
from remuda.kernel.clock import Clock
from remuda.kernel.randomness import Randomness
from remuda.store.objects import ResourceT
from tests.kit.asgi.contract import Reply
from tests.kit.sim_identity.facts import UNKNOWN
from tests.kit.sim_identity.history import GONE, THERE, IdentityHistory, Session, Token
from tests.kit.simulation.faults import Fires


class Machine(Protocol):
    """Where identity runs."""

    @property
    def clock(self) -> Clock:
        """Its time."""
        ...

    @property
    def randomness(self) -> Randomness:
        """Its chance."""
        ...

    @property
    def faults(self) -> Fires:
        """What may go wrong."""
        ...

    @property
    def is_down(self) -> bool:
        """The power is gone, and with it everything but what was made durable."""
        ...

    async def open(self) -> Any:
        """Return the store, with its log, as it was left."""
        ...

    async def close(self, store: Any) -> None:
        """Release a store."""
        ...


class Sends(Protocol):
    """Sends requests, as whoever has a token."""

    async def send(
        self,
        method: str,
        path: str,
        *,
        query: Any = (),
        body: Any = None,
        form: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Return the answer."""
        ...


class Expecting(ABC):
    """Identity as customers see it."""

    root_subject: str
    """Somebody who may do everything."""
    first_password: str
    """The password that everybody had at first."""

    def __init__(self, machine: Machine, settings: IdentitySettings) -> None:
        self.machine, self.settings = machine, settings
        self.history = IdentityHistory()

    @abstractmethod
    def client(self, token: str | None) -> Any:
        """Return the client (`Sends`) of whoever has a token, of one of the processes."""

    @abstractmethod
    async def root(self) -> str:
        """Return a token of somebody who may do everything."""

    @abstractmethod
    async def read(self, kind: type[ResourceT]) -> Sequence[ResourceT]:
        """Return all objects of a kind; none if the store does not answer."""

    @abstractmethod
    def is_undoing(self, subject: str) -> bool:
        """Tell whether an operation is open about this; where nobody can tell, it may be."""

    @property
    def clock_offset(self) -> float:
        """How far the clock on the wall is from the one that never jumps."""
        return round(self.machine.clock.now().timestamp() - self.machine.clock.monotonic(), 3)

    def is_in_time(self, claims: Mapping[str, Any]) -> bool:
        """Tell whether a token can be good now, by what it says."""
        return bool(claims["nbf"] <= self.machine.clock.now().timestamp() < claims["exp"])

    def is_alive(self, session: Session) -> bool:
        """Tell whether a session surely goes on."""
        ends = session.began_at + self.settings.refresh_token_lifetime.total_seconds() - 1
        return not session.may_have_ended and self.machine.clock.now().timestamp() < ends

    def may_be_good(self, token: Token) -> bool:
        """Tell whether a token can be good. One that was good before the clock was put back may still be."""
        if token.find_revocation or self.machine.clock.now().timestamp() >= token.claims["exp"]:
            return False
        if token.session is not None:
            return not token.session.has_ended
        if token.account:
            good = self.history.facts["token", "account", token.account].possible
            is_there = not self.history.facts[THERE, "account", token.account].is_surely(GONE)
            return is_there and bool({token.text, UNKNOWN} & good)
        return True

    def is_surely_good(self, token: Token) -> bool:
        """Tell whether a token must be good."""
        if token.may_be_revoked or not self.is_in_time(token.claims):
            return False
        if token.session is not None:
            return self.is_alive(token.session)
        if token.account:
            good = self.history.facts["token", "account", token.account]
            return good.is_surely(token.text) and not self.history.may_be_gone("account", token.account)
        return True
