"""TLS of the server on real sockets, on both event loops: who may connect, what the application is told, reloading."""

import asyncio
import contextlib
import json
import os
import resource
import socket
import ssl
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import uvloop
from cryptography import x509
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID
from structlog.testing import capture_logs

from remuda.http.buffer_shares import BufferShares
from remuda.http.server.limits import ConnectionLimits
from remuda.http.server.tls import ServerTls, WatchedFiles
from remuda.kernel.errors import Invalid
from tests.kit.certificates import Issued, authority, client_context, self_signed, server_files
from tests.kit.http_server import LONG, Serving, body_of, request, serving, status_of, until

HSTS = b"strict-transport-security: max-age=31536000"
Scenario = Callable[[Path], Coroutine[Any, Any, None]]


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Scenario], None]:
    """Run a scenario in an event loop of each sort."""

    def run_in_loop(scenario: Scenario) -> None:
        with asyncio.Runner(loop_factory=request.param) as runner:
            runner.run(scenario(tmp_path))

    return run_in_loop


async def dial(
    one: Serving, context: ssl.SSLContext | None = None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection(one.address.host, one.address.port, ssl=context or client_context())


async def exchange(one: Serving, sent: bytes, context: ssl.SSLContext | None = None) -> bytes:
    """Send bytes within TLS, and return all that comes back, in whichever way the connection ends."""
    read = b""
    with contextlib.suppress(OSError):
        reader, writer = await dial(one, context)
        with contextlib.closing(writer):
            writer.write(sent)
            while chunk := await reader.read(65_536):
                read += chunk
    return read


async def get(one: Serving, path: str, context: ssl.SSLContext | None = None) -> bytes:
    return await exchange(one, request(path, "Connection: close"), context)


def test_a_request_is_answered_within_tls_and_told_to_use_nothing_else(run: Callable[[Scenario], None]) -> None:
    async def scenario(folder: Path) -> None:
        async with serving(tls=ServerTls(server_files(folder))) as one:
            answer = await get(one, "/")
            assert (status_of(answer), answer.endswith(b"hello"), HSTS in answer) == (200, True, True)
            assert len(await get(one, "/long")) > 600_000
            shown = body_of(await get(one, "/tls"))
            assert shown == {"scheme": "https", "extensions": {"tls": {"client_cert_chain": []}}}
            refused = await exchange(one, b"nonsense\r\n\r\n")
            assert (status_of(refused), HSTS in refused) == (400, True)
            assert await one.exchange(request("/")) == b"", "without TLS nobody is answered"

    run(scenario)


async def test_without_tls_only_a_server_behind_https_asks_for_it() -> None:
    async with serving() as one:
        assert HSTS not in await one.get("/")
        assert body_of(await one.get("/tls")) == {"scheme": "http", "extensions": None}
    async with serving(is_https=True) as one:
        assert HSTS in await one.get("/")


def for_servers() -> Issued:
    usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
    return authority().issue("unikorn-compute", extensions=[(usage, False)])


def test_m27_a_client_certificate_is_handed_over_only_if_our_authority_issued_it(
    run: Callable[[Scenario], None],
) -> None:
    async def scenario(folder: Path) -> None:
        async with serving(tls=ServerTls(server_files(folder))) as one:
            for shown in (
                authority().issue("unikorn-compute"),
                authority().subordinate("below").issue("unikorn-compute"),
            ):
                answer = await get(one, "/tls", client_context(shown=shown))
                (pem,) = json.loads(answer.partition(b"\r\n\r\n")[2])["extensions"]["tls"]["client_cert_chain"]
                assert x509.load_pem_x509_certificate(pem.encode()) == shown.certificate
            for refused in (
                self_signed("unikorn-compute"),
                authority("imposter").issue("unikorn-compute"),
                authority().issue("unikorn-compute", ends=datetime(2001, 1, 1, tzinfo=UTC)),
                for_servers(),
            ):
                assert await get(one, "/tls", client_context(shown=refused)) == b""
            await until(lambda: one.cuts["handshake_failed"] == 4)

    run(scenario)


async def test_an_intermediate_authority_may_stand_for_itself(tmp_path: Path) -> None:
    below = authority().subordinate("below")
    files = server_files(tmp_path)
    assert files.client_authorities is not None
    files.client_authorities.write_text("".join(below.own.pem.partition("-----END CERTIFICATE-----\n")[:2]))
    shown = below.issue("unikorn-compute")
    async with serving(tls=ServerTls(files)) as one:
        assert status_of(await get(one, "/tls", client_context(shown=Issued(shown.certificate, shown.key)))) == 200
        assert await get(one, "/tls", client_context(shown=authority().issue("unikorn-compute"))) == b""


async def test_nothing_older_than_tls_1_2_is_spoken(tmp_path: Path) -> None:
    tls = ServerTls(server_files(tmp_path))
    assert tls.context.minimum_version == ssl.TLSVersion.TLSv1_2
    async with serving(tls=tls) as one:
        old, middle = client_context(), client_context()
        middle.maximum_version = ssl.TLSVersion.TLSv1_2
        assert status_of(await get(one, "/", middle)) == 200
        with pytest.warns(DeprecationWarning, match="TLS"):
            old.minimum_version, old.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
        old.set_ciphers("ALL:@SECLEVEL=0")
        assert await get(one, "/", old) == b""


def test_changed_files_count_for_new_connections_and_no_other(run: Callable[[Scenario], None]) -> None:
    async def scenario(folder: Path) -> None:
        files, other = server_files(folder), authority("other")
        tls = ServerTls(files)
        watched = WatchedFiles(files.paths, tls.reload, what="certificate of the server")
        async with serving(tls=tls) as one:
            reader, writer = await dial(one)
            server_files(folder, issuer=other, key="other server")
            assert await get(one, "/", client_context(other)) == b"", "it is not loaded before it is looked for"
            with capture_logs() as logs:
                watched.check()
                watched.check()
            assert [each["event"] for each in logs] == ["certificate of the server reloaded"]
            assert status_of(await get(one, "/", client_context(other))) == 200
            assert await get(one, "/") == b""
            writer.write(request("/", "Connection: close"))
            assert status_of(await reader.read()) == 200, "whoever was connected stays so"
            writer.close()

    run(scenario)


async def test_a_broken_pair_is_logged_once_and_the_old_one_stays(tmp_path: Path) -> None:
    files = server_files(tmp_path)
    tls = ServerTls(files)
    watched = WatchedFiles(files.paths, tls.reload, what="certificate of the server")
    good = files.key.read_text()
    async with serving(tls=tls) as one:
        for broken in (authority().own.key_pem, "nonsense", "", None):
            if broken is None:
                files.key.unlink()
            else:
                files.key.write_text(broken)
            with capture_logs() as logs:
                watched.check()
                watched.check()
            (log,) = logs
            assert (log["event"], log["log_level"]) == ("certificate of the server not reloaded", "error")
            assert str(files.key) in log["cause"]
            assert status_of(await get(one, "/")) == 200
        files.key.write_text(good)
        with capture_logs() as logs:
            watched.check()
        assert [each["event"] for each in logs] == ["certificate of the server reloaded"]


def test_an_authority_that_is_removed_counts_no_more(run: Callable[[Scenario], None]) -> None:
    async def scenario(folder: Path) -> None:
        files = server_files(folder)
        tls = ServerTls(files)
        async with serving(tls=tls) as one:
            shown = client_context(shown=authority().issue("unikorn-compute"))
            assert status_of(await get(one, "/tls", shown)) == 200
            assert files.client_authorities is not None
            files.client_authorities.write_text(authority("other").pem)
            tls.reload()
            assert await get(one, "/tls", shown) == b"", "a session that is resumed is of no use either"
            assert status_of(await get(one, "/tls")) == 200

    run(scenario)


def test_a_handshake_has_a_deadline_and_counts_as_a_connection(run: Callable[[Scenario], None]) -> None:
    async def scenario(folder: Path) -> None:
        async with serving(ConnectionLimits(head_s=0.5), tls=ServerTls(server_files(folder))) as one:
            reader, writer = await one.dial()
            await until(lambda: one.server.connections == 1)
            assert await reader.read() == b""
            writer.close()
            assert (one.cuts, one.server.connections) == ({"handshake_timeout": 1}, 0)

    run(scenario)


def test_a_handshake_takes_the_slot_of_a_connection_and_is_closed_at_once_without_one(
    run: Callable[[Scenario], None],
) -> None:
    async def scenario(folder: Path) -> None:
        limits = ConnectionLimits(connections=1)
        async with serving(limits, tls=ServerTls(server_files(folder))) as one:
            assert status_of(await get(one, "/")) == 200, "a connection is not counted twice"
            await until(lambda: one.server.connections == 0)
            _, held = await one.dial()
            await until(lambda: one.server.connections == 1)
            reader, writer = await one.dial()
            with contextlib.suppress(ConnectionError):
                assert await reader.read() == b""
            assert one.cuts == {"address_connections": 1}
            for each in (held, writer):
                each.close()
            await until(lambda: one.server.connections == 0)
            assert status_of(await get(one, "/")) == 200

    run(scenario)


def test_a_client_that_does_not_read_is_closed(run: Callable[[Scenario], None]) -> None:
    async def scenario(folder: Path) -> None:
        async with serving(ConnectionLimits(read_stall_s=0.5), tls=ServerTls(server_files(folder))) as one:
            _, writer = await dial(one)
            writer.transport.pause_reading()  # type: ignore[attr-defined]  # a socket's transport reads
            writer.write(request("/stream"))
            await until(lambda: one.cuts["write_timeout"] == 1)
            await until(lambda: not one.server.connections and not one.app.streams)
            writer.close()

    run(scenario)


@contextlib.asynccontextmanager
async def asking(one: Serving, sent: bytes, host: str = "127.0.0.1") -> AsyncIterator[ssl.SSLSocket]:
    """Ask with a small buffer, and read the beginning of the answer. All other buffers are those of the server."""

    def ask() -> ssl.SSLSocket:
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 * 1024)
        client.settimeout(10)
        client.bind((host, 0))
        client.connect((one.address.host, one.address.port))
        encrypted = client_context().wrap_socket(client, server_hostname=one.address.host)
        encrypted.sendall(sent)
        assert encrypted.recv(9) == b"HTTP/1.1 "
        return encrypted

    with await asyncio.to_thread(ask) as encrypted:
        yield encrypted


