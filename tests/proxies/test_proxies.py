"""Remuda behind nginx, Caddy and HAProxy of Debian's packages, with the files of docs/examples."""

import json
import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPSConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256

from remuda.http.authentication import PrincipalClaim, write_claim
from tests.kit.certificates import Issued, authority, self_signed
from tests.kit.processes.program import Running, running
from tests.proxies.programs import PROXIES, proxy

pytestmark = pytest.mark.proxies

ACCOUNT = "ci"
CALLER = "127.0.0.2"
"""Address of the clients, which is not that of the proxy."""
FORGED = "203.0.113.77"
RATE = 20
ORGANIZATIONS = "/identity/api/v1/organizations"
NETWORKS = "/region/api/v2/networks"
TIMEOUT_S = 60
Headers = Sequence[tuple[str, str]]


def spellings(name: str) -> list[str]:
    """Return a name of a header as clients may write it in the hope that it passes."""
    return [name, name.upper(), name.title(), name.replace("-", "_"), name.replace("-", "_").upper()]


def server_certificate() -> Issued:
    names = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))])
    return authority("web").issue("localhost", extensions=[(names, False)], key="server")


def forged(certificate: Issued) -> Headers:
    """Return what a client sends to be taken for a service, and for another address."""
    pem = quote(certificate.pem)
    names = {"ssl-client-cert": pem, "ssl-client-verify": "SUCCESS", "x-forwarded-for": FORGED, "x-real-ip": FORGED}
    names |= {"forwarded": f"for={FORGED}", "x-forwarded-host": FORGED, "x-forwarded-port": FORGED}
    return [(each, value) for name, value in names.items() for each in spellings(name)]


@dataclass(frozen=True)
class Client:
    """A client of a proxy, with a certificate or without one."""

    port: int
    directory: Path
    certificate: Issued | None = None
    address: str = CALLER

    def connection(self) -> HTTPSConnection:
        return HTTPSConnection(
            "localhost", self.port, context=self._context(), source_address=(self.address, 0), timeout=TIMEOUT_S
        )

    def open(self, path: str, headers: Headers = ()) -> HTTPSConnection:
        """Send a request, whose headers may be repeated and spelled at will."""
        connection = self.connection()
        connection.putrequest("GET", path)
        for name, value in headers:
            connection.putheader(name, value)
        connection.endheaders()
        return connection

    def ask(self, path: str, headers: Headers = ()) -> tuple[int, Any]:
        """Return the status and the JSON of an answer."""
        connection = self.open(path, headers)
        try:
            response = connection.getresponse()
            body = response.read()
            is_json = response.headers.get_content_type() == "application/json"
            return response.status, json.loads(body) if is_json else body
        finally:
            connection.close()

    def _context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cadata=authority("web").pem)
        if self.certificate is not None:
            file = self.directory / f"client-{self.certificate.certificate.fingerprint(SHA256()).hex()}.pem"
            file.write_text(self.certificate.pem + self.certificate.key_pem)
            context.load_cert_chain(file)
        return context


@dataclass(frozen=True)
class System:
    """Remuda behind a proxy."""

    running: Running
    port: int
    directory: Path

    def client(self, certificate: Issued | None = None, *, address: str = CALLER) -> Client:
        return Client(self.port, self.directory, certificate, address)


def settings(clients_pem: Path) -> Mapping[str, str]:
    """Return the settings of the page."""
    return {
        "REMUDA_SERVER__PUBLIC_URL": "https://cloud.example.com",
        "REMUDA_SERVER__FORWARDING_PROXIES": '["127.0.0.1"]',
        "REMUDA_SERVER__CERTIFICATE_PROXIES": '["127.0.0.1"]',
        "REMUDA_SERVER__CLIENT_CA_FILE": str(clients_pem),
        "REMUDA_SERVER__RATE_LIMIT": str(RATE),
        "REMUDA_SERVER__FAILURE_LIMIT": str(RATE),
        "REMUDA_IDENTITY__SYSTEM_ACCOUNTS": f'{{ {ACCOUNT} = {{ role = "platform-administrator" }} }}',
    }


