"""Servers to fetch from, on this machine over real sockets, and a book of names that says where they are."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address, ip_network
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from remuda.outbound.addresses import AddressPolicy, IpAddress
from remuda.outbound.fetch import FetchFailed, GuardedFetcher

Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]

HERE = AddressPolicy((ip_network("127.0.0.0/8"),))
"""Lets tests speak to this machine."""


@dataclass
class Served:
    """A server that runs, and the heads of the requests it has got."""

    port: int
    asked: list[bytes] = field(default_factory=list)

    def url(self, host: str = "127.0.0.1", path: str = "/disk.raw", scheme: str = "http") -> str:
        return f"{scheme}://{host}:{self.port}{path}"


@asynccontextmanager
async def serving(answer: Answer, *, tls: ssl.SSLContext | None = None, at: str = "127.0.0.1") -> AsyncIterator[Served]:
    """Serve one answer to everybody."""
    served = Served(0)

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            served.asked.append(await reader.readuntil(b"\r\n\r\n"))
            await answer(writer)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, at, 0, ssl=tls)
    async with server:
        served.port = server.sockets[0].getsockname()[1]
        yield served


def saying(*pieces: bytes, status: str = "200 OK", headers: str = "", told: int | None = None) -> Answer:
    """Answer with these bytes, and with a length that is right unless told otherwise."""
    length = sum(map(len, pieces)) if told is None else told
    head = f"HTTP/1.1 {status}\r\ncontent-length: {length}\r\n{headers}connection: close\r\n\r\n"

    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(head.encode())
        for piece in pieces:
            writer.write(piece)
            await writer.drain()

    return answer


def redirecting(location: str, status: str = "302 Found") -> Answer:
    """Answer that it is elsewhere."""
    return saying(b"this is not it", status=status, headers=f"location: {location}\r\n")


@dataclass
class Names:
    """Who answers for names: each time with the next of its answers, the last one for ever."""

    answers: dict[str, list[Sequence[str]]]
    asked: list[str] = field(default_factory=list)

    async def __call__(self, host: str, port: int) -> Sequence[IpAddress]:
        assert port > 0
        self.asked.append(host)
        if host not in self.answers:
            raise OSError("no such name")
        answers = self.answers[host]
        numbers = answers.pop(0) if len(answers) > 1 else answers[0]
        return [ip_address(number) for number in numbers]


async def fetched(
    guarded: GuardedFetcher, url: str, headers: Mapping[str, str] | None = None, *, total_s: float = 20.0
) -> tuple[int, bytes]:
    async with guarded.open(url, headers or {}, total_s=total_s) as answer:
        read = b""
        while chunk := await answer.read():
            read += chunk
        return answer.status, read


async def rejection_of(guarded: GuardedFetcher, url: str, *, total_s: float = 20.0) -> tuple[str, bool]:
    with pytest.raises(FetchFailed) as refused:
        await fetched(guarded, url, total_s=total_s)
    return refused.value.reason, refused.value.is_temporary


def certified(
    name: str, directory: Path, *, ends: timedelta = timedelta(hours=1)
) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return what a server of that name shows, and what a client that trusts it verifies with."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(
        subject_name=subject,
        issuer_name=subject,
        public_key=key.public_key(),
        serial_number=1,
        not_valid_before=now - timedelta(hours=2),
        not_valid_after=now + ends,
        extensions=[],
    ).add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
    certificate, path = builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM), directory / f"{name}.pem"
    path.write_bytes(certificate + key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(path)
    return server, ssl.create_default_context(cadata=certificate.decode())
