"""Every parser of bytes from outside takes time that grows no faster than their number.

Each parser reads documents that repeat one piece, between a beginning and an end that lead it there. Costs are CPU
times of this process, the least of several, and compared within one run: the worst document of 256 kB may cost 24
times the same one of 16 kB, which is 16 times as long, and 20 times an ordinary document of 256 kB.
"""

import contextlib
import gzip
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509 import CertificateBuilder, Name, NameAttribute, random_serial_number
from cryptography.x509.oid import NameOID

from remuda.cloudinit.multipart import UnrecognizedUserData
from remuda.cloudinit.user_data import parts
from remuda.compute.instances.schema import InstanceCreate
from remuda.config.loader import from_file, parse
from remuda.http.authentication import read_claim_of_bearer
from remuda.http.binding import Binder
from remuda.http.bodies import BodyReader, FormReader
from remuda.http.certificates import read_chain
from remuda.identity.login.browser_state import Cookie
from remuda.identity.login.schema import LoginForm
from remuda.identity.rbac.authenticator import read_certificate
from remuda.identity.tokens.jwt import unverified_claims
from remuda.kernel.encoding import to_base64url
from remuda.kernel.errors import RemudaError
from remuda.kernel.tags import parse_tag_selector
from remuda.outbound.addresses import read_target
from remuda.providers.simulated.cloud_init import cloud_init_effects
from remuda.region.authorities.rules import authority_key
from remuda.resources.ipv4 import find_prefix
from remuda.resources.query import NetworkedQuery

FILE = Path("remuda.toml")
SMALL, LARGE = 16 * 1024, 256 * 1024
MOST_GROWTH, MOST_OVER_ORDINARY = 24, 20
FLOOR_S = 0.002
"""Below this a cost is noise, and no attack."""
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
            "&a [*a]\n",
            "? ",
            "--B\n",
            "--B--\n",
            " \n",
        ),
        *("a b ", "%2", "%41", "a=1&", "[[", '{"a":', "a.b.", "AAAA", "ssh-rsa AAAA ", "TrustedUserCAKeys /k\n"),
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


@dataclass(frozen=True)
class Parser:
    """A parser, an ordinary document for it, and the beginnings and ends between which pieces are repeated."""

    read: Callable[[bytes], object]
    ordinary: bytes
    """It is repeated up to the size of the others where that makes sense."""
    frames: tuple[tuple[bytes, bytes], ...] = ((b"", b""),)

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
_FORM_TYPE = b"application/x-www-form-urlencoded"
_TOKEN = to_base64url(b'{"alg":"ES512","kid":"k"}')

PARSERS: Mapping[str, Parser] = {
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
        lambda data: parts(gzip.compress(data, 1)), b"#cloud-config\n" + b"a: b\n" * 50_000, ((_MAIL + b"\n", b""),)
    ),
    "cloud-config": Parser(
        cloud_init_effects,
        b"#cloud-config\npackages:\n" + b"- nginx-with-a-long-name\n" * 10_000,
        (
            (b"#cloud-config\n", b""),
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
    "claim": Parser(read_claim_of_bearer, to_base64url(b'{"actor":"ann"}').encode()),
    "certificate": Parser(
        lambda data: read_certificate(data.decode("latin-1")),
        certificate(),
        ((b"", b""), (b"-----BEGIN CERTIFICATE-----\n", b"\n-----END CERTIFICATE-----\n")),
    ),
    "certificate of a proxy": Parser(
        read_chain,
        quote(certificate()).encode(),
        ((b"", b""), (b"-----BEGIN CERTIFICATE-----\n", b"\n-----END CERTIFICATE-----\n")),
    ),
    "cookies": Parser(
        lambda data: Cookie("https://identity.example.com", "remuda-login").read(data.decode("latin-1")),
        b"a=b; " * 50_000,
        ((b"", b""), (b"__Host-remuda-login=", b"")),
    ),
    "form": Parser(
        lambda data: FormReader(LoginForm).read(data, _FORM_TYPE),
        b"email=a%40b&password=p",
        ((b"", b""), (b"email=", b"")),
    ),
    "query": Parser(Binder(NetworkedQuery).bind_query, b"tag=a%3Db&limit=10", ((b"", b""), (b"tag=", b""))),
    "body": Parser(
        lambda data: BodyReader(InstanceCreate).read(data, b"application/json"),
        b'{"metadata":{"name":"' + b"a" * 250_000 + b'"}}',
        ((b"", b""), (b'{"metadata":{"name":"', b'"}}'), (b'{"spec":', b"}")),
    ),
    "SSH key": Parser(
        lambda data: authority_key(data.decode("latin-1")), public_key(), ((b"", b""), (b"ssh-ed25519 ", b" a"))
    ),
    "prefix": Parser(
        lambda data: find_prefix(data.decode("latin-1")), b"10.0.0.0/8", ((b"", b""), (b"10.0.0.0/", b""))
    ),
    "configuration": Parser(
        lambda data: [*from_file(parse(data.decode("latin-1"), FILE), FILE)],
        b"[server]\n" + b"".join(b"a%d = 1\n" % number for number in range(25_000)),
        ((b"", b""), (b"a = ", b""), (b'a = "', b'"'), (b"[server]\na = [", b"]"), (b"", b"=1")),
    ),
    "selector": Parser(lambda data: parse_tag_selector(data.decode("latin-1")), b"a=b", ((b"", b""), (b"a=", b""))),
    "address": Parser(
        lambda data: read_target(data.decode("latin-1")),
        b"https://a.example.com/x",
        ((b"https://", b"/"), (b"https://a/", b"")),
    ),
}


def growth(parser: Parser, frame: tuple[bytes, bytes], piece: bytes) -> tuple[float, float]:
    """Return the cost of a large document, and how many times that of a small one it is."""
    begin, end = frame
    small, large = (begin + piece * ((size - len(begin) - len(end)) // len(piece)) + end for size in (SMALL, LARGE))
    cost = parser.cost_s(large, times=1)
    if cost < FLOOR_S:
        return cost, 1.0
    for times in (3, 20):  # what seems too steep is measured once more, since a busy machine slows the caches down
        cost = parser.cost_s(large, times=times)
        growing = cost / max(parser.cost_s(small, times=times), FLOOR_S / MOST_GROWTH)
        if growing <= MOST_GROWTH:
            break
    return cost, growing


@pytest.mark.thorough
@pytest.mark.parametrize("name", PARSERS)
def test_no_document_costs_more_than_its_length(name: str) -> None:
    parser = PARSERS[name]
    ordinary = parser.cost_s(parser.ordinary) * max(1.0, LARGE / len(parser.ordinary))
    found = {(frame, piece): growth(parser, frame, piece) for frame in parser.frames for piece in PIECES}
    steep = {at: times for at, (_, times) in found.items() if times > MOST_GROWTH}
    assert not steep, f"{name}: {max(steep.items(), key=lambda each: each[1])}"
    worst, (cost, _) = max(found.items(), key=lambda each: each[1][0])
    assert cost <= max(FLOOR_S, MOST_OVER_ORDINARY * ordinary), f"{name}: {worst} costs {cost / ordinary:.0f} times"


@pytest.mark.thorough
def test_a_quadratic_parser_is_found() -> None:
    def quadratic(data: bytes) -> None:
        for at in range(0, len(data), 64):
            data[at:].count(b";")

    cost, times = growth(Parser(quadratic, b""), (b"", b""), b";")
    assert cost > FLOOR_S
    assert times > MOST_GROWTH
