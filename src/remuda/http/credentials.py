"""What a request brings to say who sends it, read from its headers.

A caller has a bearer token. A service has a client certificate instead, or beside it: the proxy in front has verified
it and passes it on in headers. Anybody can write such headers, so they are believed from configured proxies and do not
exist when somebody else sends them. A service must say for whom it acts (`X-Principal`); with `X-Impersonate` it asks
for no more than both may.

Nothing here tells whether credentials hold: that is the `Authenticator`'s to say.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Mapping, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Literal
from urllib.parse import unquote

import msgspec

from remuda.http.answers import Header
from remuda.kernel.errors import Malformed, Unauthenticated

__all__ = ["Claim", "Credentials", "TrustedProxies", "read_credentials"]

_SENSITIVE = (b"authorization", b"ssl-client-cert", b"ssl-client-verify", b"x-principal", b"x-impersonate")
_TOKEN = re.compile(rb"[0-9A-Za-z\-._~+/]+=*")
_PEM = re.compile(r"-----BEGIN CERTIFICATE-----\s[0-9A-Za-z+/=\s]+-----END CERTIFICATE-----\s*")
_WORDS_OF_BEARER = 2


class Claim(msgspec.Struct, frozen=True, kw_only=True, rename={"organization": "organizationId"}):
    """For whom a service says it acts; it pays and is audited."""

    actor: str = ""
    type: Literal["user", "service", "system"] | None = None
    organization: str | None = None
    project: str | None = msgspec.field(default=None, name="projectId")
    organizations: tuple[str, ...] = msgspec.field(default=(), name="organizationIds")


class Credentials(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a request says about who sends it. At least one of token and certificate is there."""

    token: str | None = None
    certificate: str | None = None
    """The client certificate as PEM, verified by a proxy we trust."""
    claim: Claim | None = None
    """Only, and always, beside a certificate."""
    impersonate: bool = False
    """The service asks for what both it and the actor of its claim may do."""

    def __repr__(self) -> str:
        return f"Credentials(claim={self.claim!r}, impersonate={self.impersonate!r})"


class TrustedProxies:
    """The addresses whose word about client certificates is believed: none, unless some are named."""

    def __init__(self, networks: Iterable[str] = ()) -> None:
        self._networks: tuple[IPv4Network | IPv6Network, ...] = tuple(map(ip_network, networks))

    def __contains__(self, peer: str) -> bool:
        try:
            address = ip_address(peer)
        except ValueError:
            return False
        return any(address in network for network in self._networks)


_DECODE_CLAIM = msgspec.json.Decoder(Claim).decode


def read_credentials(
    headers: Mapping[bytes, bytes], *, all_headers: Sequence[Header], peer: str | None, proxies: TrustedProxies
) -> Credentials:
    """Read the credentials, or raise Unauthenticated where there are none and Malformed where they make no sense.

    `headers` is a mapping of `all_headers`, which tell whether one came twice: then nobody can say which one counts.
    """
    authorization = headers.get(b"authorization")
    if b"ssl-client-cert" in headers and peer is not None and peer in proxies:
        _refuse_doubles(all_headers)
        token = None if authorization is None else _token(authorization)
        return _service_credentials(headers, token)
    if authorization is None:
        raise Unauthenticated("authorization header missing")
    if len(headers) != len(all_headers):
        _refuse_doubles(all_headers)
    return Credentials(token=_token(authorization))


def _refuse_doubles(all_headers: Sequence[Header]) -> None:
    names = [name for name, _ in all_headers if name in _SENSITIVE]
    if len(names) != len(set(names)):
        raise Unauthenticated("authorization header malformed")


def _token(authorization: bytes) -> str:
    words = authorization.split()
    if words and words[0].lower() != b"bearer" and len(words) >= _WORDS_OF_BEARER:
        raise Unauthenticated("authorization scheme not allowed")
    if len(words) != _WORDS_OF_BEARER or not _TOKEN.fullmatch(words[1]):
        raise Unauthenticated("authorization header malformed")
    return words[1].decode()


def _service_credentials(headers: Mapping[bytes, bytes], token: str | None) -> Credentials:
    certificate = unquote(headers[b"ssl-client-cert"].decode("latin-1"))
    if headers.get(b"ssl-client-verify") != b"SUCCESS" or not _PEM.fullmatch(certificate):
        raise Malformed("certificate propagation failure")
    claim = _claim(headers.get(b"x-principal"))
    impersonate = headers.get(b"x-impersonate", b"").lower() == b"true"
    if impersonate and not claim.actor:
        raise Malformed("X-Impersonate needs an actor in X-Principal: name the one to act for")
    return Credentials(token=token, certificate=certificate, claim=claim, impersonate=impersonate)


def _claim(header: bytes | None) -> Claim:
    if header is None:
        raise Malformed("X-Principal is missing: a service says for whom it acts")
    try:
        padded = header + b"=" * (-len(header) % 4)
        return _DECODE_CLAIM(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, RecursionError):
        raise Malformed("X-Principal is not valid: send a JSON object as unpadded base64url") from None
