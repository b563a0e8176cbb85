"""Controllers that delete expired objects and rotate the signing keys.

One process does this at a time. Nothing depends on it, since readers reject expired objects. Revocations and what was
used are kept for longer (`GRACE`), so that a clock that is set back does not make them valid again. Used states, which
anyone can create by a login, are kept for an hour.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar

from remuda.identity.kinds.oauth import AuthorizationCode, BrowserLogin, DeviceGrant, UsedAssertion, UsedState
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

GRACE = timedelta(days=1)
"""Time for which revocations and used assertions are kept after their expiry."""

_NO_GRACE = timedelta()
_STATE_GRACE = timedelta(hours=1)
_EXPIRING: Mapping[type[Any], timedelta] = {
    AuthorizationCode: _NO_GRACE,
    DeviceGrant: _NO_GRACE,
    UsedAssertion: GRACE,
    UsedState: _STATE_GRACE,
    Revocation: GRACE,
}

ExpiringT = TypeVar("ExpiringT", AuthorizationCode, DeviceGrant, UsedAssertion, UsedState, Revocation)


@dataclass(frozen=True, slots=True)
class ExpiryController(Generic[ExpiringT]):
    """Deletes objects of one kind at some time after their expiry."""

    kind: type[ExpiringT]
    store: Store
    clock: Clock
    grace: timedelta = _NO_GRACE

    async def __call__(self, key: str, context: ReconcileContext) -> Result:
        found = await find(self.store, self.kind, key)
        if found is None:
            return Done()
        remaining_s = _remaining_s(found.spec.expires, self.clock, self.grace)
        if remaining_s > 0:
            context.requeue_after(remaining_s)
        else:
            context.acted = True
            with suppress(NotFound):  # it was used meanwhile
                await self.store.delete(self.kind, key, uid=found.uid, version=found.version)
        return Done()


@dataclass(frozen=True, slots=True)
class SessionController:
    """Clears ended sessions, and deletes expired ones."""

    sessions: Sessions

    async def __call__(self, key: str, context: ReconcileContext) -> Result:
        sessions = self.sessions
        session = await find(sessions.store, Session, key)
        if session is None:
            return Done()
        remaining_s = _remaining_s(sessions.end_time(session), sessions.clock)
        if session.spec.ended is not None:
            context.acted = True
            await sessions.clear(session)
        elif remaining_s > 0:
            context.requeue_after(remaining_s)
        else:
            context.acted = True
            await sessions.forget(session)
        return Done()


@dataclass(frozen=True, slots=True)
class LoginController:
    """Completes logouts, and deletes expired browser logins."""

    sessions: Sessions

    async def __call__(self, key: str, context: ReconcileContext) -> Result:
        store = self.sessions.store
        login = await find(store, BrowserLogin, key)
        if login is None:
            return Done()
        end = login.spec.end_time(self.sessions.settings.browser_idle_limit)
        remaining_s = _remaining_s(end, self.sessions.clock)
        if login.spec.ended is None and remaining_s > 0:
            context.requeue_after(remaining_s)
            return Done()
        context.acted = True
        if login.spec.ended is not None:
            await self.sessions.end_of_login(login.spec.user, login.name)
        with suppress(NotFound):  # the logout did the same meanwhile
            await store.delete(BrowserLogin, key, uid=login.uid, version=login.version)
        return Done()


@dataclass(frozen=True, slots=True)
class KeyRotation:
    """Rotates the signing keys."""

    keys: SigningKeys

    async def __call__(self, key: str, context: ReconcileContext) -> Result:
        if key == NAME:
            before = self.keys.version
            context.requeue_after(await self.keys.rotate())
            context.acted = self.keys.version != before
        return Done()


def controllers(
    ports: ReconcilePorts, sessions: Sessions, keys: SigningKeys, *, settings: ControllerSettings | None = None
) -> Sequence[Controller]:
    return (
        Controller("signing-keys", KeyRotation(keys), kind=SigningKey, ports=ports, settings=settings),
        Controller("sessions", SessionController(sessions), kind=Session, ports=ports, settings=settings),
        Controller("browserlogins", LoginController(sessions), kind=BrowserLogin, ports=ports, settings=settings),
        *(
            Controller(
                f"{kind.__name__.lower()}s",
                ExpiryController(kind, ports.store, ports.clock, grace),
                kind=kind,
                ports=ports,
                settings=settings,
            )
            for kind, grace in _EXPIRING.items()
        ),
    )


def _remaining_s(expires: datetime | None, clock: Clock, grace: timedelta = _NO_GRACE) -> float:
    """Return the seconds until an object is deleted. One without an expiry is damaged, and is deleted now."""
    return 0.0 if expires is None else (expires + grace - clock.now()).total_seconds()
