"""Multipart MIME messages, parsed strictly and in linear time, and the formats of cloud-init payloads.

Python's own parser repairs broken messages, recurses without limit and takes quadratic time for the parameters of a
header. Here headers are read in one pass, and bodies are split strictly: every delimiter line counts, the closing one
is required, every part must be readable, and the number of parts, levels and parameters is limited. The first word of a
payload determines its format, so `#cloud-config-archive` is never taken for `#cloud-config`.
"""

import base64
import binascii
import quopri
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from string import whitespace
from urllib.parse import unquote

FIRST_LINES = {
    b"#cloud-config": "text/cloud-config",
    b"#!": "text/x-shellscript",
    b"#cloud-boothook": "text/cloud-boothook",
    b"#cloud-config-archive": "text/cloud-config-archive",
    b"#cloud-config-jsonp": "text/cloud-config-jsonp",
    b"#include": "text/x-include-url",
    b"#include-once": "text/x-include-once-url",
    b"#part-handler": "text/part-handler",
    b"## template: jinja": "text/jinja2",
}
"""First lines of payloads, and their MIME types."""

_SCRIPT = b"#!"
_TEMPLATE = b"## template: jinja"


class UnrecognizedUserData(Exception):  # noqa: N818  the name describes the payload
    """Raised when cloud-init would not recognize a payload; `reason` quotes nothing of it."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def content_type_of(payload: bytes) -> str | None:
    """Return the MIME type that a payload's first line names, or None."""
    line = payload.split(b"\n", 1)[0]
    if line.startswith(_SCRIPT):
        return FIRST_LINES[_SCRIPT]
    if line.rstrip() == _TEMPLATE:
        return FIRST_LINES[_TEMPLATE]
    first_word = line.split(maxsplit=1)[0] if line[:1].strip() else b""
    return FIRST_LINES.get(first_word)


def unsupported() -> UnrecognizedUserData:
    known = ", ".join(line.decode() for line in FIRST_LINES)
    return UnrecognizedUserData(
        "unsupported userData format: first line must identify a cloud-init payload "
        f"({known}, or the headers of a MIME multipart message)"
    )


DEEPEST = 8
"""Largest nesting of messages."""

_MAX_PARTS = 256
_MAX_HEADERS = 8192
_MAX_PARAMETERS = 16
_VERSION_WITHIN = 4096  # cloud-init searches no further for it
_HEADERS = re.compile(rb"(?:[!-9;-~]+:[^\r\n]*\r?\n(?:[ \t][^\r\n]*\r?\n)*)*(?P<rest>\r?\n|\Z)")
_FIRST_HEADER = re.compile(rb"[!-9;-~]+:")
_WHITESPACE = whitespace.encode()
_FOLD = re.compile(r"\r?\n(?=[ \t])")
_TYPE = re.compile(r"[!-.0-:<-~]+/[!-.0-:<-~]+")
_PARAMETER = re.compile(r';\s*([^\s;="]+)\s*=\s*(?:"((?:[^"\\]|\\.)*+)"|([^;"]*+))')


@dataclass(frozen=True, slots=True)
class Entity:
    """A message or a part: its headers, by their names in lower case, and its undecoded body."""

    headers: Mapping[str, str]
    body: bytes

    @property
    def content_type(self) -> str:
        """The MIME type in lower case; text/plain if there is none."""
        declared = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        return declared if _TYPE.fullmatch(declared) else "text/plain"

    @property
    def is_multipart(self) -> bool:
        return self.content_type.startswith("multipart/")

    @property
    def filename(self) -> str | None:
        return self.parameter("content-disposition", "filename") or self.parameter("content-type", "name") or None

    def parameter(self, header: str, name: str) -> str:
        """Return a parameter of a header, one of the first ones, or an empty string."""
        for found in islice(_PARAMETER.finditer(self.headers.get(header, "")), _MAX_PARAMETERS):
            value = re.sub(r"\\(.)", r"\1", found[2]) if found[2] is not None else found[3].strip()
            if found[1].lower() == name:
                return value
            if found[1].lower() == f"{name}*":  # with its character set (RFC 2231)
                return unquote(value.rpartition("'")[2])
        return ""

    def word(self, header: str) -> str:
        """Return a header of one word, in lower case."""
        return self.headers.get(header, "").strip().lower()

    def content(self) -> bytes:
        """Return the decoded body, or raise ValueError."""
        match self.word("content-transfer-encoding"):
            case "" | "7bit" | "8bit" | "binary":
                return self.body
            case "base64":
                return base64.b64decode(self.body.translate(None, _WHITESPACE), validate=True)
            case "quoted-printable":
                return quopri.decodestring(self.body)
            case _:
                raise ValueError("unknown transfer encoding")


