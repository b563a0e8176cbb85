"""Every parser of bytes from outside takes time that grows no faster than their number.

Each parser reads documents that repeat one piece, between a beginning and an end that lead it there. Costs are CPU
times of this process, the least of several, and compared within one run: the worst document of 256 kB may cost 24
times the same one of 16 kB, which is 16 times as long, and 20 times an ordinary document. That one is of 256 kB where
the parser accepts it, else of the largest size that it accepts, and its cost is never scaled.
"""

import base64
import contextlib
import gzip
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast
from urllib.parse import quote

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509 import CertificateBuilder, Name, NameAttribute, random_serial_number
from cryptography.x509.oid import NameOID
from joserfc.jwk import ECKey

from remuda.access.principal import AccessList
from remuda.cloudinit.multipart import UnrecognizedUserData
from remuda.cloudinit.user_data import parts
from remuda.compute.instances.schema import InstanceCreate
from remuda.config.loader import from_file, parse
from remuda.http.authentication import read_bearer, read_claim_of_bearer
from remuda.http.binding import Binder
from remuda.http.bodies import BodyReader, FormReader
from remuda.http.certificates import read_chain
from remuda.http.dispatch import PathTrie
from remuda.http.pagination import Cursors
from remuda.http.proxies import ForwardingProxies
from remuda.http.remote_errors import error_from
from remuda.http.request import read_if_match, read_key
from remuda.http.responses import is_match
from remuda.http.server.exposition import negotiated
from remuda.http.sse import EventReader
from remuda.identity.factors.recovery import recovery_hash
from remuda.identity.federation.provider_client import fetch_json, read_keys
from remuda.identity.kinds.oauth import OAuth2Client, OAuth2ClientSpec
from remuda.identity.login.browser_state import Cookie, KnownBrowserCookie
from remuda.identity.login.schema import LoginForm
from remuda.identity.oauth.clients import OAuthClientCredentials, allows_redirect, check_redirect_uris, load_public_key
from remuda.identity.oauth.schema import ClientForm
from remuda.identity.ports import Fetched
from remuda.identity.rbac.authenticator import read_certificate
from remuda.identity.tenancy.rules import check_issuer, check_organization
from remuda.identity.tenancy.schema import OrganizationSpecWire
from remuda.identity.tokens.jwt import unverified_claims
from remuda.identity.users.rules import email_address
from remuda.kernel.clock import SystemClock, parse_duration
from remuda.kernel.encoding import to_base64url
from remuda.kernel.errors import RemudaError
from remuda.kernel.randomness import SystemRandomness
from remuda.kernel.secrets import Secret
from remuda.kernel.tags import parse_tag_selector
from remuda.outbound.addresses import read_target
from remuda.providers.simulated.catalogue import parse_catalogues
from remuda.providers.simulated.cloud_init import cloud_init_effects
from remuda.region.app import TABLE as REGION
from remuda.region.authorities.rules import authority_key
from remuda.resources.ipv4 import find_prefix
from remuda.resources.query import NetworkedQuery
from remuda.resources.tags import reserving_service
from remuda.store.objects import Metadata
from tests.kit.simulation.store import SEALER

T = TypeVar("T")

FILE = Path("remuda.toml")
SMALL, LARGE = 16 * 1024, 256 * 1024
MOST_GROWTH, MOST_OVER_ORDINARY = 24, 20
PIECES = tuple(
    piece.encode("latin-1")
    for piece in (
        *"; a=,\"\\\n\t&%/.:-0[{(<|*#'\x00\xff",
        *(
            "\r\n",
            "\xc3\xa9",
            "a=b;",
            ';a="',
            "a:",
            "a: b\n",
            "- ",
            "- a\n",
            "a,",
            "&a [*a]\n",
            "? ",
            "--B\n",
            "--B--\n",
            " \n",
        ),
        *("a b ", "%2", "%41", "a=1&", "[[", '{"a":', "a.b.", "AAAA", "ssh-rsa AAAA ", "TrustedUserCAKeys /k\n"),
        *("%/", "%25%", "%2525/"),
        *("-----BEGIN ", "0.", "::", "a\n b\n", "a.", "x" * 64, "[a]\n", "[[a]]\n", "a.a", "a.a" * 2_700 + "=1\n"),
    )
)


