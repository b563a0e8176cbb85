"""Rules of SSH certificate authorities: validation of the public key, stored objects and responses.

A public key is one line of OpenSSH's `authorized_keys`, without options: `type base64 [comment]`. It is decoded, and
its type must be the one that the line says: sshd ignores an invalid line, which would lock out all users. A line
without a comment is stored in its canonical form, one with a comment as it was sent, trimmed. Error messages are those
that clients know, and do not repeat the key.
"""

import base64
import binascii
import re
from typing import NamedTuple

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_ssh_public_key

from remuda.access.principal import Principal
from remuda.http.responses import etag_view
from remuda.kernel.errors import Invalid
from remuda.region.authorities.schema import AuthorityCreate, AuthorityRead, AuthoritySpecWire
from remuda.region.kinds.authorities import AUTHORITY, SSHCertificateAuthority, SSHCertificateAuthoritySpec
from remuda.resources.conventions import API_V2, API_VERSION, CONTROLLER_FINALIZER, ORGANIZATION, PROJECT
from remuda.resources.metadata import new_metadata, new_tags, read_project_metadata, stored_tags, writable_metadata
from remuda.resources.schema import MetadataWrite

AUTHORITY_KEY_TYPES = frozenset(
    {"ssh-ed25519", "ssh-rsa", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521"}
)

_OTHER_TYPES = frozenset(
    {
        "ssh-dss",
        "sk-ssh-ed25519@openssh.com",
        "sk-ecdsa-sha2-nistp256@openssh.com",
        "sk-ssh-ed25519-cert-v01@openssh.com",
        "sk-ecdsa-sha2-nistp256-cert-v01@openssh.com",
        "ssh-dss-cert-v01@openssh.com",
        *(f"{each}-cert-v01@openssh.com" for each in AUTHORITY_KEY_TYPES),
    }
)
_MAX_LINE = 16384
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")
_OPTIONS = re.compile(r'(?:[^\s"]|"(?:\\.|[^"\\])*")+[ \t]+(?P<key>.+)')
_LENGTH_BYTES = 4


class _Line(NamedTuple):
    type: str
    blob: bytes
    comment: str


def authority_key(text: str) -> str:
    """Return the key in its stored form, or raise Invalid."""
    trimmed = text.strip()
    if not trimmed:
        raise _invalid("public key must be specified")
    first, *others = re.split(r"[\r\n]+", trimmed, maxsplit=1)
    plain = _read(first)
    line = plain or _read_behind_options(first)
    if line is None:
        raise _invalid("public key must be a valid OpenSSH authorized key")
    if others:
        raise _invalid("public key must contain a single key")
    if plain is None:
        raise _invalid("public key options are not supported")
    if line.type not in AUTHORITY_KEY_TYPES:
        raise _invalid("public key type is not supported for SSH certificate authorities")
    return trimmed if line.comment else f"{line.type} {base64.b64encode(line.blob).decode()}"


def _read(text: str) -> _Line | None:
    if len(text) > _MAX_LINE or _CONTROL.search(text):
        return None
    kind, encoded, comment = [*re.split(r"[ \t]+", text, maxsplit=2), "", ""][:3]
    try:
        blob = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return None
    is_valid = _is_key(kind, encoded) if kind in AUTHORITY_KEY_TYPES else kind in _OTHER_TYPES
    return _Line(kind, blob, comment) if is_valid and _type_inside(blob) == kind else None


def _read_behind_options(text: str) -> _Line | None:
    options = _OPTIONS.fullmatch(text) if len(text) <= _MAX_LINE else None
    return _read(options["key"]) if options else None


def _is_key(kind: str, encoded: str) -> bool:
    try:
        key = load_ssh_public_key(f"{kind} {encoded}".encode())
        return key.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).startswith(f"{kind} ".encode())
    except (ValueError, UnsupportedAlgorithm):
        return False


def _type_inside(blob: bytes) -> str:
    length = int.from_bytes(blob[:_LENGTH_BYTES])
    return blob[_LENGTH_BYTES : _LENGTH_BYTES + length].decode("ascii", "replace")


def _invalid(message: str) -> Invalid:
    return Invalid("spec.publicKey", message)


def check_new(requested: AuthorityCreate, by: Principal) -> None:
    """Raise Invalid for a key that is not possible, or tags that the caller may not set."""
    authority_key(requested.spec.public_key)
    new_tags(requested.metadata, by)


def reference_of(operation: str) -> str:
    """Return the reference by which an authority keeps its project, named after the create operation."""
    return f"{AUTHORITY.qualified}/{operation}"


def new_authority(
    authority: str, requested: AuthorityCreate, by: Principal, *, operation: str
) -> SSHCertificateAuthority:
    scope = {ORGANIZATION: requested.spec.organization_id, PROJECT: requested.spec.project_id, API_VERSION: API_V2}
    return SSHCertificateAuthority(
        metadata=new_metadata(authority, requested.metadata, by, labels=scope, finalizers=(CONTROLLER_FINALIZER,)),
        spec=SSHCertificateAuthoritySpec(
            public_key=authority_key(requested.spec.public_key),
            operation=operation,
            tags=stored_tags(requested.metadata),
        ),
    )


def writable_authority(authority: SSHCertificateAuthority) -> MetadataWrite:
    """Return the part of an authority that determines its ETag: its key never changes."""
    return writable_metadata(authority.metadata, authority.spec.tags)


def read_authority(authority: SSHCertificateAuthority) -> AuthorityRead:
    """Return an authority as the response shows it: always provisioned, whatever its conditions are."""
    return AuthorityRead(
        metadata=read_project_metadata(authority.metadata, authority.spec.tags),
        spec=AuthoritySpecWire(public_key=authority.spec.public_key),
    )


AUTHORITY_VIEW = etag_view(read_authority, writable_authority)
