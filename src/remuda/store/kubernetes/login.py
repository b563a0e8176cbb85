"""Who we are to the API server: address, trust and credentials, as the kubeconfig says, and again when they expire."""

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass

import httpx2
from lightkube.config.client_adapter import user_auth, verify_cluster
from lightkube.config.kubeconfig import SingleConfig

__all__ = ["Credentials", "Login"]


@dataclass(frozen=True)
class Credentials:
    """What one request needs."""

    trust: ssl.SSLContext
    headers: dict[str, str]


class Login:
    """The present credentials. `renew` reads their source again: a token file, a kubeconfig, a plugin."""

    def __init__(self, source: Callable[[], SingleConfig]) -> None:
        self._source = source
        self._current: Credentials | None = None
        self._renewal = asyncio.Lock()
        self.server = source().cluster.server.rstrip("/")

    async def current(self) -> Credentials:
        """Return credentials, reading them the first time."""
        return self._current or await self.renew(None)

    async def renew(self, refused: Credentials | None) -> Credentials:
        """Replace credentials that were refused. Those who were refused together share one renewal."""
        async with self._renewal:
            if self._current is None or self._current is refused:
                self._current = await _read(self._source())
            return self._current


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