def certificate() -> bytes:
    key, name = Ed25519PrivateKey.generate(), Name([NameAttribute(NameOID.COMMON_NAME, "unikorn-compute")])
    now = datetime.now(UTC)
    built = CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    dated = built.serial_number(random_serial_number()).not_valid_before(now).not_valid_after(now + timedelta(days=1))
    return dated.sign(key, None).public_bytes(Encoding.PEM)


def public_key() -> bytes:
    return Ed25519PrivateKey.generate().public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)


EC_JWK = msgspec.json.encode(ECKey.generate_key("P-256").as_dict(private=False))
EC_KEY = generate_private_key(SECP256R1()).public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


@dataclass(frozen=True)
class Parser:
    """A parser, an ordinary document for it, and the beginnings and ends between which pieces are repeated."""

    read: Callable[[bytes], object]
    ordinary: bytes
    frames: tuple[tuple[bytes, bytes], ...] = ((b"", b""),)
    wrap: Callable[[bytes], bytes] = bytes
    """What is done with each document but the ordinary one before it is read."""

    def cost_s(self, document: bytes, *, times: int = 3) -> float:
        """Return the CPU seconds of one reading."""
        least = float("inf")
        for _ in range(times):
            start = time.process_time()
            with contextlib.suppress(RemudaError, UnrecognizedUserData, ValueError, RecursionError):
                self.read(document)
            least = min(least, time.process_time() - start)
        return least


_MAIL = b'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="B"\n'
_CATALOGUE = b"""
[[flavors]]
id = "11111111-1111-1111-1111-111111111111"
name = "small"
cpus = 1
memory_gib = 2
disk_gib = 20
[clouds.one]
public_addresses = ["198.51.100.0/29"]
hosts = { small = { count = 2, size = 3 } }
""" + b"".join(
    b"""
[[images]]
id = "33333333-3333-3333-3333-%012d"
name = "linux-%d"
size_gib = 1
os = { family = "debian", distro = "debian", version = "12" }
"""
    % (number, number)
    for number in range(1_600)
)
_IDS = dict.fromkeys(
    ("flavorId", "imageId", "organizationId", "projectId", "networkId"), "11111111-1111-1111-1111-111111111111"
)
_INSTANCE = msgspec.json.encode({"metadata": {"name": "a"}, "spec": _IDS | {"userData": "A" * 250_000}})
_CONFIG = b"#cloud-config\npackages:\n" + b"- nginx-with-a-long-name\n" * 3_500
_FORM_TYPE = b"application/x-www-form-urlencoded"
_TOKEN = to_base64url(b'{"alg":"ES512","kid":"k"}')
_ETAG = b'"' + b"0" * 32 + b'"'

_SEALED = SEALER.seal(Secret("1"), context="x").encode()
_CLIENT = OAuth2Client(metadata=Metadata(name="c"), spec=OAuth2ClientSpec(redirect_uris=("http://127.0.0.1/callback",)))
_OF_DOMAIN = partial(OrganizationSpecWire, "domain", provider_scope="organization", provider_id="p")
_PATHS = PathTrie((route.method, route.path, route) for route in REGION.routes)
_BODY, _FORM = BodyReader(InstanceCreate), FormReader(LoginForm)
_COOKIE = Cookie("https://identity.example.com", "remuda-login")
_KNOWN_BROWSER = KnownBrowserCookie(
    "https://i.example.com", sealer=SEALER, clock=SystemClock(), randomness=SystemRandomness()
)
_PROXIES = ForwardingProxies(["0.0.0.0/0", "::/0"])


def text(read: Callable[[str], object]) -> Callable[[bytes], object]:
    """Return a parser of text as a parser of bytes."""
    return lambda data: read(data.decode("latin-1"))


