"""An HTTP client that takes nothing from its surroundings: no proxy, no certificate, no password file."""

import ssl
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx2


def new_client(timeout: "float | httpx2.Timeout", tls: ssl.SSLContext | None = None) -> "httpx2.AsyncClient":
    """Return a client that follows no redirects. Slow the first time, so call it in a thread then."""
    # httpx2 would import the first two when its first request goes out, and hold the loop for that long.
    import anyio._backends._asyncio  # noqa: F401, PLC0415  to have it imported
    import httpcore2  # noqa: F401, PLC0415  same
    import httpx2  # noqa: PLC0415  same

    return httpx2.AsyncClient(timeout=timeout, verify=tls or True, follow_redirects=False, trust_env=False)


def new_tls() -> ssl.SSLContext:
    """Return what verifies servers by the certificate authorities that everybody trusts. Slow: call it in a thread."""
    import httpx2  # noqa: PLC0415  it is imported where it is needed

    return httpx2.create_ssl_context(trust_env=False)
