"""Identity on a real socket, to be sent any bytes."""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from remuda.http.api import ApiSettings
from remuda.http.proxies import CertificateProxies
from remuda.http.server.server import ListenAddress
from tests.kit.certificates import certificate_proxies
from tests.kit.identity.environment import ROOT, IdentityEnvironment
from tests.kit.identity.launch import running, serving
from tests.kit.identity.service_credentials import certified

REGION = "unikorn-region"
_STATUS = re.compile(rb"HTTP/1\.1 (?=[0-9]{3} [A-Z])")


@dataclass(frozen=True)
class Answer:
    """What came back over the socket."""

    status: int
    body: Any


@dataclass(frozen=True)
class Wire:
    """Identity on a socket, to be sent any bytes."""

    identity: IdentityEnvironment
    address: ListenAddress

    async def get(self, path: str, *headers: str | tuple[str, str]) -> Answer:
        """Ask for something with these header lines, in this order, letter by letter."""
        lines = [each if isinstance(each, str) else ": ".join(each) for each in headers]
        raw = "\r\n".join([f"GET {path} HTTP/1.1", "Host: here", "Connection: close", *lines, "", ""])
        (answer,) = await self.exchange(raw.encode("latin-1"))
        return answer

    async def exchange(self, sent: bytes) -> list[Answer]:
        """Send bytes, and return every answer that comes until the server closes."""
        reader, writer = await asyncio.open_connection(self.address.host, self.address.port)
        read = b""
        with contextlib.closing(writer), contextlib.suppress(ConnectionError):
            writer.write(sent)
            async with asyncio.timeout(120):
                while chunk := await reader.read(65_536):
                    read += chunk
        return [_answer(part) for part in _STATUS.split(read)[1:]]

    def service(self, name: str = REGION, actor: str = ROOT, *, impersonates: bool = False) -> dict[str, str]:
        """Return what a proxy passes on for a service."""
        claim = {"actor": actor, "type": "user"}
        return dict(certified(name, claim, now=self.identity.clock.now(), impersonates=impersonates))


def _answer(part: bytes) -> Answer:
    head, _, body = part.partition(b"\r\n\r\n")
    return Answer(int(head[:3]), msgspec.json.decode(body) if body else None)


@asynccontextmanager
async def wired(tmp_path: Path, proxies: CertificateProxies | None = None) -> AsyncIterator[Wire]:
    """Run identity behind a proxy on this machine, or behind others."""
    settings = ApiSettings(certificates=proxies or certificate_proxies())
    async with running(tmp_path, is_quiet=True, api=settings) as identity, serving(identity) as address:
        yield Wire(identity, address)