def packed_archives(data: bytes, *, begin: bytes = b"", end: bytes = b"") -> bytes:
    """Return gzipped user data with an archive for each kB, as much as it may have for 256 kB."""
    head = b"\n--B\nContent-Type: text/cloud-config-archive\n\n#cloud-config-archive\n"
    entries = (data[at : at + 1024] * 4 for at in range(0, min(len(data), 248 * 1024), 1024))
    return gzip.compress(_MAIL + b"".join(head + begin + each + end for each in entries) + b"\n--B--\n", 1)


def read_redirect_uri(uri: str) -> None:
    allows_redirect(_CLIENT, uri)
    check_redirect_uris("spec.redirectUris", (uri,))


async def _fetched(_method: str, _url: str, _headers: Any, body: bytes | None) -> Fetched:
    return Fetched(status=200, body=body or b"")


def from_provider(data: bytes, kind: type[Any] = dict[str, Any]) -> object:
    """Read a response of an identity provider."""
    return run_to_end(fetch_json(_fetched, "GET", "https://idp.example.com", kind, body=data))


def run_to_end(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that waits for nothing."""
    try:
        work.send(None)
    except StopIteration as done:
        return cast("T", done.value)
    raise AssertionError("it waits")


HEADERS: Mapping[str, Parser] = {
    "basic credentials": Parser(
        text(lambda header: OAuthClientCredentials.from_request(ClientForm(), header)),
        b"Basic " + base64.b64encode(b"client:" + b"s" * 12_000),
        ((b"", b""), (b"Basic ", b""), (b"Basic OnNl", b"")),
    ),
    "bearer token": Parser(read_bearer, b"Bearer " + b"a" * 100_000, ((b"", b""), (b"Bearer ", b""))),
    "forwarded addresses": Parser(
        lambda header: _PROXIES.client_of("192.0.2.1", header),
        b"192.0.2.1, " * 23_000,
        ((b"", b""), (b"192.0.2.", b"")),
    ),
    "forwarded certificate": Parser(
        read_chain,
        quote(certificate()).encode(),
        (
            (b"", b""),
            (b"-----BEGIN CERTIFICATE-----", b"-----END CERTIFICATE-----"),
            (b"-----BEGIN CERTIFICATE-----", b""),
        ),
    ),
    "accepted types": Parser(
        lambda header: negotiated({b"accept": header, b"accept-encoding": header}), b"text/plain;q=0.5, " * 14_500
    ),
    "content type of JSON": Parser(
        partial(BodyReader(dict[str, str]).read, b"{}"),
        b"application/json; charset=utf-8",
        ((b"", b""), (b"application/", b"json"), (b"application/json", b""), (b"application/a+", b"")),
    ),
    "content type of a form": Parser(partial(_FORM.read, b"state=s"), _FORM_TYPE, ((b"", b""), (_FORM_TYPE, b""))),
    "path": Parser(
        text(_PATHS.find),
        b"/api/v2/networks/" + b"%E5%90%8D" * 28_000,
        ((b"", b""), (b"/", b""), (b"/api/v2/networks/", b"")),
    ),
    "idempotency key": Parser(lambda header: read_key({b"idempotency-key": header}, is_public=False), b"k" * 255),
    "If-Match": Parser(lambda header: read_if_match({b"if-match": header}, is_conditional=True), b'"a"'),
    "If-None-Match": Parser(lambda header: is_match(header, _ETAG), b'W/"1", ' * 32_000 + _ETAG),
    "known browser": Parser(
        text(_KNOWN_BROWSER.read),
        b"remuda-known-browser=a; " * 10_000,
        ((b"", b""), (b"__Host-remuda-known-browser=", b""), (b"remuda-known-browser=" + _SEALED, b"")),
    ),
}
"""Parsers of headers, beside those of tokens, claims and cookies."""

VALUES: Mapping[str, Parser] = {
    "redirect URI": Parser(
        text(read_redirect_uri),
        b"https://app.example.com/" + b"a" * 2_000,
        (
            (b"", b""),
            (b"https://", b""),
            (b"http://127.0.0.1:", b"/callback"),
            (b"http://[", b"]/callback"),
            (b"https://a@", b""),
        ),
    ),
    "public key": Parser(
        text(load_public_key),
        b"explanation of the key\n" * 11_000 + EC_KEY,
        ((b"", b""), (b"-----BEGIN PUBLIC KEY-----\n", b"\n-----END PUBLIC KEY-----\n"), (EC_KEY, b"")),
    ),
    "sealed text": Parser(
        text(lambda sealed: SEALER.open(sealed, context="x")),
        SEALER.seal(Secret("s" * 190_000), context="x").encode(),
        ((b"", b""), (b"sealed:v1:", b""), (_SEALED, b"")),
    ),
    "e-mail address": Parser(text(email_address), b"ann@example.com", ((b"", b""), (b"a@", b""), (b"a", b"@b.c"))),
    "domain": Parser(
        text(lambda domain: check_organization(_OF_DOMAIN(domain=domain))),
        b"example.com",
        ((b"", b""), (b"a.", b""), (b"", b".com")),
    ),
    "issuer": Parser(
        text(check_issuer),
        b"https://idp.example.com/" + b"path/" * 300,
        ((b"", b""), (b"https://", b""), (b"https://a/", b"")),
    ),
    "recovery code": Parser(text(recovery_hash), b"ABCD-" * 52_000),
    "tag name": Parser(
        text(reserving_service), b"team." * 52_000 + b"unikorn-cloud.org/x", ((b"", b""), (b"", b".unikorn-cloud.org/"))
    ),
    "duration": Parser(text(parse_duration), b"1h30m" * 50_000, ((b"", b""), (b"1", b"s"))),
    "cursor": Parser(text(Cursors(AccessList()).read), b"1-" + b"0" * 16, ((b"", b""), (b"", b"-" + b"0" * 16))),
}
"""Parsers of single values in bodies, queries and settings."""

RESPONSES: Mapping[str, Parser] = {
    "response of a provider": Parser(
        from_provider,
        b'{"keys":[' + b'{"kty":"EC"},' * 20_000 + b"{}]}",
        ((b"", b""), (b'{"a":', b"}"), (b'{"a":"', b'"}')),
    ),
    "keys of a provider": Parser(
        lambda data: run_to_end(read_keys(lambda *_: _fetched("GET", "", {}, data), "https://idp.example.com")),
        b'{"keys":[' + b",".join([EC_JWK[:-1] + b',"x5c":["' + b"MIIC" * 1_900 + b'"]}'] * 32) + b"]}",
        (
            (b"", b""),
            (b'{"keys":[{"kty":"RSA","e":"AQAB","n":"', b'"}]}'),
            (b'{"keys":[{"kty":"EC","crv":"P-256","y":"AA","x":"', b'"}]}'),
            (b'{"keys":[{"kty":"RSA","n":"AQAB","e":"', b'"}]}'),
        ),
    ),
    "error of a service": Parser(
        lambda data: error_from(422, {}, data, server="region"),
        b'{"error":"invalid","error_description":"' + b"a" * 250_000 + b'"}',
    ),
    "event stream": Parser(
        lambda data: [*EventReader().feed(data)], b"data: {}\n\n" * 20_000, ((b"", b""), (b"data: ", b"\n\n"))
    ),
    "catalogue": Parser(
        text(parse_catalogues),
        _CATALOGUE,
        ((b"", b""), (b"a = [", b"]")),
    ),
}
"""Parsers of what other servers and operators send."""

PARSERS: Mapping[str, Parser] = {
    **HEADERS,
    **VALUES,
    **RESPONSES,
    "user data": Parser(
        parts,
        _MAIL + b"\n--B\nContent-Transfer-Encoding: base64\n\n" + b"IyEK" * 65_000 + b"\n--B--\n",
        (
            (b"", b""),
            (b"#cloud-config\n", b""),
            (_MAIL + b"X: ", b"\n\n--B\n\n#!\n--B--\n"),
            (_MAIL + b"\n", b"\n--B\n\n#!\n--B--\n"),
            (_MAIL + b'\n--B\nContent-Type: text/plain; a="', b"\n\n#!\n--B--\n"),
            (_MAIL + b"\n--B\nContent-Transfer-Encoding: base64\n\n", b"\n--B--\n"),
            (_MAIL + b"\n--B\nContent-Transfer-Encoding: quoted-printable\n\n", b"\n--B--\n"),
        ),
    ),
    "gzipped user data": Parser(
        parts,
        gzip.compress(b"#cloud-config\n" + b"a: a longer value\n" * 14_000),
        ((_MAIL + b"\n", b""),),
        gzip.compress,
    ),
    "gzipped archives of lines": Parser(cloud_init_effects, gzip.compress(_CONFIG), wrap=packed_archives),
    "gzipped archives of lists": Parser(
        cloud_init_effects, gzip.compress(_CONFIG), wrap=partial(packed_archives, begin=b"[", end=b"]")
    ),
    "cloud-config": Parser(
        cloud_init_effects,
        _CONFIG,
        (
            (b"#cloud-config\n", b""),
            (b"#cloud-config\n%TAG !e! tag:" + b"a" * 6_000 + b"\n---\n- !e!b x\n", b""),
            (b"#cloud-config\nusers:\n- ", b""),
            (b"#cloud-config\nssh_authorized_keys:\n- ", b""),
            (b"#cloud-config\nwrite_files:\n- path: /k\n  content: |\n    ", b""),
            (b"#cloud-config-archive\n- ", b""),
        ),
    ),
    "token": Parser(
        lambda data: unverified_claims(data.decode("latin-1")),
        f"{_TOKEN}.{to_base64url(b'{}')}.{'a' * 176}".encode(),
        (
            (b"", b""),
            (f"{_TOKEN}.".encode(), b".a"),
            (_TOKEN.encode() + b"." + to_base64url(b'{"exp":').encode(), b".a"),
        ),
    ),
    "claim": Parser(read_claim_of_bearer, to_base64url(b'{"actor":"' + b"a" * 6_000 + b'"}').encode()),
    "certificate": Parser(
        lambda data: read_certificate(data.decode("latin-1")),
        b"Subject: CN=unikorn-compute\n" * 2_000 + certificate(),
        ((b"", b""), (b"-----BEGIN CERTIFICATE-----\n", b"\n-----END CERTIFICATE-----\n")),
    ),
    "cookies": Parser(
        text(_COOKIE.read),
        b"a=b; " * 50_000,
        ((b"", b""), (b"__Host-remuda-login=", b"")),
    ),
    "form": Parser(
        lambda data: _FORM.read(data, _FORM_TYPE),
        b"state=s&email=a%40b.example&password=" + b"%E8%AF%8D" * 28_000,
        ((b"", b""), (b"email=", b"")),
    ),
    "query": Parser(
        Binder(NetworkedQuery).bind_query, b"tag=name%3D" + b"%E5%80%BC" * 28_000, ((b"", b""), (b"tag=", b""))
    ),
    "body": Parser(
        lambda data: _BODY.read(data, b"application/json"),
        _INSTANCE,
        ((b"", b""), (b'{"metadata":{"name":"', b'"}}'), (b'{"spec":', b"}")),
    ),
    "SSH key": Parser(
        lambda data: authority_key(data.decode("latin-1")),
        public_key() + b" " + b"comment " * 2_000,
        ((b"", b""), (b"ssh-ed25519 ", b" a")),
    ),
    "prefix": Parser(
        lambda data: find_prefix(data.decode("latin-1")), b"10.0.0.0/8", ((b"", b""), (b"10.0.0.0/", b""))
    ),
    "configuration": Parser(
        lambda data: [*from_file(parse(data.decode("latin-1"), FILE), FILE)],
        b"[server]\ncors_origins = [" + b'"https://a.example.com",\n' * 10_000 + b"]\n",
        ((b"", b""), (b"a = ", b""), (b'a = "', b'"'), (b"[server]\na = [", b"]"), (b"", b"=1")),
    ),
    "selector": Parser(
        lambda data: parse_tag_selector(data.decode("latin-1")),
        b"name=" + b"value " * 43_000,
        ((b"", b""), (b"a=", b"")),
    ),
    "address": Parser(
        lambda data: read_target(data.decode("latin-1")),
        b"https://a.example.com/" + b"x" * 2_000,
        ((b"https://", b"/"), (b"https://a/", b"")),
    ),
}


Frame = tuple[bytes, bytes]


def document(parser: Parser, frame: Frame, piece: bytes, size: int) -> bytes:
    """Return a document of about this size."""
    begin, end = frame
    return parser.wrap(begin + piece * ((size - len(begin) - len(end)) // len(piece)) + end)


@pytest.fixture(scope="module")
def floor_s() -> float:
    """Return the cost below which a reading is noise, and no attack: a few passes over as many bytes."""

    def visit_each(data: bytes) -> None:
        for _ in data:
            pass

    return 4 * Parser(visit_each, b"").cost_s(bytes(LARGE), times=20)


def growth(parser: Parser, frame: Frame, piece: bytes, floor_s: float) -> tuple[float, float]:
    """Return the cost of a large document, and how many times that of a small one it is."""
    small, large = (document(parser, frame, piece, size) for size in (SMALL, LARGE))
    cost = parser.cost_s(large, times=1)
    if cost < floor_s:
        return cost, 1.0
    for times in (3, 20):  # what seems too steep is measured once more, since a busy machine slows the caches down
        cost = parser.cost_s(large, times=times)
        growing = cost / max(parser.cost_s(small, times=times), floor_s / MOST_GROWTH)
        if growing <= MOST_GROWTH:
            break
    return cost, growing


@pytest.mark.thorough
@pytest.mark.parametrize("name", PARSERS)
def test_no_document_costs_more_than_its_length(name: str, floor_s: float) -> None:
    parser = PARSERS[name]
    ordinary = parser.cost_s(parser.ordinary)
    found = {(frame, piece): growth(parser, frame, piece, floor_s) for frame in parser.frames for piece in PIECES}
    steep = {at: times for at, (_, times) in found.items() if times > MOST_GROWTH}
    for _ in range(3):  # another process may have disturbed one measurement, but hardly each of them
        steep = {at: times for at in steep if (times := growth(parser, *at, floor_s)[1]) > MOST_GROWTH}
    assert not steep, f"{name}: {max(steep.items(), key=lambda each: each[1])}"
    (frame, piece), (cost, _) = max(found.items(), key=lambda each: each[1][0])
    if cost > max(floor_s, MOST_OVER_ORDINARY * ordinary):  # measured once more, like what seems too steep
        ordinary = max(ordinary, parser.cost_s(parser.ordinary))
        cost = parser.cost_s(document(parser, frame, piece, LARGE), times=20)
    worst = f"{frame} {piece[:64]!r} costs {cost / ordinary:.0f} times"
    assert cost <= max(floor_s, MOST_OVER_ORDINARY * ordinary), f"{name}: {worst}"


@pytest.mark.parametrize("name", PARSERS)
def test_an_ordinary_document_is_accepted(name: str) -> None:
    """A document that is refused early would cost nothing, and say nothing of what a document may cost."""
    PARSERS[name].read(PARSERS[name].ordinary)


@pytest.mark.thorough
def test_a_quadratic_parser_is_found(floor_s: float) -> None:
    def quadratic(data: bytes) -> None:
        for at in range(0, len(data), 64):
            data[at:].count(b";")

    cost, times = growth(Parser(quadratic, b""), (b"", b""), b";", floor_s)
    assert cost > floor_s
    assert times > MOST_GROWTH
