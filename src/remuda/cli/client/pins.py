"""Pinned certificates: a login to a server whose certificate no authority of this machine has issued.

`remuda login` pins the certificate after the user has compared its fingerprint, and every later request of that login
accepts no other one. The certificate of a process on this machine is pinned without a question: its data directory,
which only its owner can read, names it.
"""

import asyncio
import contextlib
import re
import ssl
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from remuda.kernel.encoding import fingerprint
from remuda.kernel.errors import Invalid, ServerUnreachable, Unusable

if TYPE_CHECKING:
    from remuda.datadir import DataDirectory

_TIMEOUT_S = 10.0
_HTTPS = 443
_BLOCK = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----\n?", re.DOTALL)
_NOT_VERIFIED = "CERTIFICATE_VERIFY_FAILED"


def pinned_context(certificate: str) -> ssl.SSLContext:
    """Return TLS settings that accept the first certificate of a PEM, whatever names it has, and no other one."""
    found = _BLOCK.search(certificate)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if found is not None:
        context.load_verify_locations(cadata=found[0])
    return context


def explained_trust(error: ServerUnreachable, *, is_pinned: bool) -> ServerUnreachable:
    """Return an error with what the user can do, if it is about the certificate of the server."""
    if _NOT_VERIFIED in error.cause:
        if is_pinned:
            error.message = (
                f"The certificate of {error.server} is not the one that this login trusts: if the server has a new "
                "one, log in again with remuda login; otherwise another server has taken its place."
            )
        else:
            error.message = (
                f"The certificate of {error.server} is not trusted ({_reason(error.cause)}): log in with remuda login, "
                "which shows its fingerprint, or name its authority in SSL_CERT_FILE."
            )
    return error


def _reason(cause: str) -> str:
    """Return the reason in a message of OpenSSL."""
    return re.sub(r"^\[.*?\] certificate verify failed: | \(_ssl\.c:\d+\)$", "", cause)


async def certificate_to_pin(
    url: str, *, expected: str | None, local: "Iterable[DataDirectory]", ask: Callable[[str], None]
) -> str:
    """Return the certificate of a server as PEM, or an empty string if the authorities of this machine vouch for it.

    `expected` is a fingerprint. Without one, the certificate of a process with one of the `local` data directories is
    accepted, and the user is asked about any other: `ask` raises an error unless the user agrees.
    """
    parts = urlsplit(url)
    if parts.scheme != "https" or parts.hostname is None:
        if expected is not None:
            raise Invalid("--fingerprint", "is of no use without TLS", remedy="give an https URL, or leave it out")
        return ""
    host, port, server = parts.hostname, parts.port or _HTTPS, f"{parts.scheme}://{parts.netloc}"
    cause = ""
    if expected is None:
        try:
            await _certificate(host, port, ssl.create_default_context(), server)
        except ssl.SSLCertVerificationError as error:
            cause = error.verify_message or str(error)
        else:
            return ""
    shown = await _certificate(host, port, _any_certificate(), server)
    if expected is not None:
        _check_expected(expected, shown, server)
    elif not any(_is_of(directory, shown) for directory in local):
        ask(
            f"{server} has a certificate that this machine does not trust ({cause}). Compare its SHA-256 fingerprint "
            f"with the one that remuda up prints there: {fingerprint(shown)}."
        )
    return ssl.DER_cert_to_PEM_cert(shown)


def _any_certificate() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def _is_of(directory: "DataDirectory", shown: bytes) -> bool:
    found = _BLOCK.search(directory.certificate_of_process())
    return found is not None and ssl.PEM_cert_to_DER_cert(found[0]) == shown


def _check_expected(expected: str, shown: bytes, server: str) -> None:
    if re.sub(r"[^0-9A-F]", "", expected.upper()) != fingerprint(shown).replace(":", ""):
        problem = f"is not that of {server}, which is {fingerprint(shown)}"
        raise Invalid("--fingerprint", problem, remedy="do not log in before you know why")


async def _certificate(host: str, port: int, context: ssl.SSLContext, server: str) -> bytes:
    async with _connected(host, port, context, server) as connection:
        certificate = connection.getpeercert(binary_form=True)
    if certificate is None:
        raise Unusable(f"{server} shows no certificate: check the address.")
    return certificate


@asynccontextmanager
async def _connected(host: str, port: int, context: ssl.SSLContext, server: str) -> AsyncIterator[ssl.SSLObject]:
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            _, writer = await asyncio.open_connection(host, port, ssl=context, server_hostname=host)
    except ssl.SSLCertVerificationError:
        raise
    except OSError as error:
        raise ServerUnreachable(server, str(error) or type(error).__name__) from None
    try:
        yield writer.get_extra_info("ssl_object")
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
