"""Checks of `remuda doctor` of what other machines reach: TLS, certificates, and logins with a password alone."""

from collections.abc import Iterator
from datetime import timedelta

from remuda.cli.findings import Finding, critical, ok, warning
from remuda.config.reach import client_authorities, exposure, has_clear_text, is_reachable, tls_settings
from remuda.config.schema import Configuration, ServerConfig
from remuda.datadir import DataDirectory
from remuda.kernel.clock import Clock
from remuda.kernel.errors import RemudaError

_SOON = timedelta(days=14)
_RENEW = "Replace it and its key: they are loaded without a restart."


def check_reach(
    configuration: Configuration, data: DataDirectory, clock: Clock, *, is_running: bool
) -> Iterator[Finding]:
    """Yield whether clients on other machines can use the process safely, and how long its certificate lasts."""
    server = configuration.server
    if (problem := exposure(server)) and not is_running:
        yield critical("reach", problem, "")
    elif data.is_process_insecure() if is_running else has_clear_text(server):
        message = "Clients on other machines send passwords and tokens in clear text."
        remedy = "Give the server TLS, or put a proxy with TLS in front and let the server listen on 127.0.0.1."
        yield warning("reach", message, remedy)
    certificate = data.certificate_of_process() if is_running else _configured_certificate(server)
    if certificate:
        yield _certificate(certificate, clock)
    if server.client_crl_file is not None:
        yield _revocations(server, clock)
    if configuration.identity.platform_second_factor == "optional" and is_reachable(server):
        message = "Platform administrators of this configuration can log in with a password alone."
        remedy = "Set identity.platform_second_factor to password or always."
        yield warning("administrators", message, remedy)


def _configured_certificate(server: ServerConfig) -> str:
    try:
        tls = tls_settings(server)
        return "" if tls is None else tls.files.certificate.read_text(encoding="ascii")
    except (RemudaError, OSError, UnicodeDecodeError):
        return ""  # the next start says so


def _certificate(pem: str, clock: Clock) -> Finding:
    from cryptography.x509 import load_pem_x509_certificate  # noqa: PLC0415  slow to import and rarely needed

    try:
        ends = load_pem_x509_certificate(pem.encode()).not_valid_after_utc
    except ValueError:
        return critical("certificate", "The certificate of the server is not PEM.", _RENEW)
    left = ends - clock.now()
    if left <= timedelta(0):
        return critical("certificate", f"The certificate of the server has expired on {ends:%Y-%m-%d}.", _RENEW)
    message = f"The certificate of the server is valid until {ends:%Y-%m-%d}."
    return warning("certificate", message, _RENEW) if left < _SOON else ok("certificate", message)


_LITTLE_LEFT = 0.1
"""Share of the validity of a revocation list below which its expiry is near."""
_RENEW_LISTS = "Replace server.client_crl_file by the present lists: they are loaded without a restart."


def _revocations(server: ServerConfig, clock: Clock) -> Finding:
    """Return whether client certificates can be checked for revocation; without that, all are rejected."""
    try:
        authorities = client_authorities(server)
    except RemudaError as error:
        return critical("revocation", f"All client certificates are rejected. {error.message}", "")
    assert authorities is not None, "lists have authorities"
    assert authorities.revocations is not None, "there is a file of lists"
    if problem := authorities.revocations.problem(clock.now()):
        return critical("revocation", f"Client certificates are rejected: {problem}.", _RENEW_LISTS)
    ends, lifetime = authorities.revocations.next_end()
    message = f"The revocation lists of client certificates are valid until {ends:%Y-%m-%d %H:%M} UTC."
    is_near = ends - clock.now() < lifetime * _LITTLE_LEFT
    return warning("revocation", message, _RENEW_LISTS) if is_near else ok("revocation", message)
