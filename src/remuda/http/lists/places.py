"""Places: from where on a reader follows a collection, as it keeps them for us.

The id of an event and the version of a list are such places. Each is a version and a short digest of what the reader
could see then. Changes alone do not tell of what comes into sight, or leaves it, because rights have changed; so a
place is good under equal rights, whoever's they are, and gone under any other: begin anew there.
"""

import hashlib
import re
from collections.abc import Iterable

import msgspec

from remuda.access.principal import AccessList, Permission
from remuda.kernel.errors import Gone, Malformed, RemudaError

_PLACE = re.compile(r"(.+)-([0-9a-f]{16})")
_DIGEST_BYTES = 8


class SeenOtherwise(Gone):
    """Raised when a reader would go on from what it saw under other rights; list, then watch from the list."""

    def __init__(self, kind: str, version: str) -> None:
        super().__init__(kind, version)
        RemudaError.__init__(
            self,
            "Rights have changed since, so changes alone do not tell what there is to see: "
            "list again, then watch from the version of that list.",
        )


class Places:
    """The places of readers who have these rights."""

    __slots__ = ("_digest",)

    def __init__(self, access: AccessList) -> None:
        self._digest = _digest(access)

    def write(self, version: str) -> str:
        """Return the place where a version was seen."""
        return f"{version}-{self._digest}"

    def read(self, place: str) -> str:
        """Return the version of a place, whoever saw it; raise Malformed if it is no place."""
        found = _PLACE.fullmatch(place)
        if found is None:
            raise bad_place()
        return found[1]

    def check(self, place: str, kind: str) -> None:
        """Raise Gone if a place was seen under other rights."""
        if not place.endswith(f"-{self._digest}"):
            raise SeenOtherwise(kind, self.read(place))


def bad_place() -> Malformed:
    """Return the error for what is not a place in this collection."""
    problem = "is not an id of this stream"
    return Malformed(f"Last-Event-ID {problem}: leave it out to begin anew.", [("Last-Event-ID", problem)])


def _digest(access: AccessList) -> str:
    organizations = sorted(access.organizations.items())
    facts = (
        _plain(access.everywhere),
        [
            (
                name,
                _plain(held.permissions),
                [(project, _plain(some)) for project, some in sorted(held.projects.items())],
            )
            for name, held in organizations
        ],
    )
    return hashlib.blake2b(msgspec.json.encode(facts), digest_size=_DIGEST_BYTES).hexdigest()


def _plain(permissions: Iterable[Permission]) -> list[tuple[str, str]]:
    return sorted((each.endpoint, each.verb) for each in permissions)
