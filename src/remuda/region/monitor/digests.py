"""Digests of what a provider was seen to have: names and versions of servers, in parts of a few servers each.

Two listings have the same digests if every server has the same version in both. One that has changed, come or gone
makes its part another, and the rest of that part suspect: with 100,000 servers that is a dozen. Only what was looked at
is remembered: a part in which a server still waits for its turn has the digest 0, which agrees with nothing.
"""

from array import array
from collections import Counter
from hashlib import blake2b
from zlib import crc32

_PARTS = 8_192
_WRAP = 1 << 32
_NOTHING = bytes(4 * _PARTS)


class Digests:
    """The digests of one provider's servers, kept up to date as those change."""

    def __init__(self, remembered: bytes = b"") -> None:
        """Begin with what was remembered; without that, or with anything else, nothing was."""
        self._sums = array("I", remembered if len(remembered) == len(_NOTHING) else _NOTHING)
        self._waiting: Counter[int] = Counter()

    def add(self, name: str, version: str) -> None:
        """Count a server in."""
        self._move(name, _number(name, version))

    def drop(self, name: str, version: str) -> None:
        """Count a server out that was counted in."""
        self._move(name, -_number(name, version))

    def wait(self, name: str) -> None:
        """A server is to be looked at."""
        self._waiting[_part(name)] += 1

    def looked(self, name: str) -> None:
        """A server that was to be looked at has been."""
        part = _part(name)
        self._waiting[part] -= 1
        if not self._waiting[part]:
            del self._waiting[part]

    def agree(self, other: "Digests", name: str) -> bool:
        """Tell whether all servers of the part that this one is in are the same to both."""
        part = _part(name)
        return self._sums[part] == other.of_part(part) != 0

    def of_part(self, part: int) -> int:
        return self._sums[part]

    def to_bytes(self) -> bytes:
        """Return what is worth remembering, which may be nothing."""
        sums = self._sums[:]
        for part in self._waiting:
            sums[part] = 0
        return sums.tobytes() if any(sums) else b""

    def _move(self, name: str, number: int) -> None:
        part = _part(name)
        self._sums[part] = (self._sums[part] + number) % _WRAP


def _part(name: str) -> int:
    return crc32(name.encode()) % _PARTS


def _number(name: str, version: str) -> int:
    return int.from_bytes(blake2b(f"{name} {version}".encode(), digest_size=4).digest(), "big")
