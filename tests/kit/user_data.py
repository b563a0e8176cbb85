"""Writing user data for tests, each by hand or as Python's own mail library does it."""

import gzip
from email.mime.base import MIMEBase
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText

CONFIG = b"#cloud-config\npackages: [nginx]\n"
SCRIPT = b"#!/bin/sh\necho hello\n"

BY_HAND = b"""\
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="//"

--//
Content-Type: text/cloud-config; charset="us-ascii"
Content-Disposition: attachment; filename="config.yaml"

#cloud-config
packages: [nginx]

--//
Content-Type: text/x-shellscript

#!/bin/sh
echo hello

--//--
"""
"""Two parts, `CONFIG` and `SCRIPT`, the first with a name."""


def mail(*parts: MIMEBase, subtype: str = "mixed") -> bytes:
    """Return a message as Python's mail library writes it."""
    message = MIMEMultipart(subtype)
    for part in parts:
        message.attach(part)
    return message.as_bytes()


def text(content: str, subtype: str, charset: str = "us-ascii") -> MIMEText:
    """Return a part of a message."""
    return MIMEText(content, subtype, charset)


def nested(levels: int) -> bytes:
    """Return a message of messages, that many levels deep."""
    message = MIMEMultipart()
    message.attach(text("#cloud-config\n", "cloud-config"))
    for _ in range(levels - 1):
        outer = MIMEMultipart()
        outer.attach(message)
        message = outer
    return message.as_bytes()


def packed(content: bytes) -> bytes:
    """Return content in gzip, the same bytes each time."""
    return gzip.compress(content, mtime=0)
