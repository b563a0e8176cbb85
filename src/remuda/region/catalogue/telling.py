"""A provider's no, in the words of a client that wanted something of a server: 400, and what to wait for."""

from collections.abc import Awaitable
from typing import TypeVar

from remuda.kernel.errors import Malformed, NotFound
from remuda.providers.calls import Refused
from remuda.providers.contract.common import WrongState

AnswerT = TypeVar("AnswerT")


async def told(asking: Awaitable[AnswerT], otherwise: str) -> AnswerT:
    """Return what the provider answers; that the server cannot do it now is said as `otherwise`.

    A server that its provider does not have is one that is to come: it is being made, or replaced, or waits for room.
    """
    try:
        return await asking
    except WrongState:
        raise Malformed(otherwise) from None
    except NotFound:
        raise Malformed("server is not at its provider at the moment: wait until it is provisioned") from None
    except Refused as refusal:
        if refusal.outcome != "busy":
            raise
        raise Malformed("server is being worked on at its provider: try again in a moment") from None
