"""Adding our part to a server's user data: it makes sshd trust the certificates of one authority.

The user's parts come first and ours last, so that theirs are applied as if ours were not there. cloud-init lets the
keys of a later cloud-config replace those of an earlier one unless that says how to merge, so ours says: append.

Nothing of the user's is altered. A multipart/mixed message gets our part before its end; a message of another kind, or
a single payload, becomes the first part of a new message. The boundary is derived from the content, so the same input
gives the same bytes.
"""

import base64
import hashlib
import re

import yaml

from remuda.cloudinit.multipart import content_type_of, read_message

PART_NAME = "unikorn-ssh-certificate-authority"
"""What our part is called in a message."""

_KEYS_PATH = "/etc/ssh/trusted-user-ca-keys.pub"
_CLOUD_CONFIG = f"""\
#cloud-config
merge_how:
- {{name: list, settings: [append]}}
- {{name: dict, settings: [no_replace, recurse_list]}}
write_files:
- path: {_KEYS_PATH}
  owner: root:root
  permissions: '0644'
  content: %s
- path: /etc/ssh/sshd_config.d/90-unikorn-trusted-user-ca.conf
  owner: root:root
  permissions: '0644'
  content: "TrustedUserCAKeys {_KEYS_PATH}\\n"
runcmd:
- [sh, -c, systemctl reload-or-restart sshd || systemctl reload-or-restart ssh]
"""
_LONGEST_LINE = 998
_BEYOND_MAIL = re.compile(rb"[^\t\n -~]")


def augmented(data: bytes, public_key: str) -> bytes:
    """Return user data, checked before, with the part that trusts this authority's key behind it."""
    ours = _cloud_config(public_key)
    if not data:
        return ours
    part = _headers("text/cloud-config", "7bit", PART_NAME) + ours
    told = content_type_of(data)
    if told is not None:
        return _mixed(_wrapped(told, data), part)
    message, split = read_message(data)
    if message.headers.get_content_subtype() != "mixed":
        return _mixed(data, part)
    place = len(data) - len(message.body) + split.end
    newline = b"\r\n" if data[:place].endswith(b"\r\n") else b"\n"
    inserted = b"--" + split.boundary + b"\n" + part + b"\n"
    return data[:place] + inserted.replace(b"\n", newline) + data[place:]


def _cloud_config(public_key: str) -> bytes:
    content = yaml.safe_dump(f"{public_key}\n", default_style='"', width=float("inf"))
    return (_CLOUD_CONFIG % content.strip()).encode()


def _wrapped(content_type: str, data: bytes) -> bytes:
    """Return a payload as a part, readable where mail can carry it as it is, and to the byte in any case."""
    if _BEYOND_MAIL.search(data) or max(map(len, data.split(b"\n"))) > _LONGEST_LINE:
        return _headers(content_type, "base64") + base64.encodebytes(data)
    return _headers(content_type, "7bit") + data


def _headers(content_type: str, encoding: str, name: str = "") -> bytes:
    lines = [f"Content-Type: {content_type}", "MIME-Version: 1.0", f"Content-Transfer-Encoding: {encoding}"]
    if name:
        lines.append(f'Content-Disposition: attachment; filename="{name}"')
    return "\n".join([*lines, "", ""]).encode()


def _mixed(*parts: bytes) -> bytes:
    boundary = _boundary(*parts)
    head = b'Content-Type: multipart/mixed; boundary="' + boundary + b'"\nMIME-Version: 1.0\n\n'
    return head + b"".join(b"--" + boundary + b"\n" + part + b"\n" for part in parts) + b"--" + boundary + b"--\n"


def _boundary(*parts: bytes) -> bytes:
    """Return a boundary that occurs in no part: nobody can write a text that has its own hash in it."""
    return b"remuda-" + hashlib.sha256(b"\n".join(parts)).hexdigest()[:32].encode()
