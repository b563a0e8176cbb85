"""What has had its time is forgotten, and the signing keys are renewed: controllers, each woken when something is due.

They lead like every controller, so of several processes one does this. Until it gets to something nothing depends on
it: whatever has expired is refused by those who read it.

What must not be believed again is remembered for longer than that (`REMEMBERED`): a clock that is put back makes what
has ended good once more, but for what we know better of.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar

from remuda.identity.kinds.oauth import AuthorizationCode, BrowserLogin, DeviceGrant, UsedAssertion
from remuda.identity.kinds.tokens import Revocation, Session, SigningKey
from remuda.identity.tokens.keys import NAME, SigningKeys
from remuda.identity.tokens.sessions import Sessions
from remuda.kernel.clock import Clock
from remuda.kernel.errors import NotFound
from remuda.reconcile.controller import Controller
from remuda.reconcile.ports import ControllerSettings, ReconcilePorts
from remuda.reconcile.results import Done, ReconcileContext, Result
from remuda.resources.crud import find
from remuda.store.contract import Store

REMEMBERED = timedelta(days=1)
"""For how long past their end revocations and used assertions are remembered: a clock can be put back by so much."""

_NO_LONGER = timedelta()
_PASSING: Mapping[type[Any], timedelta] = {
    AuthorizationCode: _NO_LONGER,
    DeviceGrant: _NO_LONGER,
    UsedAssertion: REMEMBERED,
    Revocation: REMEMBERED,
}

ExpiringT = TypeVar("ExpiringT", AuthorizationCode, DeviceGrant, UsedAssertion, Revocation)


@dataclass(frozen=True, slots=True)
class Forgetting(Generic[ExpiringT]):
    """Deletes objects of one kind when they have expired, `longer` ago."""

    kind: type[ExpiringT]
    store: Store
    clock: Clock
    longer: timedelta = _NO_LONGER

    async def __call__(self, key: str, run: ReconcileContext) -> Result:
        """Look at one of them."""
        found = await find(self.store, self.kind, key)
        if found is None:
            return Done()
        left_s = _left_s(found.spec.expires, self.clock, self.longer)
        if left_s > 0:
            run.requeue_after(left_s)
        else:
            run.acted = True
            with suppress(NotFound):  # it was used up in this very moment
                await self.store.delete(self.kind, key, uid=found.uid, version=found.version)
        return Done()


@dataclass(frozen=True, slots=True)
class SessionKeeper:
    """Clears sessions away that have ended, and forgets those that are over."""

    sessions: Sessions

    async def __call__(self, key: str, run: ReconcileContext) -> Result:
        sessions = self.sessions
        session = await find(sessions.store, Session, key)
        if session is None:
            return Done()
        left_s = _left_s(session.spec.expires, sessions.clock)
        if session.spec.ended is not None:
            run.acted = True
            await sessions.clear(session)
        elif left_s > 0:
            run.requeue_after(left_s)
        else:
            run.acted = True
            await sessions.forget(session)
        return Done()


@dataclass(frozen=True, slots=True)
class LoginKeeper:
    """Sees logouts through, and forgets browser logins that are over."""

    sessions: Sessions

    async def __call__(self, key: str, run: ReconcileContext) -> Result:
        store = self.sessions.store
        login = await find(store, BrowserLogin, key)
        if login is None:
            return Done()
        left_s = _left_s(login.spec.expires, self.sessions.clock)
        if login.spec.ended is None and left_s > 0:
            run.requeue_after(left_s)
            return Done()
        run.acted = True
        if login.spec.ended is not None:
            await self.sessions.end_of_login(login.spec.user, login.name)
        with suppress(NotFound):  # whoever logged out did the same in this very moment
            await store.delete(BrowserLogin, key, uid=login.uid, version=login.version)
        return Done()


@dataclass(frozen=True, slots=True)
class Renewing:
    """Makes a new signing key when the last one is old enough, and forgets those that verify nothing any more."""

    keys: SigningKeys

    async def __call__(self, key: str, run: ReconcileContext) -> Result:
        if key == NAME:
            before = self.keys.stamp
            run.requeue_after(await self.keys.rotate())
            run.acted = self.keys.stamp != before
        return Done()


def controllers(
    ports: ReconcilePorts, sessions: Sessions, keys: SigningKeys, *, settings: ControllerSettings | None = None
) -> Sequence[Controller]:
    """Return the controllers of the rooms tokens and oauth, for the service to start and stop."""
    return (
        Controller("signing-keys", Renewing(keys), kind=SigningKey, ports=ports, settings=settings),
        Controller("sessions", SessionKeeper(sessions), kind=Session, ports=ports, settings=settings),
        Controller("browserlogins", LoginKeeper(sessions), kind=BrowserLogin, ports=ports, settings=settings),
        *(
            Controller(
                f"{kind.__name__.lower()}s",
                Forgetting(kind, ports.store, ports.clock, longer),
                kind=kind,
                ports=ports,
                settings=settings,
            )
            for kind, longer in _PASSING.items()
        ),
    )


def _left_s(expires: datetime | None, clock: Clock, longer: timedelta = _NO_LONGER) -> float:
    """Return in how many seconds something goes. What does not say when it ends has been damaged, and goes now."""
    return 0.0 if expires is None else (expires + longer - clock.now()).total_seconds()