@pytest.fixture(scope="module", params=PROXIES)
def system(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    directory = tmp_path_factory.mktemp(request.param)
    clients = directory / "clients.pem"
    clients.write_text(authority().pem)
    with running(directory / "data", environment=settings(clients)) as one:
        backend = int(one.url.rpartition(":")[2])
        with _proxy(request.param, directory, backend) as port:
            yield System(one, port, directory)


@contextmanager
def _proxy(name: str, directory: Path, backend: int) -> Iterator[int]:
    given = {"server": server_certificate(), "clients_pem": authority().pem}
    with proxy(name, directory / "proxied", backend=backend, **given) as port:  # type: ignore[arg-type]
        yield port


@pytest.mark.parametrize("name", PROXIES)
def test_m27_nothing_that_a_client_says_about_itself_passes_a_proxy(name: str, tmp_path: Path) -> None:
    seen: list[tuple[str, str]] = []

    class Backend(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.extend(self.headers.items())
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    service, imposter = authority().issue(ACCOUNT), self_signed(ACCOUNT)
    with ThreadingHTTPServer(("127.0.0.1", 0), Backend) as backend:
        Thread(target=backend.serve_forever, daemon=True).start()
        with _proxy(name, tmp_path, backend.server_port) as port:
            anonymous = Client(port, tmp_path)
            assert anonymous.ask("/", [*forged(service), *forged(service)])[0] == 204
            without, with_certificate = list(seen), seen
            seen.clear()
            assert Client(port, tmp_path, service).ask("/", forged(imposter))[0] == 204
        backend.shutdown()
    assert without, "the request arrived"
    for headers in (without, with_certificate):
        assert [value for name, value in headers if FORGED in value] == []
        assert [value for name, value in headers if name.lower() == "x-forwarded-for"] == [CALLER]
        assert [value for name, value in headers if name.lower() == "x-forwarded-proto"] == ["https"]
    assert not [value for name, value in without if "CERTIFICATE" in value or value == "SUCCESS"]
    sent = {name.lower(): value for name, value in with_certificate if name.lower().startswith("ssl")}
    assert sorted(sent) == ["ssl-client-cert", "ssl-client-verify"]
    assert sent["ssl-client-verify"] == "SUCCESS"
    assert quote(imposter.pem) != sent["ssl-client-cert"]


def test_m27_a_caller_who_sends_the_certificate_of_a_service_is_nobody(system: System) -> None:
    for certificate in (authority().issue(ACCOUNT), self_signed(ACCOUNT)):
        plain = [("ssl-client-cert", quote(certificate.pem)), ("ssl-client-verify", "SUCCESS")]
        for headers in (plain, forged(certificate), [*forged(certificate), *forged(certificate)]):
            claim = ("x-principal", write_claim(PrincipalClaim()))
            status, body = system.client(address="127.0.0.3").ask(ORGANIZATIONS, [*headers, claim])
            assert (status, body["error"]) == (401, "access_denied")


def test_m27_fields_of_a_trailer_have_no_effect(system: System) -> None:
    certificate = [("ssl-client-cert", quote(authority().issue(ACCOUNT).pem)), ("ssl-client-verify", "SUCCESS")]
    token = ("authorization", f"Bearer {system.running.credentials['token']}")
    direct = HTTPConnection("127.0.0.1", int(system.running.url.rpartition(":")[2]), timeout=TIMEOUT_S)
    for connection in (system.client(address="127.0.0.7").connection(), direct):
        for head, trailer in (
            ([], [*_claimed(), *certificate]),
            (_claimed(), [*certificate, ("x-forwarded-for", FORGED)]),
            ([("te", "trailers"), ("trailer", "authorization")], [token, ("x-forwarded-for", FORGED)]),
        ):
            status, body = send_chunked(connection, ORGANIZATIONS, head, trailer)
            assert (status, b"access_denied" in body) == (401, True), body


def send_chunked(connection: HTTPConnection, path: str, headers: Headers, trailer: Headers) -> tuple[int, bytes]:
    """Send a body in chunks with a trailer, and return the status and the body of the answer."""
    with closing(connection):
        connection.putrequest("POST", path)
        for name, value in [("content-type", "application/json"), ("transfer-encoding", "chunked"), *headers]:
            connection.putheader(name, value)
        fields = "".join(f"{name}: {value}\r\n" for name, value in trailer)
        connection.endheaders(b"2\r\n{}\r\n0\r\n" + fields.encode() + b"\r\n")
        response = connection.getresponse()
        return response.status, response.read()


def test_m27_a_caller_who_forges_addresses_keeps_its_own(system: System) -> None:
    client = system.client(address="127.0.0.4")
    statuses = []
    for number in range(5 * RATE):
        forgery = f"198.51.100.{number}"
        names = [*spellings("x-forwarded-for"), *spellings("x-real-ip")]
        statuses.append(client.ask(ORGANIZATIONS, [(name, forgery) for name in names])[0])
        if statuses[-1] == 429:
            break
    assert statuses[0] == 401
    assert statuses[-1] == 429, "each forged address would have had a limit of its own"
    assert system.client(address="127.0.0.5").ask(ORGANIZATIONS)[0] == 401


def test_m27_a_certificate_that_anybody_can_make_is_refused(system: System) -> None:
    for certificate in (self_signed(ACCOUNT), authority("imposter").issue(ACCOUNT)):
        try:
            status, _ = system.client(certificate).ask(ORGANIZATIONS, _claimed())
        except (ssl.SSLError, ConnectionError):
            continue
        assert status == 400, "nginx says it in HTTP"


def _claimed() -> Headers:
    return [("x-principal", write_claim(PrincipalClaim()))]


def test_a_service_with_a_certificate_of_the_authority_is_itself(system: System) -> None:
    service = system.client(authority().issue(ACCOUNT))
    status, body = service.ask(ORGANIZATIONS, _claimed())
    assert status == 200, body
    assert [each["metadata"]["name"] for each in body] == ["default"]
    status, body = service.ask(ORGANIZATIONS, [*_claimed(), *forged(self_signed("somebody-else"))])
    assert status == 200, "what it sends about itself is replaced"


def test_a_certificate_of_a_name_that_is_no_account_is_refused(system: System) -> None:
    status, _ = system.client(authority().issue("unikorn-compute")).ask(ORGANIZATIONS, _claimed())
    assert status == 401


def test_a_token_passes_and_a_watch_shows_each_event_as_it_happens(system: System) -> None:
    headers = [("authorization", f"Bearer {system.running.credentials['token']}")]
    watching = system.client(address="127.0.0.6").open(f"{NETWORKS}?watch=true", headers)
    try:
        response = watching.getresponse()
        assert (response.status, response.headers.get_content_type()) == (200, "text/event-stream")
        for _ in range(2):
            created = create_network(system.running)
            while created not in response.readline().decode():
                assert not response.isclosed()
    finally:
        watching.close()


def create_network(one: Running) -> str:
    """Create a network without the proxy, and return its id."""
    known = one.credentials
    place = {name: known[name] for name in ("organizationId", "projectId", "regionId")}
    spec = {**place, "prefix": "10.0.0.0/24", "dnsNameservers": []}
    content = {"metadata": {"name": "net"}, "spec": spec}
    headers = {"authorization": f"Bearer {known['token']}"}
    created = httpx2.post(f"{one.url}{NETWORKS}", json=content, headers=headers)
    assert created.status_code == 201, created.text
    return str(created.json()["metadata"]["id"])
