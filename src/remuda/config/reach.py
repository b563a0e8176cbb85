"""Reach of the process: the URL for clients, its TLS and the authorities of client certificates.

A process that others than this machine can reach needs TLS, in the process or in a proxy in front, and a URL that leads
to it from everywhere. Otherwise it is refused at start: passwords would be readable on the way, and pages that name
127.0.0.1 would send them to the visitor's own machine.
"""

from dataclasses import replace
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from remuda.config.loader import Misconfigured
from remuda.config.schema import MetricsConfig, ServerConfig
from remuda.datadir import DataDirectory
from remuda.http.certificates import ClientAuthorities
from remuda.http.revocations import RevocationLists
from remuda.http.server.server import ListenAddress
from remuda.http.server.tls import TlsFiles, TlsSettings, load_context
from remuda.kernel.errors import Invalid

_INSECURE_REMEDIES = (
    "give it TLS (tls_certificate_file and tls_key_file, or --tls self-signed for a first try), "
    "set server.public_url to the https URL of a proxy in front, "
    "or accept that with --insecure"
)

_METRICS_REMEDIES = (
    "give it TLS (metrics.tls_certificate_file and metrics.tls_key_file, or TLS of the server), "
    "or accept that with --insecure"
)


def public_url(server: ServerConfig, address: ListenAddress) -> str:
    """Return the URL at which clients reach the process that listens on this address."""
    return server.public_url or own_url(server, address)


def own_url(server: ServerConfig, address: ListenAddress) -> str:
    """Return the URL at which clients on this machine reach the process without a proxy."""
    return f"{'https' if _has_tls(server) else 'http'}://{address.reachable}"


def _has_tls(server: ServerConfig) -> bool:
    return bool(server.tls or server.tls_certificate_file)


def tls_settings(server: ServerConfig) -> TlsSettings | None:
    """Return the TLS settings of the server, or raise Misconfigured if they contradict each other."""
    certificate, key, authorities = server.tls_certificate_file, server.tls_key_file, server.client_ca_file
    if server.tls:
        if certificate or key:
            raise _wrong("tls", "is set together with tls_certificate_file or tls_key_file: leave one of them out")
        data = DataDirectory(server.data)
        files = TlsFiles(data.tls_certificate, data.tls_key, authorities)
        host = urlsplit(server.public_url).hostname or server.listen.reachable.host
        return TlsSettings(files, self_signed_for=(host,))
    if certificate is None and key is None:
        return None
    return TlsSettings(replace(_pair("server", certificate, key), client_authorities=authorities))


def metrics_tls(metrics: MetricsConfig, server: ServerConfig) -> TlsSettings | None:
    """Return the TLS settings of the metrics, or raise Misconfigured.

    They are those of the server by default. On an address that only this machine reaches, that is no TLS.
    """
    if metrics.tls_certificate_file is not None or metrics.tls_key_file is not None:
        return TlsSettings(_pair("metrics", metrics.tls_certificate_file, metrics.tls_key_file))
    if not metrics.listen or is_loopback(ListenAddress.parse(metrics.listen).host):
        return None
    found = tls_settings(server)
    if found is not None:
        return TlsSettings(replace(found.files, client_authorities=None))
    if not server.insecure:
        problem = f"metrics.listen = {metrics.listen} sends the metrics and their token in clear text"
        raise Misconfigured((f"{problem} over the network: {_METRICS_REMEDIES}.",))
    return None


def _pair(section: str, certificate: Path | None, key: Path | None) -> TlsFiles:
    """Return a certificate and its key, or raise Misconfigured if one of the two is missing."""
    if certificate is None or key is None:
        missing, given = "tls_certificate_file", "tls_key_file"
        if key is None:
            missing, given = given, missing
        raise Misconfigured((f"{section}.{missing} is missing: {given} needs it.",))
    return TlsFiles(certificate, key)


def client_authorities(server: ServerConfig) -> ClientAuthorities | None:
    """Return the authorities of client certificates, or raise Misconfigured."""
    path = server.client_ca_file
    if path is None:
        if server.certificate_proxies:
            needed = "name the PEM file of the authorities that issue the certificates of your services"
            raise _wrong("certificate_proxies", f"needs server.client_ca_file: {needed}")
        if server.client_crl_file is not None:
            raise _wrong("client_crl_file", "needs server.client_ca_file: name the authorities of these lists")
        return None
    try:
        authorities = ClientAuthorities(path.read_bytes())
    except (OSError, ValueError) as error:
        cause = getattr(error, "strerror", None) or "it has no certificate"
        raise _wrong(
            "client_ca_file", f"cannot be read from {path} ({cause}): name a PEM file of certificates"
        ) from None
    if server.client_crl_file is not None:
        authorities.revocations = _revocations(server.client_crl_file, authorities)
    return authorities


def _revocations(path: Path, authorities: ClientAuthorities) -> RevocationLists:
    try:
        return RevocationLists(path.read_bytes(), authorities.certificates)
    except (OSError, ValueError) as error:
        cause = getattr(error, "strerror", None) or str(error)
        remedy = "name a PEM file with a complete list of each authority that issues client certificates"
        raise _wrong("client_crl_file", f"cannot be used from {path} ({cause}): {remedy}") from None


def check_reach(server: ServerConfig) -> None:
    """Raise Misconfigured if the process could not be reached safely, or its TLS does not work."""
    tls = tls_settings(server)
    if tls is not None and not tls.self_signed_for:
        check_files(tls.files)
    if tls is not None and server.public_url.startswith("http:"):
        raise _wrong("public_url", "is an http URL, but the server speaks TLS: write an https URL")
    if exposure(server):
        raise Misconfigured((exposure(server),))


def check_files(files: TlsFiles) -> None:
    """Raise Misconfigured unless a server can use these files."""
    try:
        load_context(files)
    except Invalid as error:
        raise Misconfigured((error.message,)) from None


def exposure(server: ServerConfig) -> str:
    """Return why clients on other machines could not use the process safely; empty if they can, or cannot at all."""
    if is_loopback(server.listen.host):
        return ""
    address = f"server.listen = {server.listen}"
    if has_clear_text(server) and not server.insecure:
        return f"{address} sends passwords and tokens over the network in clear text: {_INSECURE_REMEDIES}."
    if server.listen.is_wildcard and not server.public_url:
        example = f"{'https' if _has_tls(server) else 'http'}://NAME:{server.listen.port}"
        return (
            f"{address} is no address for clients: set server.public_url (--public-url) to theirs, such as {example}."
        )
    return ""


def is_reachable(server: ServerConfig) -> bool:
    """Tell whether clients on other machines use the process, directly or through a proxy."""
    host = urlsplit(server.public_url).hostname
    return not is_loopback(server.listen.host) or (host is not None and not is_loopback(host))


def has_clear_text(server: ServerConfig) -> bool:
    """Tell whether clients on other machines use the process without TLS, in it or in a proxy."""
    is_safe = _has_tls(server) or server.public_url.startswith("https:")
    return not (is_safe or is_loopback(server.listen.host))


def is_loopback(host: str) -> bool:
    """Tell whether only this machine reaches a host."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _wrong(setting: str, problem: str) -> Misconfigured:
    return Misconfigured((f"server.{setting} {problem}.",))
