"""The context of a call: what a service needs to know besides what is asked for.

It travels with the call whether that comes over HTTP or from another service in the same process.
"""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from remuda.access.principal import Principal
from remuda.store.logs import Record


class Witness(Protocol):
    """Tells the audit of a change, in the change's own commit."""

    def __call__(self, plural: str, name: str, *, organization: str | None = None) -> Sequence[Record]:
        """Return the records for a change of the object with this plural, as paths have it, and this name.

        Say which organization the object belongs to where the path does not: its audit is where the record goes.
        """
        ...


def _nobody(plural: str, name: str, *, organization: str | None = None) -> Sequence[Record]:  # noqa: ARG001  a Witness
    return ()


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks, and for which request."""

    principal: Principal
    operation: str
    """The id of what this request does. Sent again under its idempotency key it is the same, so what a service names
    after it is not made twice."""
    key: str | None = None
    """The idempotency key that the caller chose, if it did. A service that calls another names its operation here."""
    trace_id: str = "0" * 32
    if_match: str | None = None
    """The state the caller has seen, as the ETag of a read."""
    witness: Witness = _nobody
    """Call it for the `log` of the write that carries the request out: neither is then kept without the other."""
