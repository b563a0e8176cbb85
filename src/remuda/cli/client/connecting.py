"""Connections to a Remuda. Whom to trust is what this machine trusts, or what SSL_CERT_FILE says."""

import ssl
from collections.abc import Iterable

import httpx2

_PATIENCE = httpx2.Timeout(40.0, connect=5.0)
"""A stream is never silent for longer than 15 s, and an answer takes no longer than 30."""


def connected(urls: Iterable[str]) -> httpx2.Client:
    """Return what asks these servers."""
    is_encrypted = any(url.startswith("https:") for url in urls)
    trust = ssl.create_default_context() if is_encrypted else _nobody()
    return httpx2.Client(timeout=_PATIENCE, verify=trust, trust_env=False)


def _nobody() -> ssl.SSLContext:
    """Trust nobody: where nothing is encrypted, reading whom to trust would take longer than most requests."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
