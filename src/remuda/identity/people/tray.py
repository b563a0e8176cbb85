"""The tray: where a step leaves a new token for whoever runs the operation.

What an operation is asked to do is stored, and a token must not be. Nothing is lost with the memory: an operation whose
process dies is undone, and its token was never shown to anybody.
"""

from remuda.identity.tokens.service import Issued

__all__ = ["Tray"]


class Tray:
    """New tokens by the operations that they were made for."""

    def __init__(self) -> None:
        self._issued: dict[str, Issued] = {}

    def put(self, operation: str, issued: Issued) -> None:
        """Leave a token."""
        self._issued[operation] = issued

    def take(self, operation: str) -> Issued | None:
        """Take a token away; there is none if the operation was done earlier."""
        return self._issued.pop(operation, None)
