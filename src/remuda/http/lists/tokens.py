"""Tokens for the place where a page of a list ended.

That place is the last object that was looked at, which may be one that the caller must not know of. So a token is
sealed: nobody can read it or make one, and it opens for the list and the caller that it was given to, and nowhere else.
"""

from typing import Any

import msgspec

from remuda.http.replies import Collection
from remuda.kernel.errors import Malformed, Unsealable
from remuda.kernel.sealing import Sealer
from remuda.kernel.secrets import Secret


class PageTokens:
    """The tokens of one caller at one path, or in one log."""

    __slots__ = ("_caller", "_sealer", "path")

    def __init__(self, sealer: Sealer, *, path: str, caller: str) -> None:
        self._sealer, self._caller = sealer, caller
        self.path = path

    def write(self, collection: Collection[Any, Any], place: str) -> str:
        """Return the token of a place in a collection."""
        return self._sealer.seal(Secret(place), context=self._context(collection))

    def read(self, collection: Collection[Any, Any], token: str) -> str:
        """Return the place, or raise Malformed if the token was not given to this caller for this list."""
        try:
            return self._sealer.open(token, context=self._context(collection)).reveal()
        except Unsealable:
            raise bad_token() from None

    def write_position(self, position: int) -> str:
        """Return the token of a position in a log."""
        return self._sealer.seal(Secret(str(position)), context=self._sealed_for())

    def read_position(self, token: str) -> int:
        """Return the position, or raise Malformed if the token was not given to this caller for this log."""
        try:
            return int(self._sealer.open(token, context=self._sealed_for()).reveal())
        except Unsealable:
            raise bad_token() from None

    def _context(self, collection: Collection[Any, Any]) -> str:
        return self._sealed_for(collection.kind.__name__, sorted(collection.labels.items()), collection.index)

    def _sealed_for(self, *listed: object) -> str:
        return msgspec.json.encode(("continue", self.path, self._caller, *listed)).decode()


def bad_token() -> Malformed:
    """Return the error for a token that is not one of this list."""
    problem = "is not a token of this list"
    return Malformed(f'invalid path/query element: "continue" {problem}, start without it', [("continue", problem)])