@dataclass(frozen=True, slots=True)
class Multipart:
    """A split multipart body: its boundary, its parts, and the position of the closing delimiter."""

    boundary: bytes
    parts: tuple[Entity, ...]
    end: int


def looks_like_headers(payload: bytes) -> bool:
    """Return whether a payload begins like a message."""
    return _FIRST_HEADER.match(payload) is not None


def read_message(payload: bytes) -> tuple[Entity, Multipart]:
    """Return a multipart message and its split body, or raise UnrecognizedUserData; `leaves` reads the parts."""
    message = _entity(payload)
    if message is None or not message.is_multipart:
        raise unsupported()
    split = _split(message)
    if b"mime-version:" not in payload[:_VERSION_WITHIN].lower():
        raise UnrecognizedUserData("multipart userData needs a MIME-Version header")
    if not _is_utf8(payload):
        raise UnrecognizedUserData("multipart userData is not UTF-8")
    return message, split


def leaves(split: Multipart, deepest: int = DEEPEST) -> Iterator[tuple[Entity, bytes]]:
    """Yield every part without parts of its own, with its content, in order, or raise UnrecognizedUserData."""
    for number, leaf in enumerate(_walk(split, deepest)):
        if number == _MAX_PARTS:
            raise _too_many()
        yield leaf


def _walk(split: Multipart, deepest: int) -> Iterator[tuple[Entity, bytes]]:
    for number, part in enumerate(split.parts, 1):
        if not part.is_multipart:
            yield part, _content(part, number)
        elif deepest == 1:
            raise UnrecognizedUserData("multipart userData is nested too deep")
        else:
            yield from _walk(_split(part), deepest - 1)


def _content(part: Entity, number: int) -> bytes:
    try:
        return part.content()
    except (ValueError, binascii.Error):
        raise _unreadable(number) from None


def _split(message: Entity) -> Multipart:
    boundary = _boundary(message)
    if message.word("content-transfer-encoding") not in ("", "7bit", "8bit", "binary"):
        raise UnrecognizedUserData("multipart userData cannot be encoded as a whole")
    start: int | None = None
    parts: list[Entity] = []
    # The line break before a delimiter makes the search fast: it looks for fixed bytes, which do not overlap.
    delimiter = re.compile(rb"\n--" + re.escape(boundary) + rb"(?P<close>--)?[ \t]*+\r?$", re.MULTILINE)
    for found in delimiter.finditer(b"\n" + message.body):
        if start is not None:
            parts.append(_part(message.body[start : found.start()], len(parts) + 1))
        if found["close"]:
            break
        if len(parts) == _MAX_PARTS:
            raise _too_many()
        start = found.end()  # in the body it is one less, and the line break follows
    else:
        raise UnrecognizedUserData("multipart userData has no closing boundary")
    if not parts:
        raise UnrecognizedUserData("multipart userData has no parts")
    return Multipart(boundary, tuple(parts), found.start())


def _part(written: bytes, number: int) -> Entity:
    # The line break before a delimiter belongs to the delimiter.
    part = _entity(written.removesuffix(b"\n").removesuffix(b"\r"))
    if part is None or not written.endswith(b"\n"):
        raise _unreadable(number)
    return part


def _entity(payload: bytes) -> Entity | None:
    found = _HEADERS.match(payload, 0, _MAX_HEADERS + len(b"\r\n"))
    if found is None or (not found["rest"] and found.end() < len(payload)):
        return None
    return Entity(_headers(found[0]), payload[found.end() :])


def _headers(text: bytes) -> Mapping[str, str]:
    """Return headers by name in lower case; the first one of a name counts."""
    lines = _FOLD.sub("", text.decode("utf-8", "surrogateescape")).split("\n")
    pairs = (line.partition(":") for line in reversed(lines) if line)
    return {name.lower(): value.strip() for name, _, value in pairs}


def _boundary(message: Entity) -> bytes:
    boundary = message.parameter("content-type", "boundary").rstrip()
    if not boundary:
        raise UnrecognizedUserData("multipart userData boundary missing")
    if not boundary.isascii() or not boundary.isprintable():
        raise UnrecognizedUserData("multipart userData boundary is malformed")
    return boundary.encode()


def _is_utf8(payload: bytes) -> bool:
    try:
        payload.decode()
    except UnicodeDecodeError:
        return False
    return True


def _too_many() -> UnrecognizedUserData:
    return UnrecognizedUserData(f"multipart userData has more than {_MAX_PARTS} parts")


def _unreadable(number: int) -> UnrecognizedUserData:
    return UnrecognizedUserData(f"multipart userData part {number} cannot be read")
