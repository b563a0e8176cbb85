"""Hash chain of the audit file: each line is authenticated together with the one before it.

A line is a JSON object whose last field is `mac`: the HMAC-SHA-256, in hexadecimal, of all bytes of the line before it.
Among them is `previous`, the MAC of the line before, and `sequence`, which counts the lines from 1 over all files. So a
writer without the key cannot change, insert, remove or reorder lines without being found. The key is derived from the
root of the sealing keys, which no rotation changes.

Lines at the end can be removed without breaking the chain. The head, kept in the data directory, says how far the
chain has got: its sequence, the position in the log up to which records were written, and the MAC of the last line. It
is authenticated with the same key.
"""

import hmac
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

import msgspec

from remuda.kernel.errors import Invalid
from remuda.kernel.files import write_private
from remuda.kernel.sealing import Sealer
from remuda.store.logs import StreamEntry

GENESIS = "0" * 64
"""MAC of the line before the first one."""
_PURPOSE = "audit chain"
_MAC_LENGTH = 64
_MARK = b',"mac":"'
_TAIL = b'"}'
_END = len(_MARK) + _MAC_LENGTH + len(_TAIL)


class ChainLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line, without its MAC."""

    sequence: int
    position: int
    """Position of the record in the log of the store."""
    time: datetime
    subject: str
    """`organization/<id>` or `system`."""
    record: msgspec.Raw
    previous: str


class Link(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a chain, to which the next line is linked."""

    sequence: int = 0
    position: int = 0
    mac: str = GENESIS


class _Head(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    link: Link
    tag: str


_DECODE = msgspec.json.Decoder(ChainLine).decode


class Chain:
    """Chain with the key of one installation."""

    def __init__(self, sealer: Sealer) -> None:
        self._key = sealer.derived_key(_PURPOSE)

    def lines(self, after: Link, entries: Iterable[StreamEntry]) -> tuple[bytes, Link]:
        """Return the lines of these records, each with its line feed, and the new end of the chain."""
        written: list[bytes] = []
        for entry in entries:
            line = ChainLine(
                sequence=after.sequence + 1,
                position=entry.position,
                time=entry.time,
                subject=entry.subject,
                record=entry.data,
                previous=after.mac,
            )
            body = msgspec.json.encode(line)[:-1]
            mac = self._mac(body)
            written.append(body + _MARK + mac.encode() + _TAIL + b"\n")
            after = Link(sequence=line.sequence, position=line.position, mac=mac)
        return b"".join(written), after

    def read(self, line: bytes) -> tuple[ChainLine, Link] | None:
        """Return a line without its line feed, and the end of the chain after it; None if it is not authentic."""
        body, end = line[:-_END], line[-_END:]
        mac = end[len(_MARK) : -len(_TAIL)]
        if not (end.startswith(_MARK) and end.endswith(_TAIL)):
            return None
        if not hmac.compare_digest(self._mac(body).encode(), mac):
            return None
        found = _DECODE(body + b"}")
        return found, Link(sequence=found.sequence, position=found.position, mac=mac.decode())

    def write_head(self, path: Path, link: Link) -> None:
        """Replace the head atomically, or raise OSError."""
        write_private(path, msgspec.json.encode(_Head(link, self._mac(msgspec.json.encode(link)))))

    def read_head(self, path: Path) -> Link | None:
        """Return the head, or None if there is none. Raise Invalid if it is not authentic."""
        try:
            head = msgspec.json.decode(path.read_bytes(), type=_Head)
        except FileNotFoundError:
            return None
        except OSError as error:
            cause = error.strerror or str(error)
            raise Invalid(str(path), f"cannot be read ({cause})", remedy="check its permissions") from None
        except (msgspec.MsgspecError, ValueError):
            raise _not_authentic(path) from None
        if not hmac.compare_digest(self._mac(msgspec.json.encode(head.link)).encode(), head.tag.encode()):
            raise _not_authentic(path)
        return head.link

    def _mac(self, content: bytes) -> str:
        return hmac.digest(self._key, content, "sha256").hex()


def _not_authentic(path: Path) -> Invalid:
    remedy = "restore it from a backup, or remove it, after which lines that were cut off are not found"
    return Invalid(str(path), "was changed, or written with other keys", remedy=remedy)
