"""Failed logins to an account: a delay that grows with them, and a report of them to the account's user.

Every failed attempt and every login with a password is a record of the log under the account's id, whether the account
exists or not: nothing that a caller sees, and no work that is done, reveals which exist. Failures since the last login
count for a day. After the first few, each must wait twice as long as the one before, at most a quarter of an hour. The
records outlive a restart, and all processes over a store share them.

A known browser, in which the user logged in before, is never delayed and its failures delay no other, so guessing
elsewhere does not lock a user out of it. A new password ends the delay, and the browser that set it is known. An
address is stored as a hash, only to be counted.
"""

import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec

from remuda.http.ratelimit import anonymous
from remuda.identity.login.browser_state import BrowserRequest
from remuda.identity.tokens.secrets import token_hash
from remuda.kernel.clock import Clock
from remuda.kernel.errors import TooMany
from remuda.store.logs import LOGINS, Log, Record

MAX_DELAY = timedelta(minutes=15)
"""Longest time between two attempts that a failed login causes."""

_COUNTED_FOR = timedelta(days=1)
_PAGE, _PAGES = 200, 5
_HASH_LENGTH = 16


class LoginDelayed(TooMany):
    """Raised for an attempt that comes too soon after failed ones; retry after Retry-After."""

    def __init__(self, retry_after_s: int) -> None:
        super().__init__(retry_after_s)
        self.message = (
            f"Too many logins to this account have failed: wait {retry_after_s} s, or log in with a browser in which "
            "you logged in before. An administrator can also give you a link to set a new password."
        )


class LoginRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """Attempt to log in with a password."""

    address: str
    """Hash of the client's network."""
    has_succeeded: bool = False
    is_known: bool = False
    """The browser was known to the account."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureReport:
    """Failed logins to an account since a login, or in the time for which they are stored."""

    since: datetime | None = None
    count: int = 0
    is_complete: bool = True
    """False if there are more."""
    last: datetime | None = None
    addresses: frozenset[str] = frozenset()


_DECODE = msgspec.json.Decoder(LoginRecord).decode


class FailedLogins:
    """Records of failed logins, and the delay after them."""

    def __init__(self, *, log: Log, clock: Clock, before_delay: int) -> None:
        self._log, self._clock, self._before_delay = log, clock, before_delay
        self._running: dict[str, int] = {}
        """Attempts that are being checked, by account. They count as failed until they are recorded."""

    @asynccontextmanager
    async def attempt(self, account: str, *, is_known: bool) -> AsyncIterator[None]:
        """Check a password in this context. Raise LoginDelayed if the attempt comes too soon."""
        if is_known:
            yield
            return
        running = self._running.get(account, 0)
        self._running[account] = running + 1
        try:
            await self._check(account, running)
            yield
        finally:
            self._running[account] -= 1
            if not self._running[account]:
                del self._running[account]

    def failure(self, browser: BrowserRequest, account: str) -> Record:
        return _record(browser, account, has_succeeded=False)

    def success(self, browser: BrowserRequest, account: str) -> Record:
        """Return the record of a login or a new password, which ends the delay."""
        return _record(browser, account, has_succeeded=True)

    async def report(self, account: str, *, before: datetime | None = None) -> FailureReport:
        """Return the failed logins since the last login, or the last one before this time."""
        last, count, addresses, position = None, 0, set[str](), None
        for _ in range(_PAGES):
            page = await self._log.read_back(LOGINS, account, before=position, limit=_PAGE)
            for entry in page.entries:
                record = _DECODE(entry.data)
                if not record.has_succeeded:
                    last, count = last or entry.time, count + 1
                    addresses.add(record.address)
                elif before is None or entry.time < before:
                    return FailureReport(since=entry.time, count=count, last=last, addresses=frozenset(addresses))
            position = page.next
            if position is None:
                break
        return FailureReport(count=count, is_complete=position is None, last=last, addresses=frozenset(addresses))

    async def _check(self, account: str, running: int) -> None:
        now = self._clock.now()
        failures = await self._counted(account, now)
        delay = self._delay(len(failures) + running)
        last = now if running else failures[0] if failures else now - delay
        if now < last + delay:
            raise LoginDelayed(max(1, math.ceil((last + delay - now).total_seconds())))

    async def _counted(self, account: str, now: datetime) -> list[datetime]:
        """Return the times of the failures that count for the delay, the latest first."""
        failures = []
        page = await self._log.read_back(LOGINS, account, limit=_PAGE)
        for entry in page.entries:
            record = _DECODE(entry.data)
            if record.has_succeeded or now - entry.time > _COUNTED_FOR:
                break
            if not record.is_known:
                failures.append(entry.time)
        return failures

    def _delay(self, failures: int) -> timedelta:
        doublings = failures - self._before_delay
        if doublings < 0:
            return timedelta()
        return min(timedelta(seconds=2 ** min(doublings, 32)), MAX_DELAY)


def address_hash(browser: BrowserRequest, account: str) -> str:
    """Return the hash of the client's network, which differs from account to account."""
    return token_hash(f"{account} {anonymous((browser.peer, 0))}")[:_HASH_LENGTH]


def _record(browser: BrowserRequest, account: str, *, has_succeeded: bool) -> Record:
    record = LoginRecord(
        address=address_hash(browser, account),
        has_succeeded=has_succeeded,
        is_known=bool(browser.known_browser.id_for(account)),
    )
    return Record(stream=LOGINS, subject=account, data=msgspec.Raw(msgspec.json.encode(record)))
