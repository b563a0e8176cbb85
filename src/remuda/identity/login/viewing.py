"""Who looks at a page that is not identity's own: whoever is logged in in that browser, with that one's rights.

It is the same one, with the same rights, as a token would have that came of the same login, and for as long as the
login is good. Only what cannot be asked for from another site, and changes nothing, may be answered on the cookie's
word: there is no token in the request that another site could not have sent along.
"""

from dataclasses import dataclass

from remuda.access.principal import Principal
from remuda.identity.login.browser_sessions import Logins
from remuda.identity.login.cookies import BrowserCookie
from remuda.identity.rbac.service import Rights
from remuda.identity.tokens.footing import organization_vouching
from remuda.kernel.errors import Unauthenticated
from remuda.store.contract import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewers:
    """Knows them by the cookies of their browsers."""

    store: Store
    cookie: BrowserCookie
    logins: Logins
    rights: Rights

    async def find(self, cookies: str) -> Principal:
        """Return who is logged in in the browser that sent these cookies, or raise Unauthenticated."""
        value = self.cookie.read(cookies)
        known = await self.logins.find(value) if value else None
        if known is None:
            raise Unauthenticated("nobody is logged in in this browser")
        organization = await organization_vouching(self.store, known.login.spec.provider)
        standing = await self.rights.of_user(known.user)
        if organization:
            standing = standing.only_in(organization)
        return Principal(
            subject=known.user.spec.subject,
            type="user",
            access=standing.access,
            organizations=standing.organizations,
            expires=known.login.spec.expires,
            vouched_by=organization or None,
        )
