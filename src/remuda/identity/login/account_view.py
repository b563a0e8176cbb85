"""What the page of an account shows."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from remuda.identity.kinds.states import UserState


@dataclass(frozen=True, slots=True)
class MembershipRow:
    """An organization that somebody is in."""

    name: str
    state: UserState


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRow:
    """An application or a device that acts as somebody."""

    id: str
    client: str
    """What people call it."""
    began: datetime | None
    used: datetime | None
    """When it last got a new token, if it ever did."""
    is_from_here: bool
    """It was opened from the browser that shows the page, and ends with the login there."""

    def order(self) -> float:
        """Sort the newest first."""
        return _newest_first(self.began)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserRow:
    """A browser that somebody is logged in in."""

    id: str
    began: datetime | None
    provider: str
    """What people call the provider; nothing for a password."""

    def order(self) -> float:
        """Sort the newest first."""
        return _newest_first(self.began)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountView:
    """All of it."""

    email: str
    here: BrowserRow
    memberships: Sequence[MembershipRow]
    is_administrator: bool
    """Of the whole platform."""
    sessions: Sequence[SessionRow]
    elsewhere: Sequence[BrowserRow]
    has_password: bool


def _newest_first(moment: datetime | None) -> float:
    return -(moment or datetime.min.replace(tzinfo=UTC)).timestamp()
