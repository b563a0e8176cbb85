"""Which of cloud-init's formats a payload has: its first line says so.

cloud-init itself compares beginnings, longest first; here the whole first word counts, so that `#cloud-config-archive`
can never be taken for a `#cloud-config`, whatever the order.
"""

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
"""How a payload may begin, and the MIME type of what does."""

_SCRIPT = b"#!"
_TEMPLATE = b"## template: jinja"


class Unrecognized(Exception):  # noqa: N818  it says what the payload is
    """Raised when cloud-init would not know what to do with a payload; `reason` never repeats what is in it."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def content_type_of(payload: bytes) -> str | None:
    """Return the MIME type that a payload's first line tells, or None where it tells none."""
    line = payload.split(b"\n", 1)[0]
    if line.startswith(_SCRIPT):
        return FIRST_LINES[_SCRIPT]
    if line.rstrip() == _TEMPLATE:
        return FIRST_LINES[_TEMPLATE]
    first_word = line.split(maxsplit=1)[0] if line[:1].strip() else b""
    return FIRST_LINES.get(first_word)


def unsupported() -> Unrecognized:
    """Return the error for a payload that says in no way what it is."""
    known = ", ".join(line.decode() for line in FIRST_LINES)
    return Unrecognized(
        "unsupported userData format: first line must identify a cloud-init payload "
        f"({known}, or the headers of a MIME multipart message)"
    )
