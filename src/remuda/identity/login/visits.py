"""A browser's request, as far as all pages need to know it, and what they keep for it between two requests."""

from dataclasses import dataclass
from urllib.parse import urlencode

import msgspec

from remuda.identity.federation.code_flow import Ticket
from remuda.identity.login.authorization import AuthorizationRequest
from remuda.identity.login.browser_state import Familiar


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """One request of a browser."""

    cookie: str
    """What it was given to be known again, or nothing."""
    peer: str
    trace_id: str
    verb: str
    route: str
    """What it asked for: the method, and the path as the route table has it."""
    familiar: Familiar
    """Who has logged in in it before."""


class Pending(msgspec.Struct, frozen=True, omit_defaults=True):
    """A login that was begun, and what it is for: a client's request, a device's code, or else one's own account."""

    request: AuthorizationRequest | None = None
    device: str = ""
    expected: str = ""
    """The subject of whom the client expects, if it said so (`id_token_hint`): somebody else will not do."""

    def expects(self, subject: str) -> bool:
        """Tell whether somebody will do."""
        return self.expected in {"", subject}


class Flight(msgspec.Struct, frozen=True):
    """A login that somebody is away for, at a provider."""

    pending: Pending
    ticket: Ticket


class Pairing(msgspec.Struct, frozen=True):
    """A question about a device, put to whoever is logged in by this cookie: another login has another one."""

    device: str


class Overview(msgspec.Struct, frozen=True):
    """What somebody was shown of their account, and can do there."""


class Leaving(msgspec.Struct, frozen=True, omit_defaults=True):
    """A question about logging out, put to whoever is logged in by this cookie, and where to go after."""

    location: str = ""


def query_of(sent: msgspec.Struct) -> str:
    """Return the fields of a form as a query, for a browser that is to come again by itself."""
    return urlencode([(name, value) for name, value in msgspec.structs.asdict(sent).items() if value])
