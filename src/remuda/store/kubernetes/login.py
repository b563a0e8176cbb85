"""Who we are to the API server: address, trust and credentials, as the kubeconfig says, and again when they expire."""

import asyncio
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import httpx2
from lightkube.config.client_adapter import user_auth, verify_cluster
from lightkube.config.kubeconfig import KubeConfig, SingleConfig

from remuda.kernel.errors import RemudaError, Unavailable, Unusable

Source = Callable[[], SingleConfig]
"""Says, each time it is asked, where the API server is and who we are to it."""


def kubeconfig(path: str | None = None, *, context: str | None = None) -> Source:
    """Return a source that reads a kubeconfig each time it is asked: `path`, else as kubectl would find it."""

    def read() -> SingleConfig:
        config = KubeConfig.from_file(path) if path else KubeConfig.from_env()
        found = config.get(context)
        if found is None:
            raise Unusable("The kubeconfig names no current context: choose one with --context.")
        return found

    return read


@dataclass(frozen=True)
class Credentials:
    """What one request needs."""

    trust: ssl.SSLContext
    headers: dict[str, str]


class Login:
    """The present credentials. `renew` reads their source again: a token file, a kubeconfig, a plugin."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._current: Credentials | None = None
        self._renewal = asyncio.Lock()
        with _explained():
            self.server = source().cluster.server.rstrip("/")

    async def current(self) -> Credentials:
        """Return credentials, reading them the first time."""
        return self._current or await self.renew(None)

    async def renew(self, refused: Credentials | None) -> Credentials:
        """Replace credentials that were refused. Those who were refused together share one renewal."""
        async with self._renewal:
            if self._current is None or self._current is refused:
                with _explained():
                    self._current = await _read(self._source())
            return self._current


@contextmanager
def _explained() -> Iterator[None]:
    """Say what is wrong. Files, YAML, certificates and plugins of a kubeconfig each fail in ways of their own."""
    try:
        yield
    except RemudaError:
        raise
    except Exception as error:
        cause = str(error) or type(error).__name__
        raise Unavailable(f"The kubeconfig cannot be used ({cause}): check it and the files it names.") from error


async def _read(config: SingleConfig) -> Credentials:
    assert config.user is not None, "lightkube gives every context a user"
    trust = verify_cluster(config.cluster, config.user, config.abs_file)
    auth = user_auth(config.user)
    if auth is None:
        return Credentials(trust, {})
    request = httpx2.Request("GET", config.cluster.server)
    flow = auth.async_auth_flow(request)
    await anext(flow)  # the flow puts the header on the request; sending it is our business
    await flow.aclose()
    return Credentials(trust, {"Authorization": request.headers["Authorization"]})
