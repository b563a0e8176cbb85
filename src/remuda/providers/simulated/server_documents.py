"""Documents of servers in the cloud's file: the specification, with the user data sealed.

User data often has secrets, and the file, like any other, is copied and backed up. A document of an earlier build has
readable user data; it is read, and `reseal_servers` seals it.
"""

from dataclasses import replace
from pathlib import Path

import msgspec

from remuda.kernel.clock import Clock
from remuda.kernel.encoding import from_base64url, to_base64url
from remuda.kernel.sealing import Sealer
from remuda.kernel.secrets import Secret
from remuda.providers.contract.servers import CloudServerSpec
from remuda.providers.simulated.database import CloudDatabase, open_database
from remuda.providers.simulated.gateway import encode

_SEALED = b"sealed:v1:"
_decode = msgspec.msgpack.Decoder(CloudServerSpec).decode
_BATCH = 100
_NEXT = "SELECT number, id, document FROM servers WHERE number > ? ORDER BY number LIMIT ?"


def encode_spec(spec: CloudServerSpec, server: str, sealer: Sealer) -> bytes:
    """Return the document of a server, by its id in the cloud."""
    if not spec.user_data:
        return encode(spec)
    sealed = sealer.seal(Secret(to_base64url(spec.user_data)), context=_context(server))
    return encode(replace(spec, user_data=sealed.encode()))


def decode_spec(document: bytes, server: str, sealer: Sealer) -> CloudServerSpec:
    """Return the specification of a server, or raise Unsealable without the key of its user data."""
    spec = _decode(document)
    if not spec.user_data.startswith(_SEALED):
        return spec
    opened = sealer.open(spec.user_data.decode(), context=_context(server))
    return replace(spec, user_data=from_base64url(opened.reveal()))


def decode_hostname(document: bytes) -> str:
    """Return the host name in a document, for which no key is needed."""
    return _decode(document).hostname


def reseal_servers(path: Path, sealer: Sealer, clock: Clock) -> int:
    """Seal the user data of every server with the current key, and return the number of those that were not."""
    storage = open_database(path, clock=clock, syncs="itself")
    try:
        written, after = 0, 0
        while rows := storage.rows(_NEXT, (after, _BATCH)):
            written += storage.write(lambda rows=rows: _reseal(storage, rows, sealer))  # type: ignore[misc]  # mypy cannot infer a default
            after = rows[-1][0]
        return written
    finally:
        storage.close()


def _reseal(storage: CloudDatabase, rows: list[tuple[int, str, bytes]], sealer: Sealer) -> int:
    written = 0
    for number, server, document in rows:
        resealed = encode_spec(decode_spec(document, server, sealer), server, sealer)
        if resealed != document:
            # Unless it has changed meanwhile: then the process that changed it has sealed it.
            storage.run(
                "UPDATE servers SET document = ? WHERE number = ? AND document = ?", (resealed, number, document)
            )
            written += 1
    return written


def _context(server: str) -> str:
    return f"user data of simulated server {server}"
