"""What an operator asks for, sealed.

Whoever can read the file with the sealing keys could read and write everything anyway. So what proves an operator is a
request sealed with those keys, in a context of its own. It is good for a minute, and says for whom the token is, for
how long, who asks and why.
"""

from datetime import datetime, timedelta

import msgspec

from remuda.kernel.clock import Clock
from remuda.kernel.errors import Unauthenticated, Unsealable
from remuda.kernel.randomness import Randomness
from remuda.kernel.sealing import Sealer
from remuda.kernel.secrets import Secret

DEFAULT_LIFE = timedelta(minutes=15)
"""How long a token is good unless somebody asks for less or more."""
LONGEST_LIFE = timedelta(hours=1)
"""How long it is good at most."""

_CONTEXT = "identity/operator-request"
_GOOD_FOR = timedelta(seconds=60)
_STRANGE = "The request was not sealed with this system's keys: run the command with the data directory of this one."
_STALE = "The request is older than a minute, or from a clock that is ahead: run the command again."


class OperatorRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What an operator asks for."""

    nonce: str
    made: datetime
    subject: str
    """A user, by e-mail address or id."""
    life_s: int
    operator: str
    """Who asks, as the operating system calls them."""
    reason: str = ""


def new_request(
    *, clock: Clock, randomness: Randomness, subject: str, life: timedelta, operator: str, reason: str
) -> OperatorRequest:
    return OperatorRequest(
        nonce=randomness.token_bytes(16).hex(),
        made=clock.now(),
        subject=subject,
        life_s=int(life.total_seconds()),
        operator=operator,
        reason=reason,
    )


def seal_request(request: OperatorRequest, sealer: Sealer) -> Secret:
    """Return a request as it is sent: whoever has this text has the token, for a minute."""
    return Secret(sealer.seal(Secret(msgspec.json.encode(request).decode()), context=_CONTEXT))


def open_request(sealed: Secret, sealer: Sealer, now: datetime) -> OperatorRequest:
    """Return a request that was sent, or raise Unauthenticated if it is not ours or not of this minute."""
    try:
        opened = sealer.open(sealed.reveal(), context=_CONTEXT)
        request = msgspec.json.decode(opened.reveal(), type=OperatorRequest)
    except (Unsealable, msgspec.MsgspecError):
        raise Unauthenticated(_STRANGE) from None
    if not timedelta() <= now - request.made <= _GOOD_FOR:
        raise Unauthenticated(_STALE)
    return request
