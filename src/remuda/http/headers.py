"""Headers that change what a request does, read under the rule that the documents state."""

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from remuda.http.responses import Header
from remuda.kernel.errors import Malformed

HEADER_PATTERN = "^[!-~]([ -~]{0,253}[!-~])?$"
"""What such a header looks like: visible characters, and blanks between them."""

NO_HEADERS: Mapping[str, str] = MappingProxyType({})
"""What a handler is given whose route declares none."""

_VALID = re.compile(HEADER_PATTERN.encode())


def read_header(headers: Mapping[bytes, bytes], name: str) -> str | None:
    """Return a header, or None if it was not sent."""
    value = headers.get(name.lower().encode())
    if value is None:
        return None
    if not _VALID.fullmatch(value):
        problem = "is not 1 to 255 visible ASCII characters"
        raise Malformed(f"{name} {problem}: send what was read, or leave it out.", [(name, problem)])
    return value.decode()


def read_declared(names: frozenset[bytes], sent: Iterable[Header]) -> Mapping[str, str]:
    """Return those of these headers that were sent. One that comes twice is refused: nobody can say which counts."""
    found: dict[str, str] = {}
    for name, value in sent:
        if name in names:
            text = name.decode()
            if text in found:
                problem = "is there more than once"
                raise Malformed(f"the header {text} {problem}: send it once.", [(text, problem)])
            found[text] = value.decode("latin-1")
    return found


def read_if_match(headers: Mapping[bytes, bytes], *, is_conditional: bool) -> str | None:
    """Return the state that the caller has seen, or None; refuse it where nothing would be held against it."""
    if not is_conditional and b"if-match" in headers:
        problem = "is not supported here"
        raise Malformed(f"If-Match {problem}, and would be ignored: leave it out.", [("If-Match", problem)])
    return read_header(headers, "If-Match")


def read_key(headers: Mapping[bytes, bytes], *, is_public: bool) -> str | None:
    """Return the idempotency key, or None; refuse it from strangers, who could not be told apart by it."""
    key = headers.get(b"idempotency-key")
    if is_public and key is not None:
        problem = "is not supported here"
        remedy = "leave it out, since nobody's key can be told from anybody else's"
        raise Malformed(f"Idempotency-Key {problem}: {remedy}.", [("Idempotency-Key", problem)])
    return None if key is None else key.decode("latin-1")
