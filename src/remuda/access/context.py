"""The context of a call: what a service needs to know besides what is asked for.

It travels with the call whether that comes over HTTP or from another service in the same process.
"""

from collections.abc import Callable, Sequence

import msgspec

from remuda.access.principal import Principal
from remuda.store.logs import Record

__all__ = ["Context", "Witness"]

Witness = Callable[[str, str], Sequence[Record]]
"""Returns the audit records for a change of the object with this plural and name, to be written in its commit."""


def _nobody(_plural: str, _name: str) -> Sequence[Record]:
    return ()


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks, and for which request."""

    principal: Principal
    operation: str
    """The id of what this request does. Sent again under its idempotency key it is the same, so what a service names
    after it is not made twice."""
    trace_id: str = "0" * 32
    if_match: str | None = None
    """The state the caller has seen, as the ETag of a read."""
    witness: Witness = _nobody
    """Call it for the `log` of the write that carries the request out: neither is then kept without the other."""
