"""Who is logged in, in which browser."""

from datetime import datetime

from remuda.identity.kinds.common import OURS, VERSION
from remuda.store.kinds import Index, Kind
from remuda.store.objects import Resource, StoredStruct


class BrowserLoginSpec(StoredStruct, frozen=True):
    """A login that a browser can use again, for every client, without asking its user."""

    user: str = ""
    cookie_hash: str = ""
    """The SHA-256 of the cookie that the browser has for it, in hex."""
    provider: str = ""
    """The id of the provider at which the user logged in; empty for a password of ours."""
    authenticated: datetime | None = None
    """When the user last proved who they are."""
    expires: datetime | None = None
    ended: datetime | None = None
    """Since when it is over, by logging out; it is deleted when every session that came of it has ended, too."""

    def is_good(self, now: datetime) -> bool:
        """Tell whether it is neither ended nor over."""
        return self.ended is None and self.expires is not None and now < self.expires


class BrowserLogin(Resource, frozen=True):
    """A login in one browser. A label says of which user."""

    spec: BrowserLoginSpec = BrowserLoginSpec()


BROWSER_LOGIN = Kind(
    type=BrowserLogin,
    group=OURS,
    version=VERSION,
    plural="browserlogins",
    indexes=(Index(name="cookie", values=lambda login: [login.spec.cookie_hash]),),
    columns={"User": ".spec.user"},
)
"""Logins in browsers, found by the cookie, and by the label of their user."""