def read_slowly(client: ssl.SSLSocket, is_enough: Callable[[bytearray], bool]) -> bytes:
    """Read until it is enough or the connection ends."""
    read = bytearray()
    while not is_enough(read) and (chunk := client.recv(4096)):
        read += chunk
        time.sleep(0.0005)
    return bytes(read)


@pytest.mark.parametrize("sent", [request("/long"), request("/long", "Connection: close")], ids=["kept", "closed"])
def test_m27_a_client_that_does_not_read_a_large_response_is_closed(
    run: Callable[[Scenario], None], sent: bytes
) -> None:
    async def scenario(folder: Path) -> None:
        limits, tls = ConnectionLimits(read_stall_s=0.5), ServerTls(server_files(folder))
        async with serving(limits, tls=tls) as one, asking(one, sent):
            await until(lambda: one.cuts)
            assert one.cuts == {"write_timeout": 1}
            await until(lambda: not one.server.connections)

    run(scenario)


def test_m27_what_tls_holds_for_clients_that_do_not_read_counts_and_only_for_their_address(
    run: Callable[[Scenario], None],
) -> None:
    async def scenario(folder: Path) -> None:
        buffers = BufferShares(3_200 * 1024)  # of which an address has 200 KiB without credentials
        sent = request("/long")
        async with serving(tls=ServerTls(server_files(folder)), buffers=buffers) as one:
            async with contextlib.AsyncExitStack() as clients:
                for host in ("127.0.0.1", "127.0.0.1", "127.0.0.2"):
                    await clients.enter_async_context(asking(one, sent, host))
                await until(lambda: buffers.total > 250 * 1024)
                await clients.enter_async_context(asking(one, sent))
                await until(lambda: one.cuts)
                assert one.cuts == {"buffers": 1}
                async with asking(one, sent, "127.0.0.3") as client:
                    await asyncio.to_thread(read_slowly, client, lambda answer: answer.endswith(LONG))
                assert one.cuts == {"buffers": 1}, "others break off no response"
            await until(lambda: not one.server.connections)
            assert buffers.total == 0

    run(scenario)


