"""What a bearer may do, and where it belongs."""

from dataclasses import dataclass

from remuda.identity.rights.service import Rights, Standing
from remuda.identity.tokens.bearers import Bearer

__all__ = ["Standings"]


@dataclass(frozen=True, slots=True)
class Standings:
    """Asks the rights room, in the way that fits the bearer."""

    rights: Rights

    async def of(self, bearer: Bearer) -> Standing:
        """Return how a bearer stands. The groups of an external issuer count at its own call, and not in a passport."""
        if bearer.account is not None:
            return await self.rights.of_account(bearer.account)
        if bearer.type == "system":
            return await self.rights.of_system(bearer.subject)
        if bearer.user is None:
            return await self.rights.of_outsider(bearer.subject, issuer=bearer.issuer)
        standing = await self.rights.of_user(bearer.user, issuer=bearer.issuer)
        return standing.only_in(bearer.organization) if bearer.organization else standing
