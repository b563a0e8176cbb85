"""ID tokens that clients show us again, to say whom they mean (`id_token_hint`)."""

from remuda.identity.tokens.jwt import ID, IdClaims
from remuda.identity.tokens.service import Tokens
from remuda.kernel.errors import Unauthenticated


async def hinted(tokens: Tokens, token: str) -> IdClaims | None:
    """Return what an ID token of ours says, whenever it was made; None if it is not ours, and so says nothing."""
    try:
        return await tokens.read(token, ID) if token else None
    except Unauthenticated:
        return None
