"""HTTP clients of httpx2 that take nothing from their environment: no proxy, no certificate, no password file.

httpx2 is imported when it is needed, because that takes long: `load` can be called in a thread, or at import.
"""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from remuda.kernel.exchange import NotSent, ResponseLost

if TYPE_CHECKING:
    import httpx2


@cache
def load() -> None:
    """Import httpx2, and what httpx2 would import with its first request and block the event loop for."""
    import httpx2  # noqa: PLC0415  it is imported where it is needed
    from anyio.from_thread import start_blocking_portal  # noqa: PLC0415  same

    httpx2.AsyncHTTPTransport(verify=False)  # imports the connection pool
    with start_blocking_portal():  # imports what anyio needs for asyncio
        pass


def new_client(
    timeout: "float | httpx2.Timeout", *, tls: ssl.SSLContext | bool = True, **options: Any
) -> "httpx2.AsyncClient":
    """Return a client that follows no redirects. Slow the first time, so call it in a thread then."""
    load()
    import httpx2  # noqa: PLC0415  it is imported where it is needed

    return httpx2.AsyncClient(timeout=timeout, verify=tls, follow_redirects=False, trust_env=False, **options)


def new_tls() -> ssl.SSLContext:
    """Return the TLS settings that verify servers by the public certificate authorities. Slow: call it in a thread."""
    load()
    import httpx2  # noqa: PLC0415  it is imported where it is needed

    return httpx2.create_ssl_context(trust_env=False)


@contextmanager
def transport_errors() -> Iterator[None]:
    """Raise NotSent or ResponseLost for the errors of httpx2."""
    import httpx2  # noqa: PLC0415  it is there by now

    try:
        yield
    except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.InvalidURL) as error:
        raise NotSent(str(error) or type(error).__name__) from None
    except (httpx2.HTTPError, httpx2.StreamError) as error:
        raise ResponseLost(str(error) or type(error).__name__) from None
