"""The connection to a cloud that is not what its operator wrote: each mistake has an error of its own."""

import asyncio
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from remuda.kernel.clock import SystemClock
from remuda.kernel.secrets import Secret
from remuda.outbound.client import new_tls
from remuda.providers.openstack.client import CloudAddress, OpenStackClient
from remuda.providers.openstack.probe import ManagerNames, ProbeFailed, find_manager
from tests.kit.outbound_servers import certified

NAMES = ManagerNames(user_name="manager", domain_name="remuda", password=Secret("canary"))


@contextmanager
def serving(body: bytes, tls: ssl.SSLContext | None = None) -> Iterator[int]:
    """Serve one answer for every path, and give the port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def problem_at(url: str, tls: ssl.SSLContext | None = None) -> ProbeFailed:
    async def probe() -> None:
        client = OpenStackClient(CloudAddress(auth_url=url, tls=tls or new_tls()), clock=SystemClock())
        try:
            await find_manager(client, NAMES)
        finally:
            await client.close()

    with pytest.raises(ProbeFailed) as failed:
        asyncio.run(probe())
    assert "canary" not in str(failed.value)
    return failed.value


def test_m23_a_certificate_that_has_expired_is_named(tmp_path: Path) -> None:
    server, client = certified("localhost", tmp_path, ends=timedelta(hours=-1))
    with serving(b"{}", server) as port:
        failed = problem_at(f"https://localhost:{port}/v3", client)
    assert (failed.field, failed.problem) == ("endpoint", "has a certificate that has expired")


def test_m23_a_certificate_of_an_unknown_authority_is_named(tmp_path: Path) -> None:
    server, _ = certified("localhost", tmp_path)
    with serving(b"{}", server) as port:
        failed = problem_at(f"https://localhost:{port}/v3")
    assert (failed.field, "cacert" in failed.remedy) == ("caCertificate", True)


def test_m23_a_certificate_for_another_name_is_named(tmp_path: Path) -> None:
    server, client = certified("cloud.example.com", tmp_path)
    with serving(b"{}", server) as port:
        failed = problem_at(f"https://localhost:{port}/v3", client)
    assert (failed.field, failed.problem) == ("endpoint", "has a certificate for another host name")


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"{}", b"[]", b"\xff", b'{"version": {"id": "v2.0"}}', b'{"version": 3}']
)
def test_m23_what_is_not_keystone_is_named(body: bytes) -> None:
    with serving(body) as port:
        failed = problem_at(f"http://127.0.0.1:{port}/v3")
    assert (failed.field, failed.problem) == ("endpoint", "is not Keystone")


def test_m23_an_endpoint_without_its_version_is_named() -> None:
    with serving(b'{"versions": {"values": []}}') as port:
        failed = problem_at(f"http://127.0.0.1:{port}")
    assert (failed.field, failed.remedy) == ("endpoint", f"append it, as in http://127.0.0.1:{port}/v3")


def test_m23_a_closed_port_and_tls_where_there_is_none_are_named() -> None:
    assert "cannot be connected to" in problem_at("http://127.0.0.1:1/v3").problem
    with serving(b"{}") as port:
        assert problem_at(f"https://127.0.0.1:{port}/v3").field == "endpoint"
