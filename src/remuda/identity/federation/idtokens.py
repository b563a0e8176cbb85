"""ID tokens of external providers: believed only if all of it fits.

The signature is by a key that the provider publishes, under an asymmetric algorithm; issuer, audience and authorized
party are those of this login; the nonce is the one that this browser was sent there with; it is of now. A clock may
differ from ours by a minute.
"""

import hmac
from collections.abc import Sequence

import msgspec
from joserfc import jws
from joserfc.errors import JoseError

from remuda.identity.federation.provider_client import PublicKey, Upstream, broken
from remuda.kernel import encoding as base64url
from remuda.kernel.clock import Clock
from remuda.kernel.secrets import Secret

_ALGORITHMS = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "Ed25519", "EdDSA"),
)
_LEEWAY_S = 60
_LONGEST = 32_768


class IdToken(msgspec.Struct, frozen=True):
    """What it says about who logged in."""

    iss: str
    sub: str
    aud: str | tuple[str, ...]
    exp: float
    iat: float
    nonce: str = ""
    azp: str | None = None
    email: str = ""
    email_verified: bool | str = False
    xms_edov: bool | int | str = False
    """Microsoft's word for it: the owner of the address's domain has been verified."""

    @property
    def audience(self) -> tuple[str, ...]:
        """For whom it is."""
        return (self.aud,) if isinstance(self.aud, str) else self.aud


class _Head(msgspec.Struct, frozen=True):
    kid: str | None = None


async def read_id_token(
    token: Secret, *, issuer: str, client: str, nonce: str, upstream: Upstream, clock: Clock
) -> IdToken:
    """Return what an ID token says, or raise OAuthRefusal if it is not to be believed."""
    text = token.reveal()
    if len(text) > _LONGEST:
        raise broken("its ID token is too long")
    said = _verified(text, await upstream.keys(issuer, _head(text).kid))
    if problem := _problem(said, issuer=issuer, client=client, nonce=nonce, now=clock.now().timestamp()):
        raise broken(f"its ID token {problem}")
    return said


def _head(text: str) -> _Head:
    try:
        return msgspec.json.decode(base64url.decode(text.partition(".")[0]), type=_Head)
    except (ValueError, RecursionError):
        raise broken("its ID token is malformed") from None


def _verified(text: str, keys: Sequence[PublicKey]) -> IdToken:
    for key in keys:
        try:
            payload = jws.deserialize_compact(text.encode(), key, algorithms=list(_ALGORITHMS)).payload
            return msgspec.json.decode(payload, type=IdToken)
        except (msgspec.DecodeError, RecursionError):
            break
        except (JoseError, ValueError, TypeError):
            continue  # of another kind, or of another provider's
    raise broken("its ID token is not signed by one of its keys in a way that we take, or says too little")


def _problem(said: IdToken, *, issuer: str, client: str, nonce: str, now: float) -> str:
    is_ours_alone = len(said.audience) == 1 and said.azp is None
    demands = {
        "is from another issuer": said.iss == issuer,
        "is for another client": client in said.audience,
        "was made for another party": is_ours_alone or said.azp == client,
        "is of another login": hmac.compare_digest(said.nonce.encode(), nonce.encode()),
        "has expired": now - _LEEWAY_S < said.exp,
        "is from the future": said.iat < now + _LEEWAY_S,
    }
    return next((problem for problem, is_met in demands.items() if not is_met), "")