def test_a_client_that_stops_in_the_middle_of_a_large_response_is_closed(run: Callable[[Scenario], None]) -> None:
    async def scenario(folder: Path) -> None:
        limits, tls = ConnectionLimits(read_stall_s=0.5), ServerTls(server_files(folder))
        async with serving(limits, tls=tls) as one, asking(one, request("/long")) as client:
            await asyncio.to_thread(read_slowly, client, lambda read: len(read) > len(LONG) // 4)
            await until(lambda: one.cuts)
            assert one.cuts == {"write_timeout": 1}

    run(scenario)


def test_a_client_that_reads_slowly_gets_large_responses_in_order(run: Callable[[Scenario], None]) -> None:
    async def scenario(folder: Path) -> None:
        tls, sent = ServerTls(server_files(folder)), 2 * request("/long") + request("/")
        async with serving(tls=tls) as one, asking(one, sent) as client:
            read = await asyncio.to_thread(read_slowly, client, lambda read: read.endswith(b"hello"))
            assert read.count(LONG) == 2
            assert not one.cuts

    run(scenario)


def test_a_stop_finishes_requests_and_ends_handshakes(run: Callable[[Scenario], None]) -> None:
    async def scenario(folder: Path) -> None:
        async with serving(tls=ServerTls(server_files(folder))) as one:
            silent, silent_writer = await one.dial()
            asking = asyncio.create_task(get(one, "/wait"))
            await one.app.asked.wait()
            stopping = asyncio.create_task(one.server.stop())
            assert await silent.read() == b""
            silent_writer.close()
            one.app.may_answer.set()
            assert (await asking).endswith(b"at last")
            await stopping
            assert one.server.connections == 0

    run(scenario)


def test_without_descriptors_clients_wait_and_are_accepted_later(run: Callable[[Scenario], None]) -> None:
    async def scenario(folder: Path) -> None:
        async with serving(tls=ServerTls(server_files(folder))) as one:
            assert status_of(await get(one, "/")) == 200, "what is loaded once needs a descriptor"
            client = socket.create_connection((one.address.host, one.address.port))
            with few_descriptors(), capture_logs() as logs:
                await until(lambda: [each["event"] for each in logs] == ["no connection accepted"])
            reader, writer = await asyncio.open_connection(
                sock=client, ssl=client_context(), server_hostname=one.address.host
            )
            writer.write(request("/", "Connection: close"))
            assert status_of(await reader.read()) == 200
            writer.close()

    run(scenario)


@contextlib.contextmanager
def few_descriptors() -> Iterator[None]:
    """Let this process open no file while the block runs."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_files_that_cannot_be_used_are_told_by_name(tmp_path: Path) -> None:
    files = server_files(tmp_path)
    key = authority().own.key.private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"a password that nobody is asked for")
    )
    for content, cause in [
        (key, "the key has a password"),
        (authority().own.key_pem.encode(), "key values mismatch"),
        (os.urandom(100), ""),
    ]:
        files.key.write_bytes(content)
        with pytest.raises(Invalid, match=rf"^The certificate .*server\.pem cannot be used with the key .* \({cause}"):
            ServerTls(files)
    files = server_files(tmp_path)
    assert files.client_authorities is not None
    files.client_authorities.write_text("nonsense")
    with pytest.raises(Invalid, match=r"^The authorities .*clients\.pem cannot be read "):
        ServerTls(files)
